import { expect, test, vi } from "vitest";
import { session } from "./sample";

const storage = { getItem: () => null, setItem: () => undefined, removeItem: () => undefined };
const heard = new Map<string, () => void>();
const icon = { href: "/favicon.svg" };
const page = {
  title: "",
  visibilityState: "visible",
  focused: true,
  hasFocus: () => page.focused,
  querySelector: () => icon,
  addEventListener: (name: string, listener: () => void) => heard.set(name, listener),
};
const badges: number[] = [];
vi.stubGlobal("sessionStorage", storage);
vi.stubGlobal("localStorage", storage);
vi.stubGlobal("location", { search: "" });
vi.stubGlobal("history", { pushState: () => undefined, replaceState: () => undefined });
vi.stubGlobal("addEventListener", (name: string, listener: () => void) => heard.set(name, listener));
vi.stubGlobal("document", page);
vi.stubGlobal("navigator", { setAppBadge: async (count: number) => void badges.push(count) });
const store = await import("./store");
const { connectPresence, iconWith } = await import("./presence");

vi.useFakeTimers();
const said: string[] = [];
connectPresence(({ sessionId }) => said.push(sessionId) > 0);
const dev = session({ id: "dev", since: "2026-05-04T12:00:00Z" });
const asks = session({ id: "asks", section: "needs-you", rank: 1 });

test("the title, the icon and the badge count who needs somebody, and nothing else", () => {
  store.replaceAll([dev, asks, { ...asks, id: "old", record: "archived" }]);
  vi.runAllTimers();
  expect([page.title, badges.at(-1), icon.href.startsWith("data:image/svg+xml,")]).toEqual(["(1) Hitchpost", 1, true]);
  store.replaceAll([dev]);
  vi.runAllTimers();
  expect([page.title, badges.at(-1), icon.href]).toEqual(["Hitchpost", 0, "/favicon.svg"]);
  expect(iconWith(120)).toContain(">99+</text>");
});

test("seen is what is open, for its owner, in a window that somebody looks at, once for each headline", () => {
  store.replaceAll([dev, asks]);
  store.open("dev");
  expect(said).toEqual([]);
  store.link.value = "open";
  store.may.value = [];
  expect(said).toEqual([]);
  store.may.value = ["change"];
  expect(said).toEqual(["dev"]);
  store.applyAll([{ type: "session.updated", sessionId: "dev", session: { ...dev, seen_at: "2026-05-04T12:00:01Z" } }]);
  expect(said).toEqual(["dev"]);
  const later = { ...dev, since: "2026-05-04T12:01:00Z" };
  store.applyAll([{ type: "session.updated", sessionId: "dev", session: later }]);
  expect(said).toEqual(["dev", "dev"]);

  page.focused = false;
  heard.get("blur")?.();
  store.applyAll([{ type: "session.updated", sessionId: "dev", session: { ...later, since: "2026-05-04T12:02:00Z" } }]);
  expect(said).toEqual(["dev", "dev"]);
  page.focused = true;
  heard.get("focus")?.();
  expect(said).toEqual(["dev", "dev", "dev"]);
  page.visibilityState = "hidden";
  heard.get("visibilitychange")?.();
  store.open("asks");
  expect(said).toHaveLength(3);
});
