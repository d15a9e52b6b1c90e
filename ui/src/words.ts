/** Texts about a session. What it is, its colour, its rank and whether it takes a prompt are the hub's judgement. */

import type { PromptAnswer, Session } from "./shapes";
import { visible } from "./visible";

export const CRASHED = "Session crashed. Click to restart.";
export const MAY_BE_RESUMABLE = "may be resumable when agent supports it";
export const ARCHIVED = "Session is archived";

/** How long it has been quiet, in a label that counts that. */
const AGE = /\d+[smhd][^()]*(?=\))/;

export const isListed = (session: Session): boolean => session.record === "active" || session.record === "suspended";
export const hasCrashed = (session: Session): boolean => session.status === "failed";
/** What is typed goes to a run. A prompt may also start the next one. */
export const takesInput = (session: Session): boolean => session.live && session.takes_prompt;
/** One that a newer version wrote, or that cannot be read: it is there, and nothing can be done with it. */
export const isForeign = (session: Session): boolean => session.state === "unknown";
/** Whether a next run can begin: with the same conversation where that can be had. */
export const canBegin = ({ actions }: Session): boolean => actions.includes("resume") || actions.includes("restart");

/** The repository that a session works for; outside of one, its folder. */
export const project = ({ workspace }: Session): string => workspace.repository ?? workspace.path;
export const projectName = (path: string): string => path.split("/").filter(Boolean).at(-1) ?? path;

/** The agent and where it works, as far as anything is known. */
export function whereabouts(session: Session): string {
  const { branch } = session.workspace;
  const where = [projectName(project(session)), branch && `⎇ ${branch}`].filter(Boolean).join(" ");
  return [session.agent, where].filter(Boolean).join(" · ");
}

/** The hub's words, with the time that they count as it is now. */
export function label(session: Session, now: number): string {
  const since = session.quiet_since;
  return since ? session.label.replace(AGE, duration(secondsSince(since, now))) : session.label;
}

/** What is known of a prompt that was sent. */
export const receipt = ({ proof, started, waits }: PromptAnswer): string =>
  waits
    ? "Queued: the agent gets it when it is done"
    : `${proof ? `Delivered (${proof})` : "Typed, not confirmed"}${started ? ", to a new run" : ""}`;

/** Resume and restart: what the next run begins with. */
export const SAME = "The next run continues the conversation";
export const FRESH = "The next run starts from scratch";

/** How the last run ended, as a sentence. */
export function ending(session: Session): string {
  const end = session.exit;
  if (session.status === "orphaned") return sentence(session.label);
  if (session.state === "stopped" || session.status === "stopped") return "Process stopped.";
  if (end?.signal) return `Process killed by ${end.signal}.`;
  if (end?.code != null) return `Process exited with code ${end.code}.`;
  return sentence(session.label.replace(/^failed: /, "Process failed: "));
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** Characters that are shown as escapes are found as these, too. */
export function matches(session: Session, wanted: string): boolean {
  const text = [
    session.name,
    session.agent,
    project(session),
    session.workspace.path,
    session.workspace.branch,
    session.label,
    session.attention,
    session.headline,
    session.detail,
    session.record,
    session.description,
  ]
    .join(" ")
    .toLowerCase();
  const shown = wanted.includes("\\") ? visible(text).toLowerCase() : text;
  return wanted
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word) || shown.includes(word));
}

/** The best matches of a name first; the others keep their order. */
export function byName<T extends { name: string }>(found: readonly T[], wanted: string): T[] {
  const text = wanted.toLowerCase();
  if (!text) return [...found];
  const distance = ({ name }: T): number => {
    const found = [name, visible(name)].find((shown) => shown.toLowerCase().includes(text));
    const at = found?.toLowerCase().indexOf(text);
    return at === undefined ? 3 : at > 0 ? 2 : found!.length > text.length ? 1 : 0;
  };
  return found.toSorted((one, other) => distance(one) - distance(other));
}

/** As the command line writes it: the two largest units, 45s, 3m 5s, 2h 0m, 4d 3h. */
export function duration(seconds: number): string {
  const left = Math.max(0, Math.floor(seconds));
  if (left < 60) return `${left}s`;
  if (left < 3600) return `${Math.floor(left / 60)}m ${left % 60}s`;
  if (left < 86400) return `${Math.floor(left / 3600)}h ${Math.floor((left % 3600) / 60)}m`;
  return `${Math.floor(left / 86400)}d ${Math.floor((left % 86400) / 3600)}h`;
}

/** As a list has it: the largest unit, and no seconds after the first minute. */
export function elapsed(seconds: number): string {
  const left = Math.max(0, Math.floor(seconds));
  if (left < 60) return `${left}s`;
  if (left < 3600) return `${Math.floor(left / 60)}m`;
  return left < 86400 ? `${Math.floor(left / 3600)}h` : `${Math.floor(left / 86400)}d`;
}

export const secondsSince = (time: string | null, now: number): number => (time ? (now - Date.parse(time)) / 1000 : 0);

/** The words of a command line, with quotes and backslashes as a shell has them, and nothing else of a shell. */
export function argv(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const char = line[at]!;
    if (char === "\\" && quote !== "'" && at + 1 < line.length) word = (word ?? "") + line[++at]!;
    else if (quote) {
      if (char === quote) quote = "";
      else word = (word ?? "") + char;
    } else if (char === "'" || char === '"') {
      quote = char;
      word ??= "";
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + char;
  }
  if (word !== undefined) words.push(word);
  return words;
}
