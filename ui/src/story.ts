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
]);

export function headline(line: StoryLine): string {
  const change = line["to"]
    ? line["from"]
      ? `${said(line["from"])} → ${said(line["to"])}`
      : said(line["to"])
    : line.event === "attention"
      ? said(line["headline"])
      : line.event;
  return line["run"] ? `${change} (run ${said(line["run"])})` : change;
}

export function evidence(line: StoryLine): string {
  const who = line["actor"] ?? line["by"];
  return [...(who ? [`by ${said(who)}`] : []), ...pairs(line)].join(" · ");
}

/** The run that was there at that line; 0 before the first one. */
export const runOf = (line: StoryLine): number => (typeof line["run"] === "number" ? line["run"] : 0);

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
