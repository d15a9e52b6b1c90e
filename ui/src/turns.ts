/**
 * Who is drawn in which frame. When many have something to show, each frame takes as many of them as there is time for,
 * one after the other; those that wait are drawn as they are by then. Between two rounds is a rest, a longer one after
 * many: a frame in which nothing changes costs the whole browser next to nothing, one with a single change costs it as
 * much as with many.
 */

const FRAME_MS = 8;
const REST_MS = 200;
const REST_EACH_MS = 12;
const BACKGROUND_MS = 250;

export type Frames = (then: (now: number) => void) => void;

export class Turns<T> {
  private readonly waiting = new Set<T>();
  private asked = false;
  private restsUntil = 0;
  /** Of this round. */
  private drawn = 0;

  constructor(
    private readonly take: (waiter: T) => void,
    private readonly frames: Frames = nextFrame,
    private readonly later: (then: () => void, ms: number) => void = (then, ms) => void setTimeout(then, ms),
    private readonly clock: () => number = () => performance.now(),
  ) {}

  ask(waiter: T): void {
    this.waiting.add(waiter);
    this.schedule();
  }

  forget(waiter: T): void {
    this.waiting.delete(waiter);
  }

  private schedule(): void {
    if (this.asked) return;
    this.asked = true;
    const rest = this.restsUntil - this.clock();
    if (rest > 0) this.later(() => this.frames(() => this.frame()), rest);
    else this.frames(() => this.frame());
  }

  private frame(): void {
    this.asked = false;
    const ends = this.clock() + FRAME_MS;
    for (const waiter of [...this.waiting]) {
      this.waiting.delete(waiter);
      this.take(waiter);
      this.drawn++;
      if (this.clock() >= ends) break;
    }
    if (this.waiting.size > 0) this.schedule();
    else {
      this.restsUntil = this.clock() + Math.max(REST_MS, REST_EACH_MS * this.drawn);
      this.drawn = 0;
    }
  }
}

/** A page that nobody sees has no frames. */
export function nextFrame(then: (now: number) => void): void {
  if (document.visibilityState === "visible") requestAnimationFrame(then);
  else setTimeout(() => then(performance.now()), BACKGROUND_MS);
}
