import { describe, expect, it } from "vitest";
import { Chat } from "./chat";

const line = (type: string, more: object = {}) => ({ at: "2026-11-18T00:00:00Z", run: 1, type, ...more });

describe("a chat", () => {
  it("puts the parts of a message together, however they arrive", () => {
    const chat = new Chat();
    chat.add([line("user", { text: "Hello" }), line("agent", { text: "Good " })]);
    chat.add([line("agent", { text: "day" }), line("thought", { text: "hm" }), line("agent", { text: "!" })]);
    expect(chat.parts).toEqual([
      { kind: "user", prompt: { run: 1, name: "", text: "Hello", images: [] } },
      { kind: "agent", text: "Good day" },
      { kind: "thought", text: "hm" },
      { kind: "agent", text: "!" },
    ]);
  });

  it("has what waits until it is sent, taken back, or left behind by its run", () => {
    const chat = new Chat();
    const queued = (prompt: string, run = 1) => ({
      ...line("queued", { prompt, text: prompt, images: ["a.png"] }),
      run,
    });
    const names = (prompts: { name: string }[]) => prompts.map(({ name }) => name);
    chat.add([line("begun", { images: true }), queued("1"), queued("2"), queued("3"), queued("4")]);
    expect(chat.images).toBe(true);
    expect(names(chat.waiting(1, true))).toEqual(["1", "2", "3", "4"]);
    chat.add([line("user", { prompt: "1", text: "1" }), line("taken_back", { prompt: "2" })]);
    chat.add([line("not_sent", { prompt: "3", text: "3" })]);
    expect(names(chat.waiting(1, true))).toEqual(["4"]);
    // its run has ended, or there is another
    expect(names(chat.waiting(1, false))).toEqual([]);
    expect(names(chat.leftOver(1, false))).toEqual(["4"]);
    expect(names(chat.leftOver(2, true))).toEqual(["4"]);
    chat.add([{ ...line("begun", { images: false }), run: 2 }, queued("4", 2)]);
    expect(chat.images).toBe(false);
    expect(names(chat.waiting(2, true))).toEqual(["4"]);
    expect(chat.leftOver(2, true)).toEqual([]);
    expect(chat.parts).toEqual([
      { kind: "user", prompt: { run: 1, name: "1", text: "1", images: [] } },
      { kind: "unsent", prompt: { run: 1, name: "3", text: "3", images: [] } },
      { kind: "unsent", prompt: { run: 1, name: "4", text: "4", images: ["a.png"] } },
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

  it("opens a tool while its permission is asked for, and says what was never answered", () => {
    const chat = new Chat();
    const state = () =>
      chat.parts.map((part) => (part.kind === "tool" ? part.tool.asked : part.kind === "asked" && part.waits));
    const asks = (request: string) => [
      line("tool", { id: request, title: "write" }),
      line("permission", { request, tool: request, text: "write" }),
    ];
    chat.add([...asks("1"), ...asks("2")]);
    expect(state()).toEqual([true, true, true, true]);
    chat.add([line("answer", { request: "1", choice: "yes" }), line("tool", { id: "2", status: "pending" })]);
    expect(state()).toEqual([false, false, true, true]);
    chat.add([line("turn", { state: "idle" })]);
    expect(state()).toEqual([false, false, false, false, false]);
  });

  it("makes another object of a part that changes, and leaves the others alone", () => {
    const chat = new Chat();
    chat.add([line("user", { text: "Hello" }), line("tool", { id: "t", title: "make" })]);
    chat.add([line("permission", { request: "1", text: "make" }), line("agent", { text: "Good" })]);
    const before = [...chat.parts];
    chat.add([line("tool", { id: "t", status: "completed" }), line("answer", { request: "1", choice: "yes" })]);
    chat.add([line("agent", { text: " day" })]);
    expect(chat.parts.map((part, at) => part === before[at])).toEqual([true, false, false, false]);
    // names begin anew in each run
    chat.add([{ ...line("tool", { id: "t", title: "again" }), run: 2 }]);
    expect(chat.parts).toHaveLength(5);
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
    expect(chat.parts[4]).toEqual({ kind: "asked", text: "touch q", choice: "yes", tool: "1:", waits: false });
  });
});
