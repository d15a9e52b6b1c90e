/** One session's terminal. It outlives the components that show it, and its element moves between them. */

import { effect, signal } from "@preact/signals";
import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import type { Terminal } from "@xterm/xterm";
import { copyFrom } from "./clipboard";
import { fontSize, usualFontSize } from "./settings";
import { Touch } from "./touch";
import { newTerminal } from "./xterm";

/** What a dead program may have left switched on: screen, margins, mouse, paste, keypad, colours, cursor. */
const CALM =
  "\x18\x1b[?1049l\x1b[?1000;1002;1003;1004;1006;2004;1l\x1b>\x1b7\x1b[?6l\x1b[r\x1b8\x1b[?7h\x1b[m\x1b(B\x0f\x1b[?25h";
/** What a terminal says by itself when a program asks it. */
const ANSWER = /^(\x1b\[[?>=]?[\d;]*(c|n|R|u|\$y)|\x1b\[[IO]|\x1bP[\s\S]*|\x1b\][\s\S]*)$/;

/** Colours of what a search found. */
const FOUND = {
  matchBackground: "#4a5578",
  matchOverviewRuler: "#7c8af5",
  activeMatchBackground: "#b88a1e",
  activeMatchColorOverviewRuler: "#e2c044",
};

export interface Size {
  cols: number;
  rows: number;
}

/** Which of how many places is shown; 0 where nobody counts that far. */
export interface Found {
  at: number;
  count: number;
}

export interface Keys {
  typed(data: string): void;
  answered(data: string): void;
  resized(cols: number, rows: number): void;
}

export class SessionTerminal {
  readonly element = document.createElement("div");
  readonly term: Terminal = newTerminal();
  private readonly fitting = new FitAddon();
  private readonly search = new SearchAddon();
  private readonly observer: ResizeObserver;
  private opened = false;
  private pressed = "";
  /** Bytes that are written and not yet parsed. */
  pending = 0;
  ctrl = false;
  private freed: () => void = () => {};
  size: Size = { cols: 80, rows: 24 };
  /** The size that it has, where somebody else's page or terminal has given it another one than fits here. */
  readonly foreign = signal<Size | null>(null);
  readonly found = signal<Found | null>(null);
  private held: Size | null = null;
  private readonly stopSizing: () => void;
  private waiting: (() => void)[] | undefined;

  constructor(private readonly keys: Keys) {
    this.element.className = "terminal";
    this.term.loadAddon(this.fitting);
    this.term.loadAddon(this.search);
    this.term.attachCustomKeyEventHandler((event) => this.onKey(event));
    this.term.onData((data) => this.onData(data));
    this.search.onDidChangeResults(({ resultIndex, resultCount }) => {
      this.found.value = { at: resultIndex + 1, count: resultCount };
    });
    this.observer = new ResizeObserver(() => this.fit());
    new Touch(this.element, this.term);
    this.stopSizing = effect(() => {
      this.term.options.fontSize = fontSize.value ?? usualFontSize();
      this.fit();
    });
  }

  show(parent: HTMLElement): void {
    parent.append(this.element);
    if (!this.opened) {
      this.opened = true;
      this.term.open(this.element);
    }
    this.observer.observe(parent);
    this.fit();
  }

  hide(): void {
    this.observer.disconnect();
    this.element.remove();
  }

  dispose(): void {
    this.observer.disconnect();
    this.stopSizing();
    this.element.remove();
    this.term.dispose();
  }

  /** How large this page would have the terminal. A live one has the size that the hub tells. */
  fit(): void {
    const wanted = this.element.isConnected ? this.fitting.proposeDimensions() : undefined;
    if (!wanted || !(wanted.cols > 1) || !(wanted.rows > 1)) return;
    if (wanted.cols === this.size.cols && wanted.rows === this.size.rows) return;
    this.size = { cols: wanted.cols, rows: wanted.rows };
    if (!this.held) this.term.resize(wanted.cols, wanted.rows);
    this.keys.resized(wanted.cols, wanted.rows);
    this.compare();
  }

  /** The size that the bytes that follow are meant for. */
  hold(cols: number, rows: number): void {
    this.held = { cols, rows };
    this.compare();
    this.whenShown(() => this.held && this.term.resize(cols, rows));
  }

  /** Nobody else cares about the size any more. */
  release(): void {
    this.whenShown(() => {
      this.held = null;
      this.compare();
      this.term.resize(this.size.cols, this.size.rows);
    });
  }

  private compare(): void {
    const { held, size } = this;
    this.foreign.value = held && (held.cols !== size.cols || held.rows !== size.rows) ? held : null;
  }

  /** Do something when all that was written before is shown. */
  whenShown(work: () => void): void {
    if (this.waiting) this.waiting.push(() => this.whenShown(work));
    else this.term.write("", work);
  }

  allowInput(allowed: boolean): void {
    this.term.options.disableStdin = !allowed;
    this.term.options.cursorStyle = allowed ? "block" : "underline";
    this.element.classList.toggle("read-only", !allowed);
  }

  reset(data: Uint8Array): void {
    this.whenShown(() => this.term.reset());
    this.write(data);
  }

  write(data: Uint8Array | string): void {
    const size = data.length;
    this.pending += size;
    this.writeNow(data, () => (this.pending -= size));
  }

  private writeNow(data: Uint8Array | string, done: () => void): void {
    if (this.waiting) this.waiting.push(() => this.writeNow(data, done));
    else this.term.write(data, done);
  }

  /** A line of our own under everything that is shown. Where that is, is known once all is shown; what follows waits. */
  separate(text: string): void {
    if (this.waiting) return void this.waiting.push(() => this.separate(text));
    this.waiting = [];
    this.term.write(CALM, () => {
      this.term.write(`${this.underAll()}\x1b[2m${text}\x1b[22m\r\n`);
      const waiting = this.waiting ?? [];
      this.waiting = undefined;
      for (const work of waiting) work();
    });
  }

  /** What brings the cursor to a new line under the last one that is not empty. */
  private underAll(): string {
    const lines = this.term.buffer.active;
    let last = lines.length - 1;
    while (last >= 0 && lines.getLine(last)!.translateToString(true) === "") last--;
    const row = last - lines.baseY + 1;
    return row < 1 ? "\x1b[H" : `\x1b[${row};1H\r\n`;
  }

  /** What was found is told by `found`. */
  find(text: string, back = false): void {
    const how = { incremental: false, decorations: FOUND };
    if (!text) this.stopFinding();
    else if (back) this.search.findPrevious(text, how);
    else this.search.findNext(text, how);
  }

  stopFinding(): void {
    this.search.clearDecorations();
    this.term.clearSelection();
    this.found.value = null;
  }

  /** Hold Ctrl for the next key, and say when it came. */
  holdCtrl(held: boolean, freed: () => void): void {
    this.ctrl = held;
    this.freed = freed;
  }

  private onKey(event: KeyboardEvent): boolean {
    if (event.type !== "keydown") return true;
    this.pressed = event.key;
    if (event.ctrlKey && !event.altKey && event.code === "KeyC" && this.term.hasSelection()) {
      event.preventDefault();
      void copyFrom(this.term);
      // the next Ctrl-C interrupts
      this.term.clearSelection();
      return false;
    }
    // a terminal that takes no input does not hold anybody
    if (event.key === "Tab" && this.term.options.disableStdin) return false;
    // Ours: the browser pastes, and the page searches.
    return !(event.ctrlKey && event.shiftKey && (event.code === "KeyV" || event.code === "KeyF"));
  }

  private onData(data: string): void {
    const isAnswer = ANSWER.test(data) && !(data.endsWith("R") && this.pressed === "F3");
    if (isAnswer) this.keys.answered(data);
    else if (this.ctrl && data.length === 1) {
      this.keys.typed(controlled(data));
      this.holdCtrl(false, this.freed);
      this.freed();
    } else this.keys.typed(data);
  }
}

/** The control character of a key: Ctrl-C for c. */
export function controlled(key: string): string {
  const code = key.toUpperCase().charCodeAt(0);
  return code >= 64 && code < 96 ? String.fromCharCode(code - 64) : key;
}
