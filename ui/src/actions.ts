/** What a person can do with a session. Errors become notices; what changes is told by the hub. */

import { signal } from "@preact/signals";
import { ask, fetchFile, reasonOf, sessionPath } from "./api";
import type { PromptAnswer, Session } from "./shapes";
import { endSignIn } from "./signin";
import { notify, sessions } from "./store";

/** A browser has begun to save a file by then. */
const FORGET_MS = 60_000;

export interface Question {
  title: string;
  text: string;
  yes: string;
  /** Instead of "No, keep it". */
  no?: string;
  deed: () => void;
}

/** What is asked before something is done that cannot be undone. */
export const question = signal<Question | null>(null);

type Deed = "interrupt" | "stop" | "restart" | "archive" | "unarchive" | "restore" | "cancel";

/** Whether it was done. */
export function act(session: Session, deed: Deed): Promise<boolean> {
  return attempt(async () => {
    const answer = await ask<{ notes?: string[] }>("POST", sessionPath(session.id, deed));
    for (const note of answer.notes ?? []) notify(note, "note");
  });
}

export function cancel(session: Session): void {
  question.value = {
    title: `Stop and archive ${session.name}?`,
    text: "The agent gets 10 s to quit, then it is killed. The session is archived; its files and output stay.",
    yes: "Stop and archive",
    deed: () => void act(session, "cancel"),
  };
}

/** The session whose name is being changed. */
export const renaming = signal<Session | null>(null);

export function teardown(session: Session): void {
  question.value = {
    title: `Tear down ${session.name}?`,
    text: "The container is removed. Files in the workspace stay.",
    yes: "Tear down",
    deed: () => void act(session, "stop"),
  };
}

export function remove(session: Session): void {
  question.value = {
    title: `Delete ${session.name}?`,
    text: "Its record, its story and its output are deleted. Files in its folder stay.",
    yes: "Delete",
    deed: () => void attempt(() => ask("DELETE", sessionPath(session.id))),
  };
}

/** What is known of the delivery; undefined when the prompt was refused. */
export async function prompt(
  session: Session,
  text: string,
  images: readonly string[] = [],
  force = false,
): Promise<PromptAnswer | undefined> {
  let answer: PromptAnswer | undefined;
  const shown = force ? shownBy(session) : "";
  await attempt(async () => {
    const wish = { text, images, ...(force ? { force } : {}) };
    answer = await ask<PromptAnswer>("POST", sessionPath(session.id, "prompt"), wish);
    if (force) notify(`${session.name}: typed, whatever it does with it (${shown}); not confirmed`, "note");
  });
  return answer;
}

/** What a text would be typed into that is forced upon an agent. */
const shownBy = ({ headline, detail }: Session): string => [headline, detail].filter(Boolean).join(": ");

/**
 * Before a text is forced upon an agent: it may answer what the agent shows. Whoever says yes says it to what was shown: of
 * anything else it is asked again, and an agent that takes a prompt by then gets an ordinary one.
 */
export function askToForce(session: Session, send: (force: boolean) => void): void {
  const shown = shownBy(session);
  question.value = {
    title: `Send to ${session.name} anyway?`,
    text: `It is typed whatever the agent shows, which is now: ${shown}. It may answer a permission or a dialog.`,
    yes: "Send anyway",
    no: "No, do not send",
    deed: () => {
      const now = sessions.value.get(session.id) ?? session;
      if (now.refusal && shownBy(now) !== shown) askToForce(now, send);
      else send(!!now.refusal);
    },
  };
}

/** Have a prompt back that waits for the agent. Whether that was done. */
export const takeBack = (session: Session, name: string): Promise<boolean> =>
  attempt(() => ask("DELETE", sessionPath(session.id, `prompts/${encodeURIComponent(name)}`)));

export async function downloadRecording(session: Session): Promise<void> {
  await attempt(async () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await fetchFile(sessionPath(session.id, "recording")));
    link.download = `${session.name.replace(/[^\w.-]+/g, "-")}.cast`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), FORGET_MS);
  });
}

/** Sign every tab of this browser out. */
export async function signOut(): Promise<void> {
  await attempt(async () => {
    await endSignIn();
    location.reload();
  });
}

export async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    notify(reasonOf(error));
    return false;
  }
}
