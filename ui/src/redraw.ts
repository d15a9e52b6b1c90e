/**
 * xterm.js 6.0 draws every row anew at each scroll, for a selection that mostly is not there, and also while nobody sees
 * the terminal. Here it does so only when there is a selection, or was one the last time.
 *
 * That is not in its interface: where it is built differently, nothing is changed.
 */

import type { Terminal } from "@xterm/xterm";

type Redraw = (start: unknown, end: unknown, columns: boolean) => void;
interface Inside {
  _core?: { _renderService?: { handleSelectionChanged?: Redraw } };
}

export function redrawLess(term: Terminal): void {
  const drawing = (term as unknown as Inside)._core?._renderService;
  const redraw = drawing?.handleSelectionChanged?.bind(drawing);
  if (!drawing || !redraw) return;
  let had = false;
  drawing.handleSelectionChanged = (start, end, columns) => {
    const has = start !== undefined && end !== undefined;
    if (has || had) redraw(start, end, columns);
    had = has;
  };
}
