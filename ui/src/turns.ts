/**
 * Who changes the page in which frame. When many terminals have something to show, each frame takes as many of them as
 * it can without being late, one after the other; those that wait show all that came meanwhile at once.
 */

const MOST = 64;
const LATE_MS = 25;
const BACKGROUND_MS = 250;

export type Frames = (then: (now: number) => void) => void;

export class Turns<T> {
  private readonly waiting = new Set<T>();
  private most = 8;
  private last: number | undefined;
  private asked = false;

  constructor(
    private readonly take: (waiter: T) => void,
    private readonly frames: Frames = nextFrame,
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
    this.frames((now) => this.frame(now));
  }

  private frame(now: number): void {
    this.asked = false;
    if (this.last !== undefined) {
      this.most = now - this.last > LATE_MS ? Math.max(1, this.most >> 1) : Math.min(MOST, this.most + 1);
    }
    const taken = [...this.waiting].slice(0, this.most);
    for (const waiter of taken) this.waiting.delete(waiter);
    for (const waiter of taken) this.take(waiter);
    // A frame that nobody asked for says nothing about how long the one before it took.
    this.last = this.waiting.size > 0 ? now : undefined;
    if (this.waiting.size > 0) this.schedule();
  }
}

/** A page that nobody sees has no frames, and its terminals still have to answer. */
export function nextFrame(then: (now: number) => void): void {
  if (document.visibilityState === "visible") requestAnimationFrame(then);
  else setTimeout(() => then(performance.now()), BACKGROUND_MS);
}
