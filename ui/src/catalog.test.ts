import { expect, test } from "vitest";
import {
  amountsOf,
  COMMAND,
  chosenOf,
  heirsOf,
  meetsLimits,
  profileOptions,
  runsPods,
  runtimeOptions,
  startsPods,
  takes,
  tilesOf,
} from "./catalog";
import { session } from "./sample";
import type { Catalog } from "./shapes";

const agent = (name: string, path: string | null, options: string[] = []) => ({
  name,
  title: name.toUpperCase(),
  argv: [name],
  path,
  install: `get ${name}`,
  broken: "",
  options,
  watched: name !== "bash",
  chat: name.endsWith("-acp"),
  conversations: name.replace("-acp", ""),
});
const CATALOG: Catalog = {
  agents: [agent("aider", null), agent("bash", "/bin/bash"), agent("claude", "/bin/claude", ["model"])],
  runtimes: [
    { name: "tmux", available: false, missing: "tmux is not installed" },
    { name: "local", available: true, missing: "" },
  ],
  profiles: [],
  detach_key: "",
};
const IN_PODS: Catalog = {
  agents: CATALOG.agents,
  runtimes: [{ name: "pod", available: true, missing: "" }],
  profiles: [{ name: "default", cpu: "1", memory: "2Gi", storage: "10Gi" }],
  detach_key: "",
};

test("what was used last comes first, and what is not installed last, with how to get it", () => {
  const tile = (value: string, missing = "") => ({ value, text: value.toUpperCase(), about: value, missing });
  const command = { value: COMMAND, text: "Command", about: "anything else", missing: "" };
  expect(tilesOf(CATALOG, null)).toEqual([tile("claude"), tile("bash"), command, tile("aider", "get aider")]);
  expect(tilesOf(CATALOG, "claude").map(({ value }) => value)).toEqual(["claude", "bash", COMMAND, "aider"]);
  expect(tilesOf(CATALOG, "aider").map(({ value }) => value)).toEqual(["claude", "bash", COMMAND, "aider"]);
  expect(runtimeOptions(CATALOG)).toEqual([
    { value: "local", text: "local", missing: "" },
    { value: "tmux", text: "tmux", missing: "tmux is not installed" },
  ]);
});

test("in pods an agent need not be installed on the hub's machine, and a profile can be chosen", () => {
  expect([CATALOG, IN_PODS].map(runsPods)).toEqual([false, true]);
  const unusable = { ...IN_PODS, runtimes: [{ name: "pod", available: false, missing: "members may not" }] };
  expect([runsPods(unusable), startsPods(unusable), startsPods(IN_PODS)]).toEqual([true, false, true]);
  expect(tilesOf(IN_PODS, null, true).filter(({ missing }) => missing)).toEqual([]);
  expect(tilesOf(IN_PODS, null, true).map(({ value }) => value)).toEqual(["claude", "aider", "bash", COMMAND]);
  expect(profileOptions(IN_PODS)).toEqual([{ value: "default", text: "default", missing: "" }]);
  expect(amountsOf(IN_PODS, "default")).toBe("1 CPU, 2Gi memory, 10Gi storage");
});

test("what is not installed is not chosen by itself", () => {
  const tiles = tilesOf(CATALOG, null);
  expect(chosenOf(tiles, "", null)).toBe("claude");
  expect(chosenOf(tiles, "", "claude")).toBe("claude");
  expect(chosenOf(tiles, "", "aider", "claude")).toBe("claude");
  expect(chosenOf(tiles, "", undefined, "aider")).toBe("claude");
  expect(chosenOf(tiles, "aider", "claude")).toBe("aider");
  expect(chosenOf([], "", null)).toBe("");
});

test("an agent is asked only for what it takes", () => {
  expect(takes(CATALOG, "claude", "model")).toBe(true);
  expect(takes(CATALOG, "claude", "permission_mode")).toBe(false);
  expect(takes(CATALOG, COMMAND, "model")).toBe(false);
});

test("a session is handed over to who is installed and has the same conversations", () => {
  const agents = [
    agent("claude", "/bin/claude"),
    agent("claude-acp", "/bin/claude-acp"),
    agent("codex", "/bin/codex"),
    agent("codex-acp", null),
  ];
  const heirs = (of: Parameters<typeof session>[0]) =>
    heirsOf(session({ supports_resume: true, ...of }), agents).map(({ name }) => name);
  expect(heirs({ agent: "claude" })).toEqual(["claude-acp"]);
  expect(heirs({ agent: "claude-acp" })).toEqual(["claude"]);
  expect(heirs({ agent: "codex" })).toEqual([]);
  expect(heirs({ agent: "unknown" })).toEqual([]);
  expect(heirs({ agent: "claude", supports_resume: false })).toEqual([]);
  expect(heirs({ agent: "claude", runtime: "docker" })).toEqual([]);
  expect(heirs({ agent: "claude", record: "archived" })).toEqual([]);
});

test("a usage limit is known of agents that are watched", () => {
  expect(["claude", "aider", "bash", COMMAND].map((name) => meetsLimits(CATALOG.agents, name))).toEqual([
    true,
    true,
    false,
    false,
  ]);
});
