/** What is done with a row, or with several at once. */

import { act, attempt, question } from "./actions";
import { ask, sessionPath } from "./api";
import { type Offer, offersOf } from "./offers";
import { markSeen } from "./presence";
import { selected } from "./rail";
import { FINISHED, NEEDS_YOU } from "./sections";
import type { Changes, Session } from "./shapes";

const HOUR_S = 3600;
const MORNING_H = 9;

export const change = (session: Session, changes: Changes): Promise<boolean> =>
  attempt(() => ask("PATCH", sessionPath(session.id), changes));

export const isSnoozed = (session: Session, now: number): boolean =>
  session.snoozed_until !== null && Date.parse(session.snoozed_until) > now;

export const canBeSeen = (session: Session): boolean => session.section === NEEDS_YOU || session.section === FINISHED;

/** Until when, in words, and how long that is from `now`. */
export function snoozes(now: Date): [string, number][] {
  const tomorrow = new Date(now);
  tomorrow.setDate(now.getDate() + 1);
  tomorrow.setHours(MORNING_H, 0, 0, 0);
  return [
    ["Snooze for an hour", HOUR_S],
    ["Snooze until tomorrow", Math.round((tomorrow.getTime() - now.getTime()) / 1000)],
  ];
}

/** By section. Whoever starts a live one anew, or reviews what is not done, has looked at it first. */
const WHILE_LIVE: Record<string, string[]> = { [NEEDS_YOU]: ["reply", "explain"], [FINISHED]: ["review", "reply"] };

/** The most useful thing that can be done now, where one button does it. Answers have buttons of their own. */
export function firstAction(session: Session): Offer | undefined {
  const fits = (name: string) => !session.live || WHILE_LIVE[session.section]?.includes(name);
  return offersOf(session).find(({ name, leads }) => leads && name !== "answer" && fits(name));
}

export const which = (all: readonly Session[], deed: string): Session[] =>
  all.filter((session) => session.actions.includes(deed));

export function stopAll(all: readonly Session[]): void {
  question.value = {
    title: `Stop ${named(all)}?`,
    text: "An agent gets 10 s to quit, then it is killed. Its files and output stay.",
    yes: "Stop",
    deed: () => each(all, "stop"),
  };
}

export function archiveAll(all: readonly Session[]): void {
  question.value = {
    title: `Archive ${named(all)}?`,
    text: "Archived sessions leave the list. Their files and output stay.",
    yes: "Archive",
    deed: () => each(all, "archive"),
  };
}

export function markAllSeen(all: readonly Session[]): void {
  for (const session of all) markSeen(session.id);
  selected.value = new Set();
}

function each(all: readonly Session[], deed: "stop" | "archive"): void {
  selected.value = new Set();
  for (const session of all) void act(session, deed);
}

const named = (all: readonly Session[]): string => (all.length === 1 ? all[0]!.name : `${all.length} sessions`);
