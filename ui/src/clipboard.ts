/** The browser's clipboard. It may be refused, which is then said. */

import type { Terminal } from "@xterm/xterm";
import { notify } from "./store";

/** What is selected; else what the terminal shows. */
export async function copyFrom(term: Terminal): Promise<void> {
  const selected = term.hasSelection();
  const text = selected ? term.getSelection() : screenOf(term);
  try {
    await navigator.clipboard.writeText(text);
    notify(selected ? "Copied the selection." : "Copied the screen.", "note");
  } catch {
    notify("This browser does not let the page write to the clipboard.");
  }
}

/** As if it was typed at once; programs that know of it are told that it was pasted. */
export async function pasteInto(term: Terminal): Promise<void> {
  try {
    term.paste(await navigator.clipboard.readText());
  } catch {
    notify("This browser does not let the page read the clipboard; paste into the prompt box instead.");
  }
}

function screenOf(term: Terminal): string {
  const buffer = term.buffer.active;
  const lines = Array.from(
    { length: term.rows },
    (_, row) => buffer.getLine(buffer.viewportY + row)?.translateToString(true) ?? "",
  );
  return lines.join("\n").trimEnd();
}
