/** What is done with one session, or with several at once. */

import { act, attempt, question } from "./actions";
import { ask, sessionPath } from "./api";
import { markSeen } from "./presence";
import { selected } from "./rail";
import { FINISHED, NEEDS_YOU } from "./sections";
import { type Changes, SEEN, type Session } from "./shapes";
import { notify } from "./store";

const HOUR_S = 3600;
const MORNING_H = 9;

export const set = (session: Session, changes: Changes): Promise<boolean> =>
  attempt(() => ask("PATCH", sessionPath(session.id), changes));

export const isSnoozed = (session: Session, now: number): boolean =>
  session.snoozed_until !== null && Date.parse(session.snoozed_until) > now;

/** Whether it is listed elsewhere once somebody has looked at it. */
export const canBeSeen = ({ section, status }: Session): boolean =>
  section === FINISHED || (section === NEEDS_YOU && SEEN.includes(status));

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

export const which = (all: readonly Session[], deed: string): Session[] =>
  all.filter((session) => session.actions.includes(deed));

/** What an agent had in mind is gone with it, so it is asked first. */
export function stop(all: readonly Session[]): void {
  question.value = {
    title: `Stop ${named(all)}?`,
    text: `${all.length === 1 ? "The" : "Each"} agent gets 10 s to quit, then it is killed. Files and output stay.`,
    yes: "Stop",
    deed: () => {
      unselect(all);
      for (const session of all) void act(session, "stop");
    },
  };
}

/** A live one is stopped first, and so it is asked first. */
export function restart(session: Session): void {
  const deed = () => void act(session, "restart");
  const text =
    "The agent gets 10 s to quit, then it is killed. The next run starts from scratch; files and output stay.";
  if (session.live) question.value = { title: `Restart ${session.name}?`, text, yes: "Restart", deed };
  else deed();
}

/** They leave the list, and can be called back for a while. */
export async function archive(all: readonly Session[]): Promise<void> {
  unselect(all);
  const done = await Promise.all(all.map((session) => act(session, "archive")));
  const gone = all.filter((_, at) => done[at]);
  const back = () => {
    for (const session of gone) void act(session, "unarchive");
  };
  if (gone.length > 0) notify(`Archived ${named(gone)}.`, "note", { word: "Undo", deed: back });
}

export function markAllSeen(all: readonly Session[]): void {
  for (const session of all) markSeen(session.id);
  unselect(all);
}

function unselect(all: readonly Session[]): void {
  const done = new Set(all.map(({ id }) => id));
  selected.value = new Set([...selected.value].filter((id) => !done.has(id)));
}

const named = (all: readonly Session[]): string => (all.length === 1 ? all[0]!.name : `${all.length} sessions`);
