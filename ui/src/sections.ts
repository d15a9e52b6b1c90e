/** The list in parts. Which part a session is in, and its rank, are the hub's judgement; here they are only put in order. */

import { SECTIONS, type Session } from "./shapes";
import { project, projectName } from "./words";

type Section = keyof typeof SECTIONS;
export const NEEDS_YOU: Section = "needs-you";
export const FINISHED: Section = "finished";
export const WORKING: Section = "working";
export const QUIET: Section = "quiet";
export const ENDED: Section = "ended";
/** Old failures do not push down what lives: more than this many are listed only for who asks. */
export const MOST_FAILED = 5;

export interface Part {
  key: string;
  title: string;
  /** A whole path, for instance. */
  hint: string;
  count: number;
  rows: readonly Session[];
  /** Listed behind a line of its own, which is folded at first. */
  rest: readonly Session[];
  restWord: string;
}

/** What is folded is not put in order: there may be thousands. */
export function byState(sessions: Iterable<Session>, isFolded: (key: string) => boolean = () => false): Part[] {
  const titles = Object.entries(SECTIONS);
  const found = new Map(titles.map(([key]) => [key, [] as Session[]]));
  for (const session of sessions) (found.get(session.section) ?? found.get(ENDED)!).push(session);
  return titles.flatMap(([key, title]) => {
    const all = isFolded(key) ? found.get(key)! : inOrder(found.get(key)!);
    if (all.length === 0) return [];
    const [rows, rest] = key === NEEDS_YOU ? fewFailed(all) : [all, []];
    return [{ key, title, hint: "", count: all.length, rows, rest, restWord: "more failed" }];
  });
}

export function byProject(sessions: Iterable<Session>): Part[] {
  const found = new Map<string, Session[]>();
  for (const session of sessions) {
    const key = project(session);
    const known = found.get(key);
    if (known) known.push(session);
    else found.set(key, [session]);
  }
  const parts = [...found].map(([key, some]) => {
    const all = inOrder(some);
    const rows = all.filter((session) => session.section !== ENDED);
    const rest = all.filter((session) => session.section === ENDED);
    return { key, title: projectName(key), hint: key, count: rows.length, rows, rest, restWord: "ended" };
  });
  const best = (part: Part) => (part.rows[0] ?? part.rest[0])!.rank;
  return parts.sort((a, b) => best(a) - best(b) || a.title.localeCompare(b.title));
}

/** Pinned ones first, then the smallest rank, then the newest. */
export function inOrder(sessions: readonly Session[]): Session[] {
  return [...sessions].sort(
    (a, b) => Number(b.pinned) - Number(a.pinned) || a.rank - b.rank || later(a.since, b.since) || a.index - b.index,
  );
}

/** Times as the hub writes them are in the order of their letters. */
function later(a: string | null, b: string | null): number {
  if (a === b) return 0;
  return (a ?? "") < (b ?? "") ? 1 : -1;
}

/** Its run is over, and somebody has to see to it. */
export const hasFailed = (session: Session): boolean => session.section === NEEDS_YOU && !session.live;

function fewFailed(all: readonly Session[]): [Session[], Session[]] {
  let left = MOST_FAILED;
  const [rows, rest]: [Session[], Session[]] = [[], []];
  for (const session of all) (!hasFailed(session) || session.pinned || left-- > 0 ? rows : rest).push(session);
  // one line instead of one row saves nothing
  return rest.length > 1 ? [rows, rest] : [[...rows, ...rest], []];
}

/**
 * What was listed, where it was, with what is now known of it. Nothing comes and nothing moves, so that a click hits what
 * was aimed at; what is not listed any more goes.
 */
export function inPlace(before: readonly Part[], now: readonly Part[]): Part[] {
  const known = new Map(now.flatMap((part) => [...part.rows, ...part.rest]).map((session) => [session.id, session]));
  const counts = new Map(now.map((part) => [part.key, part.count]));
  const still = (sessions: readonly Session[]) => sessions.flatMap((session) => known.get(session.id) ?? []);
  return before.map((part) => ({
    ...part,
    count: counts.get(part.key) ?? 0,
    rows: still(part.rows),
    rest: still(part.rest),
  }));
}

/** Whether the two list the same sessions at the same places. */
export function isSameOrder(one: readonly Part[], other: readonly Part[]): boolean {
  const places = (parts: readonly Part[]) =>
    parts.map((part) => [part.key, ...[...part.rows, "|" as const, ...part.rest].map(idOf)].join(" ")).join("\n");
  return places(one) === places(other);
}

const idOf = (session: Session | string): string => (typeof session === "string" ? session : session.id);
