/** Sessions and commands, found by what is typed. */

import { renaming, signOut } from "./actions";
import { set, snoozes } from "./deeds";
import { choicesOf } from "./handover";
import { offersOf } from "./offers";
import { compact, grouping, needYou, showArchived, usual } from "./rail";
import { go, type Panel } from "./router";
import { inOrder } from "./sections";
import type { Session } from "./shapes";
import { creating, grid, hasGrid, mayBegin, mayChange, notify, open, shown } from "./store";
import { byName, matches, whereabouts } from "./words";

/** More than this nobody reads; another letter finds less. */
const MOST = 50;

export interface Entry {
  key: string;
  title: string;
  hint: string;
  session?: Session;
  deed: () => void;
}

/**
 * A session of this very name is found first, then those whose names begin with it or have it, then the others; among
 * these, who needs a person. Commands come last, found by their words.
 */
export function entries(wanted: string): Entry[] {
  const found = byName(inOrder(usual.value.filter((session) => matches(session, wanted.trim()))), wanted.trim());
  const words = wanted.toLowerCase().split(/\s+/);
  const can = commands().filter(({ title }) => words.every((word) => title.toLowerCase().includes(word)));
  return [...found.slice(0, MOST).map(entryOf), ...can];
}

const entryOf = (session: Session): Entry => ({
  key: session.id,
  title: session.name,
  hint: [session.headline, whereabouts(session)].filter(Boolean).join(" · "),
  session,
  deed: () => open(session.id),
});

/** The next session after the open one that needs somebody; from the last back to the first. */
export function nextThatNeedsMe(): void {
  const all = inOrder(needYou.value);
  const at = all.findIndex((session) => session.id === shown.peek()?.id);
  const next = all[(at + 1) % all.length];
  if (next) open(next.id);
  else notify("Nobody needs you.", "note");
}

function commands(): Entry[] {
  const made: Entry[] = [];
  const add = (title: string, deed: () => void, hint = "") => made.push({ key: title, title, hint, deed });
  const session = shown.value;
  if (mayBegin.value) add("New session", () => (creating.value = true), "n");
  if (needYou.value.length > 0) add("Next that needs me", nextThatNeedsMe, "g");
  if (session) ofSession(session, add);
  add("Home", () => go({ session: null, grid: false }));
  if (hasGrid.value) add(grid.value ? "Leave the grid" : "Grid", () => go({ grid: !grid.value }));
  const other = grouping.value === "state" ? "project" : "state";
  add(`List by ${other}`, () => (grouping.value = other));
  add(compact.value ? "Three lines each" : "One line each", () => (compact.value = !compact.value));
  add(showArchived.value ? "Hide archived" : "Show archived", () => (showArchived.value = !showArchived.value));
  add("Usage", () => go({ usage: "day" }));
  add("Settings and keys", () => go({ settings: true }), "?");
  add("Sign out", () => void signOut());
  return made;
}

const PANELS: [Panel, string][] = [
  ["diff", "Diff"],
  ["timeline", "Timeline"],
  ["explain", "Why"],
];

/** Actions that open one of these. */
const IN_DRAWERS = ["review", "explain"];

function ofSession(session: Session, add: (title: string, deed: () => void) => void): void {
  const { name } = session;
  for (const [panel, word] of PANELS) add(`${word} of ${name}`, () => go({ panel, grid: false }));
  if (!mayChange.value) return;
  for (const { name: action, word, deed } of offersOf(session)) {
    if (!IN_DRAWERS.includes(action)) add(`${word}: ${name}`, deed);
  }
  for (const { word, deed } of choicesOf(session)) add(`${word}: ${name}`, deed);
  add(`Rename…: ${name}`, () => (renaming.value = session));
  add(`${session.pinned ? "Unpin" : "Pin"}: ${name}`, () => void set(session, { pinned: !session.pinned }));
  for (const [word, snooze_s] of snoozes(new Date())) add(`${word}: ${name}`, () => void set(session, { snooze_s }));
}
