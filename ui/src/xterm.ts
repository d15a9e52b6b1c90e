/** A terminal as all of ours are: what a program writes may look like anything, and do nothing. */

import { effect } from "@preact/signals";
import { Unicode11Addon } from "@xterm/addon-unicode11";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal } from "@xterm/xterm";
import { font, fontSize, screenReader, usualFontSize } from "./settings";
import { terminalTheme } from "./themes";

const HISTORY_LINES = 5000;
const SYSTEM_FONT = 'ui-monospace, "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace';

export function newTerminal(): Terminal {
  const term = new Terminal({
    allowProposedApi: true,
    cursorBlink: false,
    fontSize: fontSize.peek() ?? usualFontSize(),
    scrollback: HISTORY_LINES,
    theme: terminalTheme(),
    minimumContrastRatio: 4.5,
    linkHandler: { activate: (_, address) => follow(address) },
  });
  term.loadAddon(new Unicode11Addon());
  term.unicode.activeVersion = "11";
  term.loadAddon(new WebLinksAddon((_, address) => follow(address)));
  let stop: () => void;
  term.loadAddon({
    activate: () => {
      stop = effect(() => {
        term.options.screenReaderMode = screenReader.value === "on";
        term.options.fontFamily = font.value === "system" ? SYSTEM_FONT : `"${font.value}", ${SYSTEM_FONT}`;
      });
    },
    dispose: () => stop(),
  });
  return term;
}

/** Only web addresses lead anywhere. */
function follow(address: string): void {
  if (/^https?:\/\//i.test(address)) window.open(address, "_blank", "noopener,noreferrer");
}
