import { beforeEach, expect, test, vi } from "vitest";

const visited: string[] = [];
const heard = new Map<string, () => void>();
const address = { search: "?session=dev&panel=diff" };
vi.stubGlobal("location", address);
vi.stubGlobal("history", {
  state: null,
  pushState(state: unknown, _title: string, to: string) {
    this.state = state;
    visited.push(to);
  },
  replaceState(state: unknown, _title: string, to: string) {
    this.state = state;
    visited.push(`instead ${to}`);
  },
  back: () => visited.push("back"),
} as { state: unknown } & Record<string, unknown>);
vi.stubGlobal("addEventListener", (name: string, listener: () => void) => heard.set(name, listener));
const { addressOf, followHistory, go, goFromDialog, leaveDialog, route, routeOf } = await import("./router");

const LIST = {
  session: null,
  panel: null,
  grid: false,
  settings: false,
  creating: false,
  palette: false,
  finish: false,
  usage: false,
} as const;

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
    { ...LIST, palette: true },
    ...(["day", "agent", "project"] as const).map((usage) => ({ ...LIST, usage })),
    ...([null, "explain", "timeline", "diff"] as const).map((panel) => ({ ...LIST, session: "k3v9q0x2m7ab", panel })),
    {
      session: "a & b=c#?",
      panel: "diff" as const,
      grid: true,
      settings: true,
      creating: true,
      palette: true,
      finish: true,
      usage: "agent" as const,
    },
  ];
  for (const state of states) expect(routeOf(addressOf(state).slice(1))).toEqual(state);
  expect(addressOf(LIST)).toBe("/");
  expect(addressOf({ ...LIST, session: "k3v9", panel: "diff" })).toBe("/?session=k3v9&panel=diff");
});

test("words that are not known are ignored", () => {
  expect(routeOf("?session=&panel=diff&grid=yes&settings&usage=1&invented=1")).toEqual(LIST);
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

test("the dialog that finishes goes with the difference of its session", () => {
  expect(routeOf("?session=dev&finish=1")).toEqual({ ...LIST, session: "dev" });
  go({ session: "dev", panel: "diff", finish: true });
  expect(visited).toEqual(["/?session=dev&panel=diff&finish=1"]);
  go({ panel: "timeline" });
  expect(route.value.finish).toBe(false);
  go({ panel: "diff", finish: true });
  go({ session: "other" });
  expect(route.value).toEqual({ ...LIST, session: "other", panel: "diff" });
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

test("a dialog that was opened here takes its entry back, once, and then something else is done", () => {
  const done: string[] = [];
  go({ palette: true });
  leaveDialog("palette", () => done.push("deed"));
  leaveDialog("palette");
  expect([visited, done]).toEqual([["/?palette=1", "back"], []]);
  address.search = "";
  heard.get("popstate")?.();
  expect([route.value, done]).toEqual([LIST, ["deed"]]);
  leaveDialog("palette");
  expect(visited).toHaveLength(2);
});

test("a dialog that a link led to has nothing before it", () => {
  history.replaceState(null, "", "/?settings=1");
  route.value = { ...LIST, settings: true };
  visited.length = 0;
  leaveDialog("settings");
  expect([visited, route.value]).toEqual([["instead /"], LIST]);
});

test("who goes elsewhere from a dialog finds no dialog on the way back", () => {
  goFromDialog({ session: "dev" });
  go({ creating: true });
  goFromDialog({ session: "other" });
  expect(visited).toEqual(["/?session=dev", "/?session=dev&new=1", "instead /?session=other"]);
  expect(route.value).toEqual({ ...LIST, session: "other" });
});

test("who is faster than the browser's way back goes on from there", () => {
  go({ settings: true });
  leaveDialog("settings");
  go({ session: "dev" });
  expect(visited).toEqual(["/?settings=1", "back"]);
  address.search = "";
  heard.get("popstate")?.();
  expect(visited).toEqual(["/?settings=1", "back", "/?session=dev"]);
  expect(route.value).toEqual({ ...LIST, session: "dev" });
});
