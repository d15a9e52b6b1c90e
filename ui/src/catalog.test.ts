import { expect, test } from "vitest";
import { agentOptions, chosenOf, runtimeOptions } from "./catalog";
import type { Catalog } from "./shapes";

const agent = (name: string, path: string | null) => ({
  name,
  title: name.toUpperCase(),
  argv: [name],
  path,
  install: `get ${name}`,
  broken: "",
});
const CATALOG: Catalog = {
  agents: [agent("aider", null), agent("bash", "/bin/bash"), agent("claude", "/bin/claude")],
  runtimes: [
    { name: "local", available: true, missing: "" },
    { name: "tmux", available: false, missing: "tmux is not installed" },
  ],
};

test("what is not installed comes last, and says how to get it", () => {
  expect(agentOptions(CATALOG)).toEqual([
    { value: "bash", text: "BASH", missing: "" },
    { value: "claude", text: "CLAUDE", missing: "" },
    { value: "aider", text: "AIDER", missing: "get aider" },
  ]);
  expect(runtimeOptions(CATALOG).map((option) => option.missing)).toEqual(["", "tmux is not installed"]);
});

test("what is not installed is not chosen by itself", () => {
  const options = agentOptions(CATALOG);
  expect(chosenOf(options, "", null)).toBe("bash");
  expect(chosenOf(options, "", "claude")).toBe("claude");
  expect(chosenOf(options, "", "aider")).toBe("bash");
  expect(chosenOf(options, "aider", "claude")).toBe("aider");
  expect(chosenOf([], "", null)).toBe("");
});
