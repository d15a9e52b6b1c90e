/** Keys of the page. A terminal has every other key, Tab and Escape too: these lead out of it. */

import { renaming } from "./actions";
import { nextThatNeedsMe } from "./palette";
import { letGo, select, selected } from "./rail";
import { go } from "./router";
import { creating, current, mayBegin, mayChange, panel, sessions } from "./store";

/** What the help says, in its order. */
export const SHORTCUTS: readonly (readonly [where: string, keys: readonly (readonly [key: string, deed: string])[]])[] =
  [
    [
      "Anywhere, including in a terminal",
      [
        ["Ctrl Shift K", "sessions and commands; outside a terminal, Ctrl K too"],
        ["Ctrl Shift L", "to the list of sessions"],
        ["Ctrl Shift Enter", "to the prompt box"],
      ],
    ],
    [
      "In a terminal",
      [
        ["Ctrl C", "copy the selection; without one it interrupts"],
        ["Ctrl Shift V", "paste"],
        ["Ctrl Shift F", "search"],
      ],
    ],
    [
      "Outside a terminal",
      [
        ["g", "the next session that needs me"],
        ["n", "new session"],
        ["j k ↑ ↓", "move through the list"],
        ["Enter", "open"],
        ["1 – 9", "open the first to ninth session of the list"],
        ["x", "select; then stop, archive or mark as seen"],
        ["F2", "rename"],
        ["/", "search the sessions"],
        ["?", "this help"],
        ["Escape", "from the prompt box to the terminal; closes what is open"],
      ],
    ],
    [
      "In a diff",
      [
        ["n p", "the next and the previous file"],
        ["j k ↑ ↓", "move through the lines"],
        ["Enter", "comment on the line"],
        ["Escape", "close it"],
      ],
    ],
    [
      "In a replay",
      [
        ["Space", "play, pause"],
        ["← →", "five seconds back or forward"],
        ["Home End", "to the beginning or the end"],
        ["Escape", "back to now"],
      ],
    ],
  ];

/** Heard before any terminal hears them. */
export function listenForShortcuts(): void {
  addEventListener("keydown", (event) => of(event)?.(event), { capture: true });
  // who types is not about to click: the list may change under a pointer that was left there
  addEventListener("keydown", letGo, { capture: true });
  addEventListener("blur", letGo);
}

function of(event: KeyboardEvent): ((event: KeyboardEvent) => void) | undefined {
  if (document.querySelector("dialog[open]")) return undefined;
  if (event.code === "KeyK" && isPaletteKey(event)) return taken(() => go({ palette: true }));
  if (event.ctrlKey && event.shiftKey && !event.altKey && !event.metaKey) {
    if (event.code === "KeyL") return taken(goToList);
    return event.code === "Enter" ? goTo(".prompt-box textarea:enabled") : undefined;
  }
  if (event.ctrlKey || event.altKey || event.metaKey || isField(event.target)) return undefined;
  const at = event.target instanceof Element ? event.target : null;
  // whatever else is open has Escape first
  if (event.key === "Escape" && panel.value && !at?.closest(".menu[open], [role=menu], .player")) {
    return taken(() => go({ panel: null }));
  }
  if (at?.closest("[role=menu], .side-panel")) return undefined;
  const first = at?.closest(".list") ? null : document.querySelector<HTMLElement>(".diff-files .patch");
  if (first && OF_DIFF.includes(event.key)) return taken(() => first.focus());
  const deed = PLAIN[event.key] ?? (/^[1-9]$/.test(event.key) ? () => openAt(Number(event.key) - 1) : undefined);
  return deed && taken(deed);
}

/** Keys that a difference has for itself. From elsewhere they lead into it, but the list has its own. */
const OF_DIFF = ["n", "p", "j", "k"];

const PLAIN: Record<string, () => void> = {
  "/": goToList,
  "?": () => go({ settings: true }),
  n: () => ifMayBegin(() => (creating.value = true)),
  g: nextThatNeedsMe,
  j: () => step(1),
  k: () => step(-1),
  x: () => ifMine(() => withRow((id) => select(id, !selected.value.has(id)))),
  F2: () => ifMine(() => withRow((id) => (renaming.value = sessions.peek().get(id) ?? null))),
};

/** In a terminal, Ctrl-K is the program's: it deletes to the end of the line there. A Mac's Command key is nobody's. */
function isPaletteKey(event: KeyboardEvent): boolean {
  if (event.altKey) return false;
  if (event.metaKey) return !event.ctrlKey;
  const inTerminal = event.target instanceof Element && event.target.closest(".xterm") !== null;
  return event.ctrlKey && (event.shiftKey || !inTerminal);
}

function ifMayBegin(deed: () => void): void {
  if (mayBegin.value) deed();
}

function ifMine(deed: () => void): void {
  if (mayChange.value) deed();
}

const rows = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>(".list .open-session")];

/** The row that has the focus; else that of the open session. */
function rowAt(all: HTMLElement[]): number {
  const at = all.findIndex((row) => row.closest(".row")?.contains(document.activeElement));
  return at >= 0 ? at : all.findIndex((row) => row.closest<HTMLElement>(".row")?.dataset["session"] === current.value);
}

function step(by: number): void {
  const all = rows();
  const to = all[Math.min(Math.max(rowAt(all) + by, 0), all.length - 1)];
  to?.focus();
}

const openAt = (index: number): void => rows()[index]?.click();

function withRow(deed: (id: string) => void): void {
  const all = rows();
  const id = all[rowAt(all)]?.closest<HTMLElement>(".row")?.dataset["session"];
  if (id) deed(id);
}

const isField = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches("input:not([type=range], [type=checkbox]), textarea, select");

const goTo = (selector: string) => taken(() => document.querySelector<HTMLElement>(selector)?.focus());

/** Where there is room for one thing at a time, the list may be out of sight. */
function goToList(): void {
  if (matchMedia("(max-width: 700px)").matches) go({ session: null, grid: false });
  requestAnimationFrame(() => document.querySelector<HTMLElement>(".filter")?.focus());
}

const taken = (deed: () => void) => (event: KeyboardEvent) => {
  event.preventDefault();
  event.stopPropagation();
  deed();
};
