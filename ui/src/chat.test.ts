import { describe, expect, it } from "vitest";
import { Chat } from "./chat";

const line = (type: string, more: object = {}) => ({ at: "2026-11-18T00:00:00Z", run: 1, type, ...more });

describe("a chat", () => {
  it("puts the parts of a message together, however they arrive", () => {
    const chat = new Chat();
    chat.add([line("user", { text: "Hello" }), line("agent", { text: "Good " })]);
    chat.add([line("agent", { text: "day" }), line("thought", { text: "hm" }), line("agent", { text: "!" })]);
    expect(chat.parts).toEqual([
      { kind: "user", text: "Hello" },
      { kind: "agent", text: "Good day" },
      { kind: "thought", text: "hm" },
      { kind: "agent", text: "!" },
    ]);
  });

  it("changes a tool where it stands", () => {
    const chat = new Chat();
    chat.add([line("tool", { id: "t", title: "make", status: "pending" }), line("agent", { text: "…" })]);
    chat.add([line("tool", { id: "t", status: "completed", output: "all well" })]);
    expect(chat.parts[0]).toEqual({
      kind: "tool",
      tool: { id: "t", title: "make", status: "completed", output: "all well", diffs: [] },
    });
    expect(chat.parts).toHaveLength(2);
  });

  it("has one plan in a turn, and says what was chosen and what went wrong", () => {
    const chat = new Chat();
    const plan = (status: string) => line("plan", { entries: [{ text: "first", status }] });
    chat.add([
      line("user", { text: "a" }),
      plan("pending"),
      plan("completed"),
      line("user", { text: "b" }),
      plan("pending"),
    ]);
    chat.add([line("permission", { request: "1", text: "touch q" }), line("answer", { request: "1", choice: "yes" })]);
    chat.add([line("turn", { state: "error", message: "out of order" }), line("turn", { state: "idle" })]);
    chat.add([line("turn", { state: "done" }), line("something new")]);
    expect(chat.parts.map((part) => part.kind)).toEqual(["user", "plan", "user", "plan", "asked", "trouble", "notice"]);
    expect(chat.parts[1]).toEqual({ kind: "plan", entries: [{ text: "first", status: "completed" }] });
    expect(chat.parts[4]).toEqual({ kind: "asked", text: "touch q", choice: "yes" });
  });
});
