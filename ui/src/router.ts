/**
 * What the page shows, as its address says it: `/?session=ID&panel=diff&grid=1`, and with the dialog that is open, such as `settings=1`, `finish=1` or `usage=day`.
 *
 * Back, Forward, a reload and a link all lead to the same state. A query and no path: the hub and the service worker know
 * one page, at `/`.
 */

import { signal } from "@preact/signals";

const PANELS = ["explain", "timeline", "diff"] as const;
export type Panel = (typeof PANELS)[number];
export const USAGE_BY = ["day", "agent", "project"] as const;
export type UsageBy = (typeof USAGE_BY)[number];

export interface Route {
  readonly session: string | null;
  /** Beside a session; there is none beside the list. */
  readonly panel: Panel | null;
  readonly grid: boolean;
  readonly settings: boolean;
  readonly creating: boolean;
  readonly palette: boolean;
  /** Of the session, beside its difference. */
  readonly finish: boolean;
  /** What agents have used, summed by this. */
  readonly usage: UsageBy | false;
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
    palette: on("palette"),
    finish: panel === "diff" && on("finish"),
    usage: USAGE_BY.find((by) => by === words.get("usage")) ?? false,
  };
}

export function addressOf(route: Route): string {
  const words = new URLSearchParams();
  if (route.session !== null) words.set("session", route.session);
  if (route.session !== null && route.panel !== null) words.set("panel", route.panel);
  if (route.grid) words.set("grid", ON);
  if (route.settings) words.set("settings", ON);
  if (route.creating) words.set("new", ON);
  if (route.palette) words.set("palette", ON);
  if (words.get("panel") === "diff" && route.finish) words.set("finish", ON);
  if (route.usage) words.set("usage", route.usage);
  return words.size > 0 ? `/?${words}` : "/";
}

export const route = signal(routeOf(location.search));

type Dialog = "settings" | "creating" | "palette" | "finish" | "usage";
export const NO_DIALOG: Record<Dialog, false> = {
  settings: false,
  creating: false,
  palette: false,
  finish: false,
  usage: false,
};

/** While the entry of a dialog is being taken back, which a browser does in its own time: what is done after that. */
let left: (() => void) | null = null;

/** An entry of the history that this page made: there is one of ours before it. */
const OURS = "ours";

/** Show something else. `replace` is for what nobody wants to come back to. */
export function go(change: Partial<Route>, how: "push" | "replace" = "push"): void {
  if (left) {
    const before = left;
    left = () => {
      before();
      go(change, how);
    };
    return;
  }
  const { session, finish } = route.value;
  const isElsewhere = change.session !== undefined && change.session !== session;
  const address = addressOf({ ...route.value, finish: finish && !isElsewhere, ...change });
  if (address === addressOf(route.value)) return;
  if (how === "push") history.pushState(OURS, "", address);
  else history.replaceState(history.state, "", address);
  route.value = routeOf(address.slice(1));
}

/** Show something else, also from a dialog: that is closed, and no step of the way back. */
export function goFromDialog(change: Partial<Route>): void {
  const { settings, creating, palette, finish, usage } = route.value;
  go({ ...NO_DIALOG, ...change }, settings || creating || palette || finish || usage ? "replace" : "push");
}

/**
 * Close a dialog, then do something. Its entry of the history is taken back, so that Back needs no second step; a link
 * that led here has none before it.
 */
export function leaveDialog(dialog: Dialog, then: () => void = () => undefined): void {
  if (!route.value[dialog] || left) return;
  if (history.state === OURS) {
    left = then;
    history.back();
  } else {
    go({ [dialog]: false }, "replace");
    then();
  }
}

/** Follow Back and Forward. */
export function followHistory(): void {
  addEventListener("popstate", () => {
    route.value = routeOf(location.search);
    const then = left;
    left = null;
    then?.();
  });
}
