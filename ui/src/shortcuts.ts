/** Keys of the page. A terminal has every other key, Tab and Escape too: these lead out of it. */

import { go } from "./router";

/** What the help says, in its order. */
export const SHORTCUTS: readonly (readonly [where: string, keys: readonly (readonly [key: string, deed: string])[]])[] =
  [
    [
      "Anywhere, including in a terminal",
      [
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
        ["?", "this help"],
        ["/", "filter the sessions"],
        ["↑ ↓ Home End", "move through the list, or the lines of a diff"],
        ["Escape", "from the prompt box to the terminal; closes what is open"],
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
}

function of(event: KeyboardEvent): ((event: KeyboardEvent) => void) | undefined {
  if (document.querySelector("dialog[open]")) return undefined;
  if (event.ctrlKey && event.shiftKey && !event.altKey && !event.metaKey) {
    if (event.code === "KeyL") return taken(goToList);
    return event.code === "Enter" ? goTo(".prompt-box textarea:enabled") : undefined;
  }
  if (event.ctrlKey || event.altKey || event.metaKey || isField(event.target)) return undefined;
  if (event.key === "/") return taken(goToList);
  return event.key === "?" ? taken(() => go({ settings: true })) : undefined;
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
