import { useState } from "preact/hooks";
import { copyFrom, pasteInto } from "../clipboard";
import { setFontSize } from "../settings";
import type { Session } from "../shapes";
import { mayChange } from "../store";
import { viewOf } from "../views";
import { takesInput } from "../words";

type Key = readonly [sign: string, name: string, code: string];
/** What answers most questions, and what leads out of most troubles. */
const FIRST: readonly Key[] = [
  ["1", "1", "1"],
  ["2", "2", "2"],
  ["3", "3", "3"],
  ["y", "y", "y"],
  ["n", "n", "n"],
  ["Esc", "Esc", "\x1b"],
  ["⇧Tab", "Shift Tab", "\x1b[Z"],
  ["^C", "Control C", "\x03"],
];
const ARROWS: readonly Key[] = [
  ["←", "Arrow left", "D"],
  ["↑", "Arrow up", "A"],
  ["↓", "Arrow down", "B"],
  ["→", "Arrow right", "C"],
];

/** Keys that a finger cannot press elsewhere. Ctrl holds for the next key. */
export function KeyBar({ session }: { session: Session }) {
  const [ctrl, setCtrl] = useState(false);
  if (!mayChange.value || !takesInput(session)) return null;
  const view = viewOf(session.id);
  const { term } = view.terminal;
  const hold = (held: boolean) => {
    view.terminal.holdCtrl(held, () => setCtrl(false));
    setCtrl(held);
  };
  const type = (code: string) => {
    view.type(code);
    hold(false);
  };
  const arrow = (code: string) => {
    const lead = term.modes.applicationCursorKeysMode ? "\x1bO" : "\x1b[";
    type(view.terminal.ctrl ? `\x1b[1;5${code}` : lead + code);
  };
  // a program that has the whole screen turns its own pages; else there is a history to look at
  const page = (by: 1 | -1) => {
    if (term.buffer.active.type === "alternate") type(by < 0 ? "\x1b[5~" : "\x1b[6~");
    else term.scrollPages(by);
  };
  const size = (by: number) => setFontSize((term.options.fontSize ?? 0) + by);
  const keepFocus = (event: Event) => event.preventDefault();
  const key = (sign: string, name: string, deed: () => void, pressed?: boolean) => (
    <button type="button" key={name} aria-label={name} aria-pressed={pressed} onPointerDown={keepFocus} onClick={deed}>
      {sign}
    </button>
  );
  return (
    <div class="key-bar" role="toolbar" aria-label="Keys">
      <div>
        {FIRST.map(([sign, name, code]) => key(sign, name, () => type(code)))}
        {key("PgUp", "PgUp", () => page(-1))}
        {key("PgDn", "PgDn", () => page(1))}
      </div>
      <div>
        {key("Tab", "Tab", () => type("\t"))}
        {key("Ctrl", "Ctrl", () => hold(!ctrl), ctrl)}
        {ARROWS.map(([sign, name, code]) => key(sign, name, () => arrow(code)))}
        {key("⏎", "Enter", () => type("\r"))}
        {key("A−", "A− smaller letters", () => size(-1))}
        {key("A+", "A+ larger letters", () => size(1))}
        {key("Copy", "Copy", () => void copyFrom(term))}
        {key("Paste", "Paste", () => void pasteInto(term))}
      </div>
    </div>
  );
}
