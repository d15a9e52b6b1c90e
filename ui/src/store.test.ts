import { beforeEach, expect, test, vi } from "vitest";
import { session } from "./sample";

const kept = new Map<string, string>(); // Node has no storage of a browser tab
vi.stubGlobal("sessionStorage", {
  getItem: (key: string) => kept.get(key) ?? null,
  setItem: (key: string, value: string) => void kept.set(key, value),
});
vi.stubGlobal("location", { search: "" });
vi.stubGlobal("history", { pushState: () => undefined, replaceState: () => undefined });
const store = await import("./store");
const { go } = await import("./router");
const { applyAll, close, current, open, replaceAll, sessions, tabs } = store;

const [first, second] = [session({ id: "one", name: "one", index: 1 }), session({ id: "two", name: "two", index: 2 })];

beforeEach(() => {
  go({ session: null });
  replaceAll([]);
  store.notices.value = [];
});

test("what the hub tells of one session changes that one and no other", () => {
  replaceAll([first]);
  applyAll([{ type: "session.created", sessionId: "two", session: second }]);
  const failed = { ...first, state: "failed", status: "failed" };
  applyAll([{ type: "session.status", sessionId: "one", status: "error", session: failed }]);
  expect([...sessions.value.values()]).toEqual([failed, second]);
  expect(sessions.value.get("two")).toBe(second);
  applyAll([{ type: "session.updated", sessionId: "two", session: { ...second, name: "second" } }]);
  expect([...sessions.value.values()].map(({ name }) => name)).toEqual(["one", "second"]);
  applyAll([{ type: "session.removed", sessionId: "one", session: failed }]);
  expect([...sessions.value.keys()]).toEqual(["two"]);
});

test("a session that was made here is shown at once, and what the hub has told of it since stays", () => {
  store.add(first);
  expect(sessions.value.get("one")).toBe(first);
  const newer = { ...first, state: "failed" };
  applyAll([{ type: "session.updated", sessionId: "one", session: newer }]);
  store.add(first);
  expect(sessions.value.get("one")).toBe(newer);
});

test("after a reconnect only what the hub has is left, and what did not change is the same object", () => {
  replaceAll([first, second]);
  open("one");
  open("two");
  replaceAll([{ ...second, last_activity_at: "2026-05-04T12:00:01Z" }]);
  expect([...sessions.value.keys()]).toEqual(["two"]);
  expect(sessions.value.get("two")).toBe(second);
  expect(tabs.value).toEqual(["two"]);
  replaceAll([{ ...second, label: "running (idle 2m 15s)" }]);
  expect(sessions.value.get("two")?.label).toBe("running (idle 2m 15s)");
});

test("what is told within a frame is one change, in its order", () => {
  replaceAll([first]);
  open("one");
  let changes = -1;
  const stop = sessions.subscribe(() => changes++);
  applyAll([
    { type: "session.created", sessionId: "two", session: second },
    { type: "session.updated", sessionId: "two", session: { ...second, name: "second" } },
    { type: "session.removed", sessionId: "one", session: first },
  ]);
  stop();
  expect([changes, [...sessions.value.values()].map(({ name }) => name), tabs.value]).toEqual([1, ["second"], []]);
});

test("messages that are not known change nothing", () => {
  replaceAll([first]);
  const before = sessions.value;
  applyAll([{ type: "session.invented", sessionId: "one" } as never]);
  expect(sessions.value).toBe(before);
});

test("an error of the hub is a notice, once", () => {
  applyAll([{ type: "error", code: "bad_input", message: "no" }]);
  applyAll([{ type: "error", code: "bad_input", message: "no" }]);
  expect(store.notices.value.map((notice) => notice.text)).toEqual(["no"]);
});

test("a tab that is closed gives way to its neighbour", () => {
  replaceAll([first, second]);
  open("one");
  open("two");
  close("two");
  expect(current.value).toBe("one");
  close("one");
  expect(current.value).toBeNull();
});

test("open tabs are kept for a reload", () => {
  store.keepTabs();
  replaceAll([first, second]);
  open("one");
  open("two");
  expect(JSON.parse(kept.get("tabs") ?? "")).toEqual(["one", "two"]);
  close("one");
  expect(JSON.parse(kept.get("tabs") ?? "")).toEqual(["two"]);
});

test("an address that names a session opens it, once the sessions are known", () => {
  store.known.value = false;
  go({ session: "two" });
  expect(tabs.value).toEqual([]);
  replaceAll([first, second]);
  expect([tabs.value, store.shown.value]).toEqual([["two"], second]);
});

test("an address that names a session which is not there leads to the list, and says so", () => {
  go({ session: "gone" });
  replaceAll([first]);
  expect(current.value).toBeNull();
  expect(store.notices.value.map((notice) => notice.text)).toEqual(["There is no session at this address."]);
});
