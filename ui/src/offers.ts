/** What the hub says can be done with a session now, as buttons. */

import { act, archive, remove, stop } from "./actions";
import { go, type Panel } from "./router";
import type { Session } from "./shapes";
import { open } from "./store";
import { resume } from "./views";
import { FRESH, SAME } from "./words";

export interface Offer {
  name: string;
  word: string;
  title?: string;
  /** The most useful thing to do, and not a way to put the session away. */
  leads: boolean;
  danger?: boolean;
  deed: () => void;
}

/** In the hub's order. Actions that are not known here are left out. */
export function offersOf(session: Session): Offer[] {
  const known: Record<string, Omit<Offer, "name">> = {
    answer: { word: "Answer", leads: true, deed: () => goTo(session, ".pane .answers button, .pane textarea") },
    reply: { word: "Reply", leads: true, deed: () => goTo(session, ".prompt-box textarea") },
    review: { word: "Review", leads: true, deed: () => openPanel(session, "diff") },
    resume: { word: "Resume", title: SAME, leads: true, deed: () => resume(session.id) },
    restart: { word: "Restart fresh", title: FRESH, leads: true, deed: () => void act(session, "restart") },
    "restart-in-container": { word: "Restart in container", leads: true, deed: () => void act(session, "restart") },
    restore: { word: "Restore the folder", leads: true, deed: () => void act(session, "restore") },
    unarchive: { word: "Unarchive", leads: true, deed: () => void act(session, "unarchive") },
    explain: { word: "Why", leads: true, deed: () => openPanel(session, "explain") },
    stop: { word: "Stop…", leads: false, deed: () => stop(session) },
    archive: { word: "Archive", leads: false, deed: () => void archive(session) },
    delete: { word: "Delete…", leads: false, danger: true, deed: () => remove(session) },
  };
  return session.actions.flatMap((name) => (known[name] ? [{ name, ...known[name] }] : []));
}

function openPanel(session: Session, panel: Panel): void {
  open(session.id);
  go({ panel, grid: false }, "replace");
}

function goTo(session: Session, selector: string): void {
  open(session.id);
  go({ grid: false }, "replace");
  requestAnimationFrame(() => document.querySelector<HTMLElement>(selector)?.focus());
}
