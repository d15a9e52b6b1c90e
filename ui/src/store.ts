/** What the page knows: the hub's sessions as they were last told, and what this page has open. */

import { computed, signal } from "@preact/signals";
import type { Link } from "./connection";
import type { HubMessage } from "./messages";
import type { Session } from "./shapes";
import { inOrder, isListed, label, matches } from "./words";

export type Panel = "explain" | "timeline" | "diff";
export interface Notice {
  id: number;
  text: string;
  kind: "error" | "note";
}

const NOTICE_MS = 8000;

// the hub's
export const sessions = signal<ReadonlyMap<string, Session>>(new Map());
export const known = signal(false);
export const link = signal<Link>("connecting");
export const role = signal<string | null | undefined>(undefined);

// the page's
export const tabs = signal<readonly string[]>(restored());
export const current = signal<string | null>(null);
export const grid = signal(false);
export const panel = signal<Panel | null>(null);
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
  const usual = (one: Session) => isListed(one) || (showArchived.value && one.record === "archived") || one.record === byName;
  return inOrder(sessions.value.values()).filter(
    (one) => (record.value ? one.record === record.value : usual(one)) && (!wanted || matches(one, wanted)),
  );
});
export const shown = computed(() => (current.value === null ? undefined : sessions.value.get(current.value)));

/** A session's label at this moment. Only one that counts time is drawn again as time goes by. */
export const labelOf = (session: Session): string => label(session, session.quiet_since ? now.value : 0);

/** What did not change stays the very same object, so nothing of it is drawn again. */
export function replaceAll(all: readonly Session[]): void {
  const before = sessions.value;
  sessions.value = new Map(all.map((one) => [one.id, unchanged(before.get(one.id), one)]));
  known.value = true;
  for (const tab of tabs.value) if (!sessions.value.has(tab)) close(tab);
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
      sessions.value = rest;
      close(message.sessionId);
      break;
    }
    case "error":
      notify(message.message);
      break;
  }
}

export function open(id: string): void {
  if (!tabs.value.includes(id)) tabs.value = [...tabs.value, id];
  current.value = id;
  remember();
}

export function close(id: string): void {
  const at = tabs.value.indexOf(id);
  if (at >= 0) tabs.value = tabs.value.filter((one) => one !== id);
  if (current.value === id) current.value = tabs.value[Math.min(at, tabs.value.length - 1)] ?? null;
  remember();
}

let lastNotice = 0;

export function notify(text: string, kind: Notice["kind"] = "error"): void {
  const id = ++lastNotice;
  notices.value = [...notices.value.filter((one) => one.text !== text), { id, text, kind }].slice(-4);
  setTimeout(() => dismiss(id), NOTICE_MS);
}

export function dismiss(id: number): void {
  notices.value = notices.value.filter((one) => one.id !== id);
}

/** Open tabs outlive a reload, in this browser tab. */
function remember(): void {
  sessionStorage.setItem("tabs", JSON.stringify({ tabs: tabs.value, current: current.value }));
}

function restored(): string[] {
  try {
    const kept = JSON.parse(sessionStorage.getItem("tabs") ?? "{}") as { tabs?: string[] };
    return Array.isArray(kept.tabs) ? kept.tabs.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

export function restoreCurrent(): void {
  try {
    const kept = JSON.parse(sessionStorage.getItem("tabs") ?? "{}") as { current?: string };
    current.value = kept.current && tabs.value.includes(kept.current) ? kept.current : (tabs.value[0] ?? null);
  } catch {
    current.value = null;
  }
}
