import { useState } from "preact/hooks";
import { copyFrom, pasteInto } from "../clipboard";
import type { Session } from "../shapes";
import { owner } from "../store";
import { viewOf } from "../views";
import { takesInput } from "../words";

const KEYS: [string, string, string][] = [
  ["Esc", "Esc", "\x1b"],
  ["Tab", "Tab", "\t"],
  ["←", "Arrow left", "D"],
  ["↑", "Arrow up", "A"],
  ["↓", "Arrow down", "B"],
  ["→", "Arrow right", "C"],
  ["⏎", "Enter", "\r"],
];

/** Keys that a phone does not have. Ctrl holds for the next key. */
export function KeyBar({ session }: { session: Session }) {
  const [ctrl, setCtrl] = useState(false);
  if (!owner.value || !takesInput(session)) return null;
  const view = viewOf(session.id);
  const press = (code: string) => {
    const arrow = /^[A-D]$/.test(code);
    const lead = view.terminal.term.modes.applicationCursorKeysMode ? "\x1bO" : "\x1b[";
    view.type(!arrow ? code : view.terminal.ctrl ? `\x1b[1;5${code}` : lead + code);
    hold(false);
  };
  const hold = (held: boolean) => {
    view.terminal.holdCtrl(held, () => setCtrl(false));
    setCtrl(held);
  };
  const keepFocus = (event: Event) => event.preventDefault();
  return (
    <div class="key-bar" role="toolbar" aria-label="Keys">
      {KEYS.slice(0, 2).map(([sign, name, code]) => (
        <button type="button" key={name} aria-label={name} onPointerDown={keepFocus} onClick={() => press(code)}>
          {sign}
        </button>
      ))}
      <button type="button" aria-pressed={ctrl} onPointerDown={keepFocus} onClick={() => hold(!ctrl)}>
        Ctrl
      </button>
      {KEYS.slice(2).map(([sign, name, code]) => (
        <button type="button" key={name} aria-label={name} onPointerDown={keepFocus} onClick={() => press(code)}>
          {sign}
        </button>
      ))}
      <button type="button" class="word" onPointerDown={keepFocus} onClick={() => void copyFrom(view.terminal.term)}>
        Copy
      </button>
      <button type="button" class="word" onPointerDown={keepFocus} onClick={() => void pasteInto(view.terminal.term)}>
        Paste
      </button>
    </div>
  );
}
