/** Texts about a session. Status itself is derived by the hub alone: here its words only get a colour and an order. */

import type { Session } from "./shapes";

export const CRASHED = "Session crashed. Click to restart.";
export const MAY_BE_RESUMABLE = "may be resumable when agent supports it";
export const ARCHIVED = "Session is archived";

const LIVE = new Set(["starting", "running", "stopping"]);
const ATTENTION: Record<string, string> = { blocked: "blocked", waiting: "waiting" };
const COLOURS: Record<string, string> = {
  created: "grey",
  starting: "blue",
  running: "green",
  stopping: "blue",
  stopped: "grey",
  completed: "grey",
  failed: "red",
  orphaned: "red",
  stale: "yellow",
  unknown: "yellow",
  suspended: "grey",
  archived: "grey",
  error: "red",
};

export const isLive = (session: Session): boolean => LIVE.has(session.state);
export const isListed = (session: Session): boolean => session.record === "active" || session.record === "suspended";
export const hasCrashed = (session: Session): boolean => session.status === "failed";
export const takesInput = (session: Session): boolean => session.record === "active" && session.state === "running";
/** A prompt also wakes one whose process had done its work, or was ended because it was idle. */
export const takesPrompt = (session: Session): boolean =>
  takesInput(session) || (session.record === "active" && (session.state === "completed" || session.exit?.intent === "reaper"));
/** One that a newer version wrote, or that cannot be read: it is there, and nothing can be done with it. */
export const isForeign = (session: Session): boolean => session.state === "unknown";
export const canResume = (session: Session): boolean =>
  !isLive(session) && !isForeign(session) && session.state !== "created" && isListed(session);

export function colour(session: Session): string {
  if (session.status === "running") {
    if (session.attention === "blocked") return "orange";
    if (session.attention === "waiting") return "blue";
  }
  return COLOURS[session.status] ?? "grey";
}

/** Blocked, waiting, failed, then the rest. */
export function urgency(session: Session): number {
  if (!isListed(session)) return 9;
  if (session.status === "running" && session.attention === "blocked") return 0;
  if (session.status === "running" && session.attention === "waiting") return 1;
  if (session.status === "failed" || session.status === "orphaned") return 2;
  if (session.status === "stale" || session.status === "unknown") return 3;
  return isLive(session) ? 4 : 5;
}

export function place(session: Session): string {
  const { branch, path } = session.workspace;
  return branch ?? path.split("/").filter(Boolean).at(-1) ?? path;
}

/** The agent and where it works, as far as anything is known. */
export const whereabouts = (session: Session): string => [session.agent, place(session)].filter(Boolean).join(" · ");

/** The hub's words; and what the agent wants, where they do not say it. */
export function label(session: Session): string {
  const wants = session.status === "running" ? ATTENTION[session.attention] : undefined;
  return wants && !session.label.includes(wants) ? `${session.label} · ${wants}` : session.label;
}

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

export function matches(session: Session, wanted: string): boolean {
  const text = [session.name, session.agent, place(session), session.label, session.attention, session.record, session.description]
    .join(" ")
    .toLowerCase();
  return wanted.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

export function inOrder(sessions: Iterable<Session>): Session[] {
  return [...sessions].sort((a, b) => urgency(a) - urgency(b) || a.index - b.index || a.id.localeCompare(b.id));
}

/** As the command line writes it: the two largest units, 45s, 3m 5s, 2h 0m, 4d 3h. */
export function duration(seconds: number): string {
  const left = Math.max(0, Math.floor(seconds));
  if (left < 60) return `${left}s`;
  if (left < 3600) return `${Math.floor(left / 60)}m ${left % 60}s`;
  if (left < 86400) return `${Math.floor(left / 3600)}h ${Math.floor((left % 3600) / 60)}m`;
  return `${Math.floor(left / 86400)}d ${Math.floor((left % 86400) / 3600)}h`;
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
