/** What the hub says can be done with a session now, as buttons. */

import { act, cancel, remove } from "./actions";
import { archive, restart, stop } from "./deeds";
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
    look: session.chat
      ? { word: "Reply", leads: true, deed: () => goTo(session, ".prompt-box textarea") }
      : { word: "Go to terminal", leads: true, deed: () => goTo(session, ".pane .xterm-helper-textarea") },
    reply: { word: "Reply", leads: true, deed: () => goTo(session, ".prompt-box textarea") },
    review: { word: "Review", leads: true, deed: () => open(session.id, { panel: "diff" }) },
    resume: { word: "Resume", title: SAME, leads: true, deed: () => resume(session.id) },
    restart: {
      word: session.live ? "Restart fresh…" : "Restart fresh",
      title: FRESH,
      leads: true,
      deed: () => restart(session),
    },
    "restart-in-container": { word: "Restart in container", leads: true, deed: () => void act(session, "restart") },
    restore: { word: "Restore the folder", leads: true, deed: () => void act(session, "restore") },
    unarchive: { word: "Unarchive", leads: true, deed: () => void act(session, "unarchive") },
    explain: { word: "Why", leads: true, deed: () => open(session.id, { panel: "explain" }) },
    stop: { word: "Stop…", leads: false, deed: () => stop([session]) },
    cancel: { word: "Stop and archive…", leads: false, deed: () => cancel(session) },
    archive: { word: "Archive", leads: false, deed: () => void archive([session]) },
    delete: { word: "Delete…", leads: false, danger: true, deed: () => remove(session) },
  };
  const twice = session.chat && session.actions.includes("reply") ? "look" : "";
  const actions = session.actions.flatMap((name) => (name === "stop" && session.live ? ["stop", "cancel"] : [name]));
  return actions.flatMap((name) => (known[name] && name !== twice ? [{ name, ...known[name] }] : []));
}

function goTo(session: Session, selector: string): void {
  open(session.id);
  requestAnimationFrame(() => document.querySelector<HTMLElement>(selector)?.focus());
}
