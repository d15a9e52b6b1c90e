/** What a new session is to be: names made of what was typed, projects, what is remembered of them, and words for errors. */

import { ENDED } from "./sections";
import type { Folders, Session } from "./shapes";
import { project } from "./words";

const LONGEST_SLUG = 40;
/** So many are offered at once. */
export const MOST_PROJECTS = 6;
const MOST_HABITS = 50;

/** A branch's name from the first line of a text that has words; empty when there is none. */
export function slug(text: string): string {
  const plain = text
    .normalize("NFD")
    .replace(/[\u0300-\u036f'’]/g, "")
    .normalize("NFC")
    .toLowerCase();
  const words = plain
    .split("\n")
    .map((line) => line.match(/[\p{L}\p{N}]+/gu))
    .find((found) => found !== null);
  let name = "";
  for (const word of words ?? []) {
    const longer = name ? `${name}-${word}` : [...word].slice(0, LONGEST_SLUG).join("");
    if (longer.length > LONGEST_SLUG && name) break;
    name = longer;
  }
  return name;
}

export interface Project {
  path: string;
  name: string;
  /** How many of its sessions are not over. */
  live: number;
}

/** Where sessions work, the newest first; a worktree counts as its repository. */
export function projectsOf(sessions: Iterable<Session>): Project[] {
  const found = new Map<string, { newest: string; live: number }>();
  for (const session of sessions) {
    const path = project(session);
    const { newest, live } = found.get(path) ?? { newest: "", live: 0 };
    const made = session.created_at ?? "";
    found.set(path, { newest: made > newest ? made : newest, live: live + (session.section === ENDED ? 0 : 1) });
  }
  found.delete("");
  const namesakes = new Map<string, number>();
  for (const path of found.keys()) namesakes.set(last(path, 1), (namesakes.get(last(path, 1)) ?? 0) + 1);
  return [...found]
    .sort(([, a], [, b]) => Number(a.newest < b.newest) - Number(a.newest > b.newest))
    .map(([path, { live }]) => ({ path, name: last(path, namesakes.get(last(path, 1)) === 1 ? 1 : 2), live }));
}

/** Whether a project is a repository that is cloned, and no folder. */
export const isAddress = (project: string): boolean => project !== "" && !/^[/~]/.test(project);

const last = (path: string, parts: number): string => path.split("/").filter(Boolean).slice(-parts).join("/") || "/";

export function newestOf(sessions: Iterable<Session>): Session | undefined {
  let newest: Session | undefined;
  for (const session of sessions)
    if (!newest || (session.created_at ?? "") > (newest.created_at ?? "")) newest = session;
  return newest;
}

/** A path as people write it. */
export const shortened = (path: string, home: string): string =>
  home.length > 1 && (path === home || path.startsWith(`${home}/`)) ? `~${path.slice(home.length)}` : path;

const bare = (path: string): string => path.replace(/(?<=.)\/+$/, "");

/** A folder's one name, however it was typed. */
export const fullPath = (typed: string, home: string): string =>
  bare(/^~(\/|$)/.test(typed) ? home + typed.slice(1) : typed);

/** Whether the hub's answer is about what is typed now. */
export const isAbout = (found: Folders, typed: string): boolean => fullPath(typed, found.home) === bare(found.path);

/** What is typed once a folder was taken from the list: its own are offered next. */
export const completed = (path: string, found: Folders, typed: string): string =>
  `${typed.startsWith("~") ? shortened(path, found.home) : path}/`;

/** Paths that what is typed may become. When it is whole already, nothing is offered. */
export function offered(found: Folders | undefined, typed: string): Folders["folders"] {
  if (!found || !isAbout(found, typed)) return [];
  const rest = found.folders.filter((folder) => folder.path !== found.path);
  return rest.length === 0 ? [] : found.folders;
}

/** What was chosen for a project the last time. */
export interface Habit {
  agent: string;
  worktree: boolean;
}

export function habitsOf(kept: string | null): Map<string, Habit> {
  try {
    const all = Object.entries(JSON.parse(kept ?? "{}") as Record<string, Partial<Habit>>);
    return new Map(
      all.map(([path, habit]) => [path, { agent: String(habit.agent ?? ""), worktree: habit.worktree !== false }]),
    );
  } catch {
    return new Map();
  }
}

/** To be kept: the project's habit comes last, and the oldest is forgotten when there are many. */
export function withHabit(habits: ReadonlyMap<string, Habit>, path: string, habit: Habit): string {
  const rest = [...habits].filter(([other]) => other !== path);
  return JSON.stringify(Object.fromEntries([...rest, [path, habit]].slice(-MOST_HABITS)));
}

/** The hub's words for a person at a form: no commands to type. */
export function inWords(error: { code?: string; field?: string; message: string; hint?: string }): string {
  if (error.code === "name_taken") return "Another session has this name. Choose another one.";
  const own = error.field ? error.message.replace(`${error.field}: `, "") : error.message;
  const message = own.replace(/^String should/, "It should");
  const hint = error.hint && !/\bhitch\b/.test(error.hint) ? error.hint : "";
  return [message, hint].filter(Boolean).map(sentence).join(" ");
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;
