/** What the page knows: the hub's sessions as they were last told, and what this page has open. */

import { batch, computed, effect, signal } from "@preact/signals";
import type { Link } from "./connection";
import { go, type Route, route } from "./router";
import type { HubMessage, Session } from "./shapes";
import { isListed, label } from "./words";

export interface Notice {
  id: number;
  text: string;
  kind: "error" | "note";
  /** What takes back what the notice tells. */
  undo?: { word: string; deed: () => void } | undefined;
}

const NOTICE_MS = 8000;
const UNDO_MS = 10_000;
const TABS = "tabs";

// the hub's
export const sessions = signal<ReadonlyMap<string, Session>>(new Map());
export const known = signal(false);
export const link = signal<Link>("connecting");
export const role = signal<string | null | undefined>(undefined);
export const may = signal<readonly string[]>([]);

// the page's
export const tabs = signal<readonly string[]>(restored());
export const current = computed(() => route.value.session);
export const grid = computed(() => route.value.grid);
/** Whether there is more than one screen to look at. */
export const hasGrid = computed(() => {
  let live = 0;
  for (const session of sessions.value.values()) if (session.live && ++live > 1) return true;
  return grid.value;
});
export const panel = computed(() => route.value.panel);
/** Whether a new session is being described. It has an address, so that Back leaves it. */
export const creating = {
  get value(): boolean {
    return route.value.creating;
  },
  set value(wanted: boolean) {
    go({ creating: wanted }, wanted ? "push" : "replace");
  },
};
export const notices = signal<readonly Notice[]>([]);
export const now = signal(Date.now());
/** The same, for what counts no seconds: most of a long list is then left alone. */
export const minute = signal(Date.now());

/** What the hub lets this page do. It says so, and refuses all else. */
export const mayChange = computed(() => may.value.includes("change"));
/** Whether sessions begin in pods here, as far as the hub has said. */
export const hasPods = signal(false);
/** Whether one could begin there since: a cluster that goes away closes nobody's form. */
export const hadCluster = signal(false);
export const mayManage = computed(() => may.value.includes("manage"));
/** Folders of the hub's machine are its owners'; a pod is for everybody who may have a session. */
export const mayBegin = computed(() => mayManage.value || (may.value.includes("create") && hadCluster.value));
export const count = computed(() => [...sessions.value.values()].filter(isListed).length);
export const shown = computed(() => (current.value === null ? undefined : sessions.value.get(current.value)));

/** A session's label at this moment. Only one that counts time is drawn again as time goes by. */
export const labelOf = (session: Session): string => label(session, session.quiet_since ? now.value : 0);

/** What did not change stays the very same object, so nothing of it is drawn again. */
export function replaceAll(all: readonly Session[]): void {
  const last = sessions.value;
  batch(() => {
    sessions.value = new Map(all.map((session) => [session.id, unchanged(last.get(session.id), session)]));
    known.value = true;
    for (const tab of tabs.value) if (!sessions.value.has(tab)) close(tab, "replace");
  });
}

function unchanged(before: Session | undefined, after: Session): Session {
  return before && drawn(before) === drawn(after) ? before : after;
}

/** All of a session but when it last wrote something, which nothing shows. */
const drawn = (session: Session): string => JSON.stringify({ ...session, last_activity_at: null });

/** One that was made here. What the hub has told of it since is newer. */
export function add(session: Session): void {
  if (!sessions.value.has(session.id)) sessions.value = new Map(sessions.value).set(session.id, session);
}

/** In their order, and drawn once. */
export function applyAll(messages: readonly HubMessage[]): void {
  const all = new Map(sessions.value);
  const gone: string[] = [];
  let changed = false;
  batch(() => {
    for (const message of messages) {
      switch (message.type) {
        case "session.created":
        case "session.updated":
        case "session.status":
          all.set(message.session.id, message.session);
          changed = true;
          break;
        case "session.removed":
          changed = all.delete(message.sessionId) || changed;
          gone.push(message.sessionId);
          break;
        case "error":
          notify(message.message);
          break;
      }
    }
    if (changed) sessions.value = all;
    for (const id of gone) if (!all.has(id)) close(id, "replace");
  });
}

/** Its tab comes with the address. */
export function open(id: string, beside: Partial<Route> = {}): void {
  go({ session: id, grid: false, ...beside });
}

export function close(id: string, how: "push" | "replace" = "push"): void {
  const at = tabs.value.indexOf(id);
  if (at < 0) return;
  batch(() => {
    tabs.value = tabs.value.filter((tab) => tab !== id);
    if (current.value === id) go({ session: tabs.value[Math.min(at, tabs.value.length - 1)] ?? null }, how);
  });
}

/** The session that the address names has a tab, however it came to be named; one that is not there leads to the list. */
effect(() => {
  const id = current.value;
  if (id === null || !known.value || tabs.value.includes(id)) return;
  if (sessions.value.has(id)) tabs.value = [...tabs.value, id];
  else {
    go({ session: null }, "replace");
    notify("There is no session at this address.");
  }
});

let lastNotice = 0;

export function notify(text: string, kind: Notice["kind"] = "error", undo?: Notice["undo"]): void {
  const id = ++lastNotice;
  notices.value = [...notices.value.filter((notice) => notice.text !== text), { id, text, kind, undo }].slice(-4);
  setTimeout(() => dismiss(id), undo ? UNDO_MS : NOTICE_MS);
}

export function dismiss(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

/** Open tabs outlive a reload, in this browser tab. Which one is shown is the address's word. */
function restored(): string[] {
  try {
    const kept = JSON.parse(sessionStorage.getItem(TABS) ?? "[]") as unknown;
    return Array.isArray(kept) ? kept.filter((id) => typeof id === "string") : [];
  } catch {
    return [];
  }
}

export function keepTabs(): void {
  effect(() => sessionStorage.setItem(TABS, JSON.stringify(tabs.value)));
}

/** Sessions that could be shown as a chat, and are shown as a terminal. */
export const inTerminal = signal<ReadonlySet<string>>(new Set());

export function toggleTerminal(id: string): void {
  const now = new Set(inTerminal.value);
  if (!now.delete(id)) now.add(id);
  inTerminal.value = now;
}
