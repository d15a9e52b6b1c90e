import { beforeEach, expect, test, vi } from "vitest";

const visited: string[] = [];
const heard = new Map<string, () => void>();
const address = { search: "?session=dev&panel=diff" };
vi.stubGlobal("location", address);
vi.stubGlobal("history", {
  pushState: (_state: null, _title: string, to: string) => visited.push(to),
  replaceState: (_state: null, _title: string, to: string) => visited.push(`instead ${to}`),
});
vi.stubGlobal("addEventListener", (name: string, listener: () => void) => heard.set(name, listener));
const { addressOf, followHistory, go, route, routeOf } = await import("./router");

const LIST = { session: null, panel: null, grid: false, settings: false, creating: false };

beforeEach(() => {
  route.value = LIST;
  visited.length = 0;
});

test("what the address says is shown from the start", async () => {
  vi.resetModules();
  expect((await import("./router")).route.value).toEqual({ ...LIST, session: "dev", panel: "diff" });
});

test("every state has an address, and every address its state", () => {
  const states = [
    LIST,
    { ...LIST, grid: true },
    { ...LIST, settings: true },
    { ...LIST, creating: true },
    ...([null, "explain", "timeline", "diff"] as const).map((panel) => ({ ...LIST, session: "k3v9q0x2m7ab", panel })),
    { session: "a & b=c#?", panel: "diff" as const, grid: true, settings: true, creating: true },
  ];
  for (const state of states) expect(routeOf(addressOf(state).slice(1))).toEqual(state);
  expect(addressOf(LIST)).toBe("/");
  expect(addressOf({ ...LIST, session: "k3v9", panel: "diff" })).toBe("/?session=k3v9&panel=diff");
});

test("words that are not known are ignored", () => {
  expect(routeOf("?session=&panel=diff&grid=yes&settings&invented=1")).toEqual(LIST);
  expect(routeOf("?session=dev&panel=invented")).toEqual({ ...LIST, session: "dev" });
});

test("a step is one entry of the history, and none when nothing changes", () => {
  go({ session: "dev" });
  go({ session: "dev" });
  go({ panel: "timeline" });
  expect(visited).toEqual(["/?session=dev", "/?session=dev&panel=timeline"]);
  expect(route.value).toEqual({ ...LIST, session: "dev", panel: "timeline" });
});

test("what nobody wants to come back to leaves no entry", () => {
  go({ session: "dev" });
  go({ session: null }, "replace");
  expect(visited).toEqual(["/?session=dev", "instead /"]);
});

test("a panel goes with its session", () => {
  go({ session: "dev", panel: "diff" });
  go({ session: "other" });
  expect(route.value.panel).toBe("diff");
  go({ session: null });
  expect(route.value).toEqual(LIST);
});

test("Back and Forward lead to what the address says", () => {
  followHistory();
  address.search = "?session=other&grid=1";
  heard.get("popstate")?.();
  expect(route.value).toEqual({ ...LIST, session: "other", grid: true });
  expect(visited).toEqual([]);
});
