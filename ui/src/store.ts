/** What the page knows: the hub's sessions as they were last told, and what this page has open. */

import { batch, computed, effect, signal } from "@preact/signals";
import type { Link } from "./connection";
import { go, route } from "./router";
import type { HubMessage, Session } from "./shapes";
import { inOrder, isListed, label, matches } from "./words";

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

// the page's
const before = restored();
export const tabs = signal<readonly string[]>(before.tabs);
export const current = computed(() => route.value.session);
export const grid = computed(() => route.value.grid);
export const panel = computed(() => route.value.panel);
export const filter = signal("");
export const showArchived = signal(false);
/** The record that alone is listed; empty for the usual ones. */
export const record = signal("");
export const creating = signal(false);
export const notices = signal<readonly Notice[]>([]);
export const now = signal(Date.now());

export const owner = computed(() => role.value === "owner");
export const count = computed(() => [...sessions.value.values()].filter(isListed).length);
export const listed = computed(() => {
  const wanted = filter.value.trim();
  const byName = /\b(error|archived)\b/i.exec(wanted)?.[1]?.toLowerCase();
  const usual = (session: Session) =>
    isListed(session) || (showArchived.value && session.record === "archived") || session.record === byName;
  return inOrder(sessions.value.values()).filter(
    (session) =>
      (record.value ? session.record === record.value : usual(session)) && (!wanted || matches(session, wanted)),
  );
});
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

export function apply(message: HubMessage): void {
  switch (message.type) {
    case "session.created":
    case "session.updated":
    case "session.status":
      sessions.value = new Map(sessions.value).set(message.session.id, message.session);
      break;
    case "session.removed": {
      const rest = new Map(sessions.value);
      rest.delete(message.sessionId);
      batch(() => {
        sessions.value = rest;
        close(message.sessionId, "replace");
      });
      break;
    }
    case "error":
      notify(message.message);
      break;
  }
}

export function open(id: string): void {
  if (!tabs.value.includes(id)) tabs.value = [...tabs.value, id];
  go({ session: id });
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

/** Open tabs outlive a reload, in this browser tab. */
function restored(): { tabs: string[]; current: string | null } {
  try {
    const kept = JSON.parse(sessionStorage.getItem(TABS) ?? "{}") as { tabs?: unknown; current?: unknown };
    const open = Array.isArray(kept.tabs) ? kept.tabs.filter((id) => typeof id === "string") : [];
    return { tabs: open, current: open.find((id) => id === kept.current) ?? null };
  } catch {
    return { tabs: [], current: null };
  }
}

/** A link that signs in names no session: what was shown in this browser tab before is shown again. */
export function restoreCurrent(): void {
  if (current.value === null) go({ session: before.current }, "replace");
  effect(() => sessionStorage.setItem(TABS, JSON.stringify({ tabs: tabs.value, current: current.value })));
}
