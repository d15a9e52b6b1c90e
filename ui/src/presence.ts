/** Who wants something, for a person who looks elsewhere; and for the hub, what that person has before their eyes. */

import { effect, signal } from "@preact/signals";
import { needYou } from "./rail";
import type { Seen } from "./shapes";
import { grid, link, mayChange, shown } from "./store";

const NAME = "Hitchpost";
const MOST = 99;
const COUNT_MS = 150;

/** Whether the page is in sight and its window has the focus. */
const looked = signal(isLookedAt());

let send: (message: Seen) => boolean = () => false;

export function connectPresence(sender: (message: Seen) => boolean): void {
  send = sender;
  for (const event of ["focus", "blur"]) addEventListener(event, look);
  document.addEventListener("visibilitychange", look);
  let last = "";
  effect(() => {
    const session = shown.value;
    const since =
      session && !grid.value && looked.value && link.value === "open" && mayChange.value ? session.since : undefined;
    const now = session && since !== undefined ? `${session.id} ${since}` : "";
    if (session && now && now !== last) markSeen(session.id);
    last = now;
  });
  effect(() => {
    needYou.value;
    // nobody reads it faster, and a browser takes its time to draw an icon
    if (soon === undefined) soon = setTimeout(showCount, COUNT_MS);
  });
}

export function markSeen(id: string): void {
  send({ type: "session.seen", sessionId: id });
}

function look(): void {
  looked.value = isLookedAt();
}

function isLookedAt(): boolean {
  return typeof document !== "undefined" && document.visibilityState === "visible" && document.hasFocus();
}

let soon: ReturnType<typeof setTimeout> | undefined;
let plain = "";

function showCount(): void {
  soon = undefined;
  const count = needYou.peek().length;
  document.title = count > 0 ? `(${count}) ${NAME}` : NAME;
  const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (icon) {
    plain ||= icon.href;
    icon.href = count > 0 ? `data:image/svg+xml,${encodeURIComponent(iconWith(count))}` : plain;
  }
  // no browser has to have one; one that has may refuse it
  void navigator.setAppBadge?.(count).catch(() => undefined);
}

/** The page's own icon, with a number in its corner. */
export function iconWith(count: number): string {
  const text = count > MOST ? `${MOST}+` : String(count);
  const size = [0, 34, 28, 20][text.length] ?? 20;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><rect width="64" height="64" rx="14" fill="#242933"/>
<path d="M21 14v36M43 14v36" stroke="#d8dee9" stroke-width="6" stroke-linecap="round"/>
<path d="M13 27h38" stroke="#88c0d0" stroke-width="6" stroke-linecap="round"/>
<circle cx="42" cy="42" r="22" fill="#d08770"/><text x="42" y="43" font-family="sans-serif" font-weight="700"
 font-size="${size}" fill="#1b1f27" text-anchor="middle" dominant-baseline="central">${text}</text></svg>`;
}
