/** The session's story in words. */

import type { StoryLine } from "./shapes";

/** Told elsewhere, or more than anybody wants to read here. */
const TOLD = new Set([
  "at",
  "event",
  "run",
  "from",
  "to",
  "reason",
  "actor",
  "by",
  "schema",
  "record",
  "pid",
  "since",
  "headline",
  "colour",
  "text",
  "state",
  "kind",
  "message",
  "request",
  "options",
  "source",
  "choice",
  "question",
  "background",
  "until",
]);

/** Where a report comes from. Others are agents' own. */
const SOURCES: Record<string, string> = {
  osc7501: "it says so itself",
  hooks: "by its hooks",
  screen: "seen on its screen",
  title: "seen in its title",
  acp: "told over ACP",
  delivered: "it was given a prompt or an answer",
  contradiction: "its sources disagree",
};

export function headline(line: StoryLine): string {
  const change = line["to"]
    ? line["from"]
      ? `${said(line["from"])} → ${said(line["to"])}`
      : said(line["to"])
    : line.event === "attention"
      ? said(line["headline"])
      : line.event;
  const words = change.charAt(0).toUpperCase() + change.slice(1);
  return line["run"] ? `${words} (run ${said(line["run"])})` : words;
}

/** What was said, and what about. */
export function content(line: StoryLine): string {
  const told = line["reason"] ?? line["text"] ?? line["message"];
  return said(told) || [line["choice"], line["question"]].map(said).filter(Boolean).join(": ");
}

export function evidence(line: StoryLine): string {
  const who = line["actor"] ?? line["by"];
  const source = said(line["source"]);
  const options = Array.isArray(line["options"]) ? line["options"].join(", ") : "";
  return [
    who && `by ${said(who)}`,
    source && (SOURCES[source] ?? `by its ${source}`),
    options && `it takes ${options}`,
    line["until"] && `until ${said(line["until"])}`,
    line["background"] && `${said(line["background"])} in the background`,
    ...pairs(line),
  ]
    .filter(Boolean)
    .join(" · ");
}

/** The run that was there at that line; 0 before the first one. */
export const runOf = (line: StoryLine): number => (typeof line["run"] === "number" ? line["run"] : 0);

const ENDS = new Set<unknown>(["stopped", "completed", "failed", "orphaned"]);

export const endsRun = (line: StoryLine): boolean => line.event === "state" && ENDS.has(line["to"]);

/** Names and values, those of objects in objects too. */
function pairs(fields: object): string[] {
  return Object.entries(fields).flatMap(([key, item]: [string, unknown]) => {
    if (TOLD.has(key) || item === null || item === "") return [];
    return typeof item === "object" && !Array.isArray(item) ? pairs(item) : [`${key} ${said(item)}`];
  });
}

export function said(item: unknown): string {
  return item === null || item === undefined ? "" : typeof item === "object" ? JSON.stringify(item) : String(item);
}
