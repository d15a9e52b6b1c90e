import { expect, test } from "vitest";
import { COMMAND, chosenOf, runtimeOptions, takes, tilesOf } from "./catalog";
import type { Catalog } from "./shapes";

const agent = (name: string, path: string | null, options: string[] = []) => ({
  name,
  title: name.toUpperCase(),
  argv: [name],
  path,
  install: `get ${name}`,
  broken: "",
  options,
});
const CATALOG: Catalog = {
  agents: [agent("aider", null), agent("bash", "/bin/bash"), agent("claude", "/bin/claude", ["model"])],
  runtimes: [
    { name: "tmux", available: false, missing: "tmux is not installed" },
    { name: "local", available: true, missing: "" },
  ],
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
