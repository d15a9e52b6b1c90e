import { beforeEach, expect, test, vi } from "vitest";
import type { Catalog } from "./shapes";

const asked: string[] = [];
let catalog: Catalog;
vi.mock("./api", () => ({
  ask: async (_method: string, path: string) => {
    asked.push(path);
    return catalog;
  },
  sessionPath: (id: string) => id,
}));
vi.useFakeTimers();
const page = { visibilityState: "visible", hasFocus: () => true };
const nothing = { getItem: () => null, setItem: () => undefined, removeItem: () => undefined };
vi.stubGlobal("document", page);
vi.stubGlobal("sessionStorage", nothing);
vi.stubGlobal("localStorage", nothing);
vi.stubGlobal("location", { search: "" });
const { learnAgents } = await import("./handover");
const { hasPods, link, may, mayBegin } = await import("./store");

const listing = (name: string, available: boolean): Catalog => ({
  agents: [],
  runtimes: [{ name, available, missing: available ? "" : "it is away" }],
  profiles: [],
  detach_key: "",
});
const aMinute = () => vi.advanceTimersByTimeAsync(60_000);

beforeEach(async () => {
  link.value = "open";
  page.visibilityState = "visible";
  may.value = ["change", "create"];
  catalog = listing("local", false);
  await learnAgents(); // forgets what was
  asked.length = 0;
});

test("where there are no pods, a member's page asks once", async () => {
  await learnAgents();
  await aMinute();
  expect([asked.length, hasPods.value, mayBegin.value]).toEqual([1, false, false]);
});

test("a page that waits for a cluster asks until that is there", async () => {
  catalog = listing("pod", false);
  await learnAgents();
  await aMinute();
  expect([asked.length, hasPods.value, mayBegin.value]).toEqual([7, true, false]);
  catalog = listing("pod", true);
  await aMinute();
  expect([asked.length, mayBegin.value]).toEqual([8, true]);
});

test("nobody asks in a page that nobody sees, nor of a hub that is away", async () => {
  catalog = listing("pod", false);
  await learnAgents();
  page.visibilityState = "hidden";
  await aMinute();
  expect(asked.length).toBe(1);
  page.visibilityState = "visible";
  await aMinute();
  expect(asked.length).toBeGreaterThan(5);
  asked.length = 0;
  link.value = "lost";
  await aMinute();
  expect(asked).toEqual([]);
});

test("a cluster that goes away closes nobody's form", async () => {
  catalog = listing("pod", true);
  await learnAgents();
  catalog = listing("pod", false);
  await learnAgents();
  expect([hasPods.value, mayBegin.value]).toEqual([true, true]);
});

test("who may start sessions anywhere waits for nothing", async () => {
  may.value = ["change", "create", "manage"];
  catalog = listing("pod", false);
  await learnAgents();
  await aMinute();
  expect(asked.length).toBe(1);
});
