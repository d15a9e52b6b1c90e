import { expect, test } from "vitest";
import { session } from "./sample";
import { byProject, byState, inOrder, inPlace, isSameOrder, MOST_FAILED, type Part } from "./sections";
import type { Session } from "./shapes";

const named = (name: string, fields: Partial<Session> = {}) => session({ id: name, name, ...fields });
const names = (sessions: readonly Session[]): string[] => sessions.map(({ name }) => name);
const shown = (parts: Part[]) => parts.map((part) => [part.title, part.count, names(part.rows), part.rest.length]);
const failed = (name: string, fields: Partial<Session> = {}) =>
  named(name, { section: "needs-you", rank: 4, live: false, status: "failed", ...fields });

test("pinned ones come first, then the smallest rank, then the newest", () => {
  const all = [
    named("old", { rank: 4, since: "2026-05-04T12:00:00Z" }),
    named("new", { rank: 4, since: "2026-05-04T12:00:01Z" }),
    named("never", { rank: 4, since: null }),
    named("asks", { rank: 1, since: "2026-05-04T11:00:00Z" }),
    named("pinned", { rank: 4, pinned: true, since: null }),
  ];
  expect(names(inOrder(all))).toEqual(["pinned", "asks", "new", "old", "never"]);
});

test("each section of the hub is a part, in its order, and an empty one is none", () => {
  const all = [
    named("over", { section: "ended", rank: 8 }),
    named("asks", { section: "needs-you", rank: 1 }),
    named("works"),
    named("strange", { section: "invented", rank: 6 }),
  ];
  expect(shown(byState(all))).toEqual([
    ["Needs you", 1, ["asks"], 0],
    ["Working", 1, ["works"], 0],
    ["Ended", 2, ["strange", "over"], 0],
  ]);
});

test("old failures do not push down what lives", () => {
  const old = Array.from({ length: 70 }, (_, at) => failed(`f${at}`, { since: `2026-05-04T12:00:${10 + (at % 50)}Z` }));
  const [part] = byState([...old, named("asks", { section: "needs-you", rank: 1 }), failed("kept", { pinned: true })]);
  expect([part?.count, part?.rows.length, part?.rest.length]).toEqual([72, MOST_FAILED + 2, 65]);
  expect(names(part!.rows).slice(0, 2)).toEqual(["kept", "asks"]);
  expect(shown(byState(old.slice(0, MOST_FAILED + 1)))[0]?.[3]).toBe(0);
});

test("by project, what is ended stands behind the rest, and who needs somebody comes first", () => {
  const at = (path: string, repository: string | null = null) => ({
    workspace: { id: null, path, branch: null, repository },
  });
  const all = [
    named("works", at("/src/docs")),
    named("over", { ...at("/src/docs"), section: "ended", rank: 8 }),
    named("asks", { ...at("/w/fix", "/src/shop"), section: "needs-you", rank: 1 }),
  ];
  expect(shown(byProject(all))).toEqual([
    ["shop", 1, ["asks"], 0],
    ["docs", 1, ["works"], 1],
  ]);
});

test("in place, everything is as it was, with what is known now", () => {
  const before = byState([named("one"), named("two"), named("gone")]);
  const now = byState([named("one", { section: "quiet", rank: 7, headline: "Quiet" }), named("two"), named("new")]);
  const still = inPlace(before, now);
  expect(shown(still)).toEqual([["Working", 2, ["one", "two"], 0]]);
  expect(still[0]?.rows[0]?.headline).toBe("Quiet");
  expect([isSameOrder(still, now), isSameOrder(now, now)]).toEqual([false, true]);
});

test("what is folded is counted and not put in order", () => {
  const all = [
    named("b", { section: "ended", rank: 8, index: 2 }),
    named("a", { section: "ended", rank: 7, index: 1 }),
  ];
  expect(names(byState(all, () => true)[0]!.rows)).toEqual(["b", "a"]);
  expect(names(byState(all)[0]!.rows)).toEqual(["a", "b"]);
});
