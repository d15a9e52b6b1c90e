/** Answering what an agent asks, from the page: exactly the request that was shown, and once. */

import { signal } from "@preact/signals";
import { ApiError, ask, reasonOf, sessionPath } from "./api";
import type { Session } from "./shapes";
import { notify } from "./store";

export interface Request {
  /** Unlike any other of this page: run, request and moment. */
  key: string;
  request: string;
  options: string[];
  /** Whether a line of text answers it, too. */
  takesText: boolean;
}

/** For each session, what was answered here last. It stays answered, whatever became of it, until something else is asked. */
export const answered = signal<ReadonlyMap<string, string>>(new Map());

/** What the agent asks and takes an answer for; null when there is nothing. */
export function requestOf({ live, run, report }: Session): Request | null {
  if (!live || report?.state !== "blocked" || !report.request) return null;
  const { request, options, takes_text: takesText, at } = report;
  if (options.length === 0 && !takesText) return null;
  return { key: `${run} ${request} ${at}`, request, options, takesText };
}

export async function answer(
  session: Session,
  asked: Request,
  choice: string,
  message = "",
  post: typeof ask = ask,
): Promise<void> {
  if (answered.value.get(session.id) === asked.key) return;
  remember(session.id, asked.key);
  try {
    await post("POST", sessionPath(session.id, "answer"), { choice, request: asked.request, message });
  } catch (error) {
    const gone = error instanceof ApiError && error.status === 409;
    if (!gone) remember(session.id, "");
    notify(gone ? `${session.name}: already answered.` : reasonOf(error), gone ? "note" : "error");
  }
}

function remember(id: string, key: string): void {
  answered.value = new Map(answered.value).set(id, key);
}
