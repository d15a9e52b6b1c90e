/**
 * The pictures of the grid. Each shows a session's screen at the size that the run has. Nothing is typed through one,
 * and none has a say in the size: whoever looks at the grid changes nothing.
 */

import type { Terminal } from "@xterm/xterm";
import type { Frame } from "./frames";
import { Painter } from "./paint";
import type { Attached } from "./shapes";
import { type Effect, Stream } from "./stream";
import { onTheme } from "./themes";
import { Turns } from "./turns";
import { type Follower, follow, runToAttach, say, termOf, unfollow } from "./views";
import { newTerminal } from "./xterm";

/** So long a picture is in sight before it is asked for: those that are only scrolled past are not. */
const GLANCE_MS = 120;
/** More than this not yet parsed: the screen as it is then does. */
const MOST_PENDING = 1 << 20;
const AFTER_A_GAP = "\x18\x1b[m";

const turns = new Turns<Picture>((picture) => picture.paint());
const boxes = new WeakMap<Element, Picture>();
const inSight = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) boxes.get(target)?.look(isIntersecting);
});
const sizes = new ResizeObserver((changed) => {
  for (const { target, contentRect } of changed) boxes.get(target)?.fit(contentRect);
});

export class Picture {
  private readonly painter = new Painter();
  private size = { width: 0, height: 0 };
  private source: Source | undefined;
  private seen = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly stopTheming = onTheme(() => this.seen && turns.ask(this));

  constructor(
    private readonly id: string,
    private readonly box: HTMLElement,
  ) {
    box.append(this.painter.canvas);
    boxes.set(box, this);
    inSight.observe(box);
    sizes.observe(box);
  }

  look(seen: boolean): void {
    if (seen === this.seen) return;
    this.seen = seen;
    clearTimeout(this.timer);
    this.timer = seen ? setTimeout(() => this.begin(), GLANCE_MS) : undefined;
    if (!seen) this.source?.pause();
  }

  fit(size: { width: number; height: number }): void {
    this.size = { width: size.width, height: size.height };
    if (this.source) turns.ask(this);
  }

  paint(): void {
    if (this.source && this.seen) this.painter.paint(this.source.term, this.size);
  }

  close(): void {
    clearTimeout(this.timer);
    turns.forget(this);
    this.stopTheming();
    inSight.unobserve(this.box);
    sizes.unobserve(this.box);
    this.source?.close();
    this.painter.close();
  }

  private begin(): void {
    this.timer = undefined;
    this.source ??= sourceOf(this.id, () => this.seen && turns.ask(this));
    this.source.go();
    turns.ask(this);
  }
}

/** Where the screen of a picture comes from. */
interface Source {
  readonly term: Terminal;
  go(): void;
  pause(): void;
  close(): void;
}

/** A session that has a tab is followed already; the hub sends it once. */
function sourceOf(id: string, changed: () => void): Source {
  const term = termOf(id);
  if (!term) return new Followed(id, changed);
  const watches = [term.onWriteParsed(changed), term.onResize(changed)];
  const close = () => {
    for (const watch of watches) watch.dispose();
  };
  return { term, go: changed, pause: () => {}, close };
}

/** A screen that nobody has open. It is parsed and never drawn as a terminal. */
class Followed implements Source, Follower {
  readonly term = newTerminal();
  private readonly stream = new Stream();
  private asked = false;
  private wanted = false;
  /** Bytes that are not yet parsed. */
  private pending = 0;

  constructor(
    private readonly id: string,
    private readonly changed: () => void,
  ) {
    this.term.options.scrollback = 0;
    follow(id, this);
  }

  go(): void {
    this.wanted = true;
    this.attach();
  }

  /** What comes meanwhile is not wanted: later, the screen as it is then does. */
  pause(): void {
    this.wanted = false;
    this.forget();
  }

  close(): void {
    this.pause();
    unfollow(this.id, this);
    this.term.dispose();
  }

  attach(): void {
    const run = this.wanted && !this.asked ? runToAttach(this.id) : 0;
    if (run > 0) this.ask(this.stream.ask(run).from);
  }

  lose(): void {
    this.asked = false;
    this.stream.lose();
  }

  attached(told: Attached): void {
    this.carryOut(this.stream.attached(told));
  }

  frame(frame: Frame): void {
    this.carryOut(this.stream.frame(frame));
    if (this.pending <= MOST_PENDING) return;
    this.forget();
    this.term.write("", () => this.attach());
  }

  resize(cols: number, rows: number): void {
    this.term.write("", () => {
      this.term.resize(cols, rows);
      this.changed();
    });
  }

  private forget(): void {
    if (this.asked) say({ type: "session.detach", sessionId: this.id });
    this.lose();
    this.stream.next = undefined;
  }

  private ask(from: number | undefined): void {
    const { cols, rows } = this.term;
    const asked = { type: "session.attach" as const, sessionId: this.id, cols, rows, picture: true };
    this.asked = say(from === undefined ? asked : { ...asked, from });
  }

  private carryOut(effects: Effect[]): void {
    for (const step of effects) {
      if (step.do === "write") this.write(step.data);
      else if (step.do === "attach") this.ask(step.from);
      else if (step.do === "gap") this.write(AFTER_A_GAP);
      else {
        this.term.write("", () => this.term.reset());
        if (step.do === "reset") this.write(step.data);
      }
    }
  }

  private write(data: Uint8Array | string): void {
    this.pending += data.length;
    this.term.write(data, () => {
      this.pending -= data.length;
      this.changed();
    });
  }
}
