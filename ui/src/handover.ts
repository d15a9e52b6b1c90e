/**
 * What the catalog allows of a session: another agent goes on with its conversation, from its terminal to a chat over ACP or
 * back; and what a usage limit does.
 */

import { signal } from "@preact/signals";
import { attempt, question } from "./actions";
import { ask, sessionPath } from "./api";
import { heirsOf, meetsLimits, runsPods, startsPods } from "./catalog";
import { set } from "./deeds";
import type { Catalog, CatalogAgent, RecordAnswer, Session } from "./shapes";
import { hadCluster, hasPods, link, may, mayBegin, notify } from "./store";
import { isListed } from "./words";

/** What is known of the agents; nothing as long as nobody has asked. */
export const agents = signal<readonly CatalogAgent[]>([]);

const AGAIN_MS = 10_000;
let again: ReturnType<typeof setTimeout> | undefined;

/** Who may not see the catalog is offered nothing of it. */
export async function learnAgents(): Promise<void> {
  clearTimeout(again);
  try {
    const catalog = await ask<Catalog>("GET", "/api/catalog");
    agents.value = catalog.agents;
    hasPods.value = runsPods(catalog);
    hadCluster.value = startsPods(catalog) || (hasPods.value && hadCluster.value);
  } catch {
    // what was known stays
  }
  if (hasPods.value && may.value.includes("create") && !mayBegin.value) again = setTimeout(lookAgain, AGAIN_MS);
}

/** Whether the cluster is there by now. A hub that comes back is asked anyway. */
function lookAgain(): void {
  if (link.value !== "open") return;
  if (document.visibilityState === "visible") void learnAgents();
  else again = setTimeout(lookAgain, AGAIN_MS);
}

export interface Choice {
  word: string;
  title: string;
  deed: () => void;
}

/** For menus, of who owns the session. */
export function choicesOf(session: Session): Choice[] {
  const known = agents.value;
  const heirs = heirsOf(session, known).map((heir) => ({
    word: `Hand over to ${heir.title}${session.live ? "…" : ""}`,
    title: "The same conversation, with another agent",
    deed: () => handOver(session, heir),
  }));
  if (!isListed(session) || !meetsLimits(known, session.agent)) return heirs;
  const waits = session.when_limit === "wait";
  const limits = {
    word: waits ? "Stop at usage limits" : "Wait out usage limits",
    title: waits
      ? "The hub goes on when a usage limit has ended; from now on it does not"
      : "When a usage limit has ended, the hub tells the agent to continue",
    deed: () => void set(session, { when_limit: waits ? "stop" : "wait" }),
  };
  return [...heirs, limits];
}

/** A live one is stopped first, and so it is asked first. */
export function handOver(session: Session, heir: CatalogAgent): void {
  const place = heir.chat ? "in a chat" : "in its terminal";
  const deed = () => void goOn(session, heir);
  if (session.live)
    question.value = {
      title: `Hand ${session.name} over to ${heir.title}?`,
      text: `Its agent gets 10 s to quit, then it is killed. ${heir.title} then goes on with the conversation, ${place}.`,
      yes: "Hand over",
      deed,
    };
  else deed();
}

const goOn = (session: Session, heir: CatalogAgent): Promise<boolean> =>
  attempt(async () => {
    if (session.live) await ask("POST", sessionPath(session.id, "stop"));
    const begun = await ask<RecordAnswer>("POST", sessionPath(session.id, "resume"), { agent: heir.name });
    for (const note of begun.notes ?? []) notify(note, "note");
  });
