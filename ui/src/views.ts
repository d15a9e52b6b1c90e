/** The open terminals, and what goes between them, the pictures of the grid, and the hub. */

import { effect } from "@preact/signals";
import type { Terminal } from "@xterm/xterm";
import { type Frame, frameOf, gapText } from "./frames";
import { redrawLess } from "./redraw";
import type { Attached, ClientMessage, Size } from "./shapes";
import { link, mayChange, sessions, tabs } from "./store";
import { type Effect, Stream } from "./stream";
import { SessionTerminal } from "./terminal";
import { onTheme, terminalTheme } from "./themes";
import { takesInput } from "./words";

/** More than this not yet parsed: the terminal is slower than the program, and the screen as it is then does. */
const MOST_PENDING = 4 << 20;
/** How often a terminal that nobody sees takes what came for it: it still has to answer what its program asks. */
const UNSEEN_EVERY_MS = 250;

/** Who gets a session's output: on each connection the hub sends it once. */
export interface Follower {
  /** Ask for what is not there yet, once for each connection. */
  attach(): void;
  attached(told: Attached): void;
  frame(frame: Frame): void;
  resize(cols: number, rows: number): void;
  lose(): void;
}

let send: (message: ClientMessage) => boolean = () => false;
const views = new Map<string, View>();
const followers = new Map<string, Follower>();
/** Of this connection. */
const channels = new Map<number, Follower>();
const parking = document.createElement("div");

class View implements Follower {
  readonly stream = new Stream();
  readonly terminal: SessionTerminal;
  private asked = false;
  private lived = false;
  private shown = false;
  private drawn = false;
  /** Output that waits for this view's turn. */
  private later: Uint8Array[] = [];
  private laterBytes = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly id: string) {
    this.terminal = new SessionTerminal({
      typed: (data) => this.type(data),
      answered: (data) => void send({ type: "terminal.answer", sessionId: id, data }),
      resized: (cols, rows) => void (this.asked && send({ type: "terminal.resize", sessionId: id, cols, rows })),
    });
  }

  show(parent: HTMLElement): void {
    this.flush();
    this.shown = true;
    this.terminal.show(parent);
    if (!this.drawn) redrawLess(this.terminal.term);
    this.drawn = true;
    this.attach();
  }

  /** It stays in the document: a terminal outside of it does not notice that nobody sees it, and goes on drawing. */
  hide(): void {
    this.shown = false;
    this.terminal.hide();
    parking.append(this.terminal.element);
  }

  type(data: string): void {
    const session = sessions.value.get(this.id);
    if (this.asked && session && takesInput(session) && mayChange.value)
      send({ type: "terminal.input", sessionId: this.id, data });
  }

  /** Give the terminal the size that fits here: whoever typed last has it, were it nothing. */
  takeOver(): void {
    this.type("");
    this.terminal.term.focus();
  }

  /** Ask for what is not shown yet, once for each connection. */
  attach(): void {
    const run = this.asked ? 0 : runToAttach(this.id);
    if (run > 0) this.say(this.stream.ask(run).from);
  }

  lose(): void {
    this.asked = false;
    this.stream.lose();
  }

  get live(): boolean {
    const session = sessions.value.get(this.id);
    return session?.live === true;
  }

  /** The terminal of a run that has ended may have any size. */
  notice(live: boolean): void {
    if (this.lived && !live) {
      this.flush();
      this.terminal.release();
    }
    this.lived = live;
  }

  attached(told: Attached): void {
    this.carryOut(this.stream.attached(told));
  }

  frame(frame: Frame): void {
    this.carryOut(this.stream.frame(frame));
    if (this.terminal.pending + this.laterBytes > MOST_PENDING) this.catchUp();
  }

  resize(cols: number, rows: number): void {
    this.flush();
    this.terminal.hold(cols, rows);
  }

  /** Give the terminal what came for it. Whatever else is done to it comes after that. */
  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const later = this.later;
    if (later.length === 0) return;
    this.later = [];
    this.laterBytes = 0;
    this.terminal.write(joined(later));
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.terminal.dispose();
  }

  private write(data: Uint8Array): void {
    this.later.push(data);
    this.laterBytes += data.length;
    if (this.shown) this.flush();
    else this.timer ??= setTimeout(() => this.flush(), UNSEEN_EVERY_MS);
  }

  private carryOut(effects: Effect[]): void {
    for (const step of effects) {
      if (step.do === "write") {
        this.write(step.data);
        continue;
      }
      this.flush();
      if (step.do === "reset") this.replace(step.data);
      else if (step.do === "attach") this.say(step.from);
      else if (step.do === "separate") this.separate(step.run);
      else this.terminal.write(`\r\n\x1b[2m— ${gapText(step.lost)} —\x1b[22m\r\n`);
    }
  }

  private replace(screen: Uint8Array): void {
    this.terminal.reset(screen);
    if (!this.live) this.terminal.release();
  }

  private separate(run: number): void {
    this.terminal.separate(`— run ${run} —`);
  }

  private say(from: number | undefined): void {
    const asked = { type: "session.attach" as const, sessionId: this.id, ...this.terminal.size };
    this.asked = send(from === undefined ? asked : { ...asked, from });
  }

  /** Leave out what would take too long to show. */
  private catchUp(): void {
    this.lose();
    this.flush();
    send({ type: "session.detach", sessionId: this.id });
    this.stream.next = undefined;
    this.terminal.whenShown(() => this.attach());
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1) return parts[0]!;
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export const say = (message: ClientMessage): boolean => send(message);

/** The run whose output can be asked for now; 0 for none. */
export function runToAttach(id: string): number {
  const session = sessions.value.get(id);
  return link.value === "open" && session && session.state !== "created" ? session.run : 0;
}

export function follow(id: string, follower: Follower): void {
  followers.set(id, follower);
}

export function unfollow(id: string, follower: Follower): void {
  if (followers.get(id) === follower) followers.delete(id);
  forgetChannel(follower);
}

function forgetChannel(follower: Follower): void {
  for (const [channel, known] of channels) if (known === follower) channels.delete(channel);
}

/** The terminal of a session that has one already. */
export const termOf = (id: string): Terminal | undefined => views.get(id)?.terminal.term;

export function connectViews(sender: (message: ClientMessage) => boolean): void {
  send = sender;
  parking.hidden = true;
  document.body.append(parking);
  effect(() => {
    const wanted = new Set(tabs.value);
    for (const [id, view] of views) {
      if (wanted.has(id)) continue;
      send({ type: "session.detach", sessionId: id });
      view.dispose();
      views.delete(id);
      unfollow(id, view);
    }
  });
  effect(() => {
    const [all, mayType] = [sessions.value, mayChange.value];
    for (const [id, view] of views) {
      const session = all.get(id);
      view.terminal.allowInput(session !== undefined && takesInput(session) && mayType);
      if (session) view.notice(session.live);
    }
    attachAll();
  });
  onTheme(() => {
    for (const view of views.values()) view.terminal.term.options.theme = terminalTheme();
  });
}

export function viewOf(id: string): View {
  let view = views.get(id);
  if (!view) {
    view = new View(id);
    views.set(id, view);
    follow(id, view);
    const session = sessions.value.get(id);
    view.terminal.allowInput(session !== undefined && takesInput(session) && mayChange.value);
    view.notice(view.live);
  }
  return view;
}

export function linkLost(): void {
  channels.clear();
  for (const follower of followers.values()) follower.lose();
}

export function attachAll(): void {
  for (const follower of followers.values()) follower.attach();
}

export function onAttached(told: Attached): void {
  const follower = followers.get(told.sessionId);
  if (!follower) return;
  forgetChannel(follower);
  channels.set(told.channel, follower);
  follower.attached(told);
}

export function onSize(told: Size): void {
  followers.get(told.sessionId)?.resize(told.cols, told.rows);
}

export function onFrame(buffer: ArrayBuffer): void {
  const frame = frameOf(buffer);
  if (frame) channels.get(frame.channel)?.frame(frame);
}

export function resume(id: string): void {
  send({ type: "session.resume", sessionId: id });
}
