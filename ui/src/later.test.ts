import { beforeEach, expect, test, vi } from "vitest";

vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => undefined });
vi.stubGlobal("location", { search: "" });
const browser: { serviceWorker: { controller: unknown } } = { serviceWorker: { controller: null } };
vi.stubGlobal("navigator", browser);
vi.stubGlobal("requestIdleCallback", (then: () => void) => then());
const { loadAll, Part } = await import("./later");
const { link } = await import("./store");

beforeEach(() => {
  link.value = "open";
  browser.serviceWorker.controller = null;
});

test("a part comes once, whoever wants it", async () => {
  const get = vi.fn(async () => "the diff");
  const part = new Part(get);
  expect(await Promise.all([part.load(), part.load()])).toEqual([true, true]);
  expect([part.found.value, part.isMissing.value, get.mock.calls.length]).toEqual(["the diff", false, 1]);
});

test("all parts come when the hub has proved itself, also those that only another part knows", async () => {
  const inner = vi.fn(async () => "colours");
  const outer = new Part(async () => new Part(inner));
  loadAll();
  await vi.waitFor(() => expect(outer.found.value?.found.value).toBe("colours"));
});

test("what could not be loaded says so, and is tried again", async () => {
  const get = vi.fn().mockRejectedValueOnce(new TypeError("404")).mockResolvedValue("the diff");
  link.value = "lost";
  browser.serviceWorker.controller = {};
  const part = new Part(get);
  expect([await part.load(), part.isMissing.value]).toEqual([false, true]);
  link.value = "open";
  loadAll();
  await vi.waitFor(() => expect([part.found.value, part.isMissing.value]).toEqual(["the diff", false]));
});

test("without a worker of ours, nothing is loaded from who answers while the hub is away", async () => {
  const get = vi.fn(async () => "a stranger's");
  for (const away of ["connecting", "lost", "stranger", "refused"] as const) {
    link.value = away;
    const part = new Part(get);
    expect([await part.load(), part.isMissing.value]).toEqual([false, away !== "connecting"]);
  }
  expect(get).not.toHaveBeenCalled();
});
