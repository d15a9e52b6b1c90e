/**
 * What the page shows, as its address says it: `/?session=ID&panel=diff&grid=1`, and with the dialog that is
 * open, `settings=1` or `new=1`.
 *
 * Back, Forward, a reload and a link all lead to the same state. A query and no path: the hub and the service worker know
 * one page, at `/`.
 */

import { signal } from "@preact/signals";

const PANELS = ["explain", "timeline", "diff"] as const;
export type Panel = (typeof PANELS)[number];

export interface Route {
  readonly session: string | null;
  /** Beside a session; there is none beside the list. */
  readonly panel: Panel | null;
  readonly grid: boolean;
  readonly settings: boolean;
  readonly creating: boolean;
}

const ON = "1";

/** Words that are not known are ignored. */
export function routeOf(search: string): Route {
  const words = new URLSearchParams(search);
  const session = words.get("session") || null;
  const panel = PANELS.find((name) => session !== null && name === words.get("panel"));
  const on = (word: string) => words.get(word) === ON;
  return {
    session,
    panel: panel ?? null,
    grid: on("grid"),
    settings: on("settings"),
    creating: on("new"),
  };
}

export function addressOf(route: Route): string {
  const words = new URLSearchParams();
  if (route.session !== null) words.set("session", route.session);
  if (route.session !== null && route.panel !== null) words.set("panel", route.panel);
  if (route.grid) words.set("grid", ON);
  if (route.settings) words.set("settings", ON);
  if (route.creating) words.set("new", ON);
  return words.size > 0 ? `/?${words}` : "/";
}

export const route = signal(routeOf(location.search));

/** Show something else. `replace` is for what nobody wants to come back to. */
export function go(change: Partial<Route>, how: "push" | "replace" = "push"): void {
  const address = addressOf({ ...route.value, ...change });
  if (address === addressOf(route.value)) return;
  if (how === "push") history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  route.value = routeOf(address.slice(1));
}

/** Follow Back and Forward. */
export function followHistory(): void {
  addEventListener("popstate", () => (route.value = routeOf(location.search)));
}
