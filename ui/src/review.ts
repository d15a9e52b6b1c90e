/** What a person notes while reading a session's changes: comments that are sent together, and files that were viewed. */

import { signal } from "@preact/signals";
import { commentOn, type PatchFile, type PatchLine } from "./patch";

export interface Comment {
  readonly line: PatchLine;
  readonly text: string;
}

const VIEWED = "viewed";
const MOST_VIEWED = 500;

/** By session, in the order in which they were written. A reload keeps none: they are sent, or they are gone. */
export const comments = signal<ReadonlyMap<string, readonly Comment[]>>(new Map());
export const viewed = signal<ReadonlySet<string>>(new Set(restored()));

export const placeOf = (line: PatchLine): string => `${line.kind === "deleted" ? "-" : "+"}${line.line} ${line.path}`;

export const commentsOf = (session: string): readonly Comment[] => comments.value.get(session) ?? [];

/** One comment for each line; an empty one takes it back. */
export function setComment(session: string, line: PatchLine, text: string): void {
  const others = commentsOf(session).filter((comment) => placeOf(comment.line) !== placeOf(line));
  const all = text.trim() ? [...others, { line, text: text.trim() }] : others;
  comments.value = new Map(comments.value).set(session, all);
}

/** Those that were written or changed since stay. */
export function dropComments(session: string, dropped: readonly Comment[]): void {
  const left = commentsOf(session).filter((comment) => !dropped.includes(comment));
  comments.value = new Map(comments.value).set(session, left);
}

/** All comments as one prompt. */
export const reviewText = (all: readonly Comment[]): string =>
  all.map((comment) => commentOn(comment.line, comment.text)).join("\n\n");

/** A file counts as viewed as long as its changes stay the same. */
export function viewKey(session: string, file: PatchFile): string {
  let digest = 5381;
  for (const line of file.lines)
    for (let at = 0; at < line.text.length; at++) digest = ((digest * 33) ^ line.text.charCodeAt(at)) >>> 0;
  return `${session} ${file.path} ${file.lines.length} ${digest.toString(36)}`;
}

export function setViewed(key: string, is: boolean): void {
  const all = new Set(viewed.value);
  if (is) all.add(key);
  else all.delete(key);
  viewed.value = new Set([...all].slice(-MOST_VIEWED));
  try {
    localStorage.setItem(VIEWED, JSON.stringify([...viewed.value]));
  } catch {
    // it is known until the page is closed
  }
}

function restored(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(VIEWED) ?? "[]");
    return Array.isArray(kept) ? kept.filter((key) => typeof key === "string") : [];
  } catch {
    return [];
  }
}
