import { beforeEach, expect, test, vi } from "vitest";
import { session } from "./sample";

const kept = new Map<string, string>(); // Node has no storage of a browser
const storage = {
  getItem: (key: string) => kept.get(key) ?? null,
  setItem: (key: string, value: string) => void kept.set(key, value),
  removeItem: () => undefined,
};
vi.stubGlobal("sessionStorage", storage);
vi.stubGlobal("localStorage", storage);
vi.stubGlobal("location", { search: "" });
vi.stubGlobal("history", { pushState: () => undefined, replaceState: () => undefined });
vi.stubGlobal("matchMedia", () => ({ matches: true }));
const { count, replaceAll } = await import("./store");
const rail = await import("./rail");
const { canBeSeen } = await import("./deeds");
const { filter, hold, letGo, listed, parts, record, selected, selectTo, showArchived, waits } = rail;

const names = (): string[] => listed.value.map((shown) => shown.name);
const rows = (): string[] => parts.value.flatMap((part) => part.rows.map((shown) => shown.name));
const named = (name: string, fields: Parameters<typeof session>[0] = {}) => session({ id: name, name, ...fields });

beforeEach(() => {
  letGo();
  replaceAll([]);
  filter.value = "";
  record.value = "";
  showArchived.value = false;
  rail.onlyProject.value = "";
  rail.grouping.value = "state";
  selected.value = new Set();
});

test("archived and error records are counted by nobody, and shown to who asks", () => {
  const old = session({ id: "old", name: "old", record: "archived", status: "archived", label: "archived" });
  const broken = session({ id: "broken", name: "broken", record: "error", status: "error", label: "error" });
  const rests = session({ id: "rests", name: "rests", record: "suspended", status: "suspended", label: "suspended" });
  replaceAll([old, broken, rests]);
  expect(names()).toEqual(["rests"]);
  expect(count.value).toBe(1);
  showArchived.value = true;
  expect(names().sort()).toEqual(["old", "rests"]);
  showArchived.value = false;
  filter.value = "error";
  expect(names()).toEqual(["broken"]);
  filter.value = "";
  for (const [which, found] of Object.entries({ archived: "old", error: "broken", suspended: "rests" })) {
    record.value = which;
    expect(names()).toEqual([found]);
  }
  record.value = "active";
  expect(names()).toEqual([]);
  record.value = "";
});

test("nothing moves under a pointer, and all of it when the pointer is gone", () => {
  const [one, two] = [named("one", { index: 1 }), named("two", { index: 2 })];
  replaceAll([one, two]);
  expect(rows()).toEqual(["one", "two"]);
  hold();
  replaceAll([one, { ...two, rank: 1, section: "needs-you" }, named("three", { rank: 1, section: "needs-you" })]);
  expect([rows(), waits.value]).toEqual([["one", "two"], true]);
  expect(parts.value[0]?.rows[1]?.rank).toBe(1);
  replaceAll([{ ...two, rank: 1, section: "needs-you" }]);
  expect(rows()).toEqual(["two"]);
  letGo();
  expect([rows(), parts.value[0]?.key, waits.value]).toEqual([["two"], "needs-you", false]);
});

test("another list is shown at once, also under a pointer", () => {
  replaceAll([named("one"), named("two")]);
  rows();
  hold();
  filter.value = "two";
  expect(rows()).toEqual(["two"]);
});

test("a project lists its own sessions, and one that is gone hides none", () => {
  const place = (path: string) => ({ workspace: { id: null, path, branch: null, repository: null } });
  replaceAll([named("one", place("/src/shop")), named("two", place("/src/docs"))]);
  expect(rail.projects.value.map(({ name, live }) => [name, live])).toEqual([
    ["shop", 1],
    ["docs", 1],
  ]);
  rail.onlyProject.value = "/src/shop";
  expect(names()).toEqual(["one"]);
  replaceAll([named("two", place("/src/docs"))]);
  expect(names()).toEqual(["two"]);
});

test("what is ended is folded until somebody unfolds it, or searches", () => {
  expect([rail.isFolded("ended"), rail.isFolded("working")]).toEqual([true, false]);
  filter.value = "shop";
  expect(rail.isFolded("ended")).toBe(false);
  filter.value = "";
  rail.fold("ended");
  expect([rail.isFolded("ended"), kept.get("folded")]).toEqual([false, "[]"]);
  rail.fold("ended");
});

test("a selection goes from the last one to this one, as they are listed", () => {
  replaceAll(["a", "b", "c", "d"].map((name, index) => named(name, { index })));
  rail.select("b", true);
  selectTo("d", ["a", "b", "c", "d"]);
  expect([...selected.value]).toEqual(["b", "c", "d"]);
  // what is folded between them, or where the last one is, is not selected with this one
  selected.value = new Set(["a"]);
  selectTo("d", ["a", "d"]);
  expect([...selected.value]).toEqual(["a", "d"]);
  selectTo("c", ["b", "c"]);
  expect([...selected.value]).toEqual(["a", "d", "c"]);
  rail.select("c", false);
  replaceAll([named("d")]);
  expect(rail.chosen.value.map(({ name }) => name)).toEqual(["d"]);
});

test("only what is listed elsewhere afterwards can be marked as seen", () => {
  const can = (section: string, status: string) => canBeSeen(session({ section, status }));
  expect([can("finished", "running"), can("finished", "completed"), can("needs-you", "failed")]).toEqual([
    true,
    true,
    true,
  ]);
  expect([can("needs-you", "running"), can("needs-you", "orphaned"), can("ended", "failed")]).toEqual([
    false,
    false,
    false,
  ]);
});

test("signs turn as long as only a few do", () => {
  const busy = (count: number) => [...Array(count).keys()].map((at) => named(`busy${at}`));
  replaceAll(busy(12));
  expect(rail.isCalm.value).toBe(false);
  replaceAll(busy(13));
  expect(rail.isCalm.value).toBe(true);
});
