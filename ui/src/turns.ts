/**
 * Who is drawn in which frame. When many have something to show, each frame takes as many of them as there is time for,
 * one after the other; those that wait are drawn as they are by then.
 */

const FRAME_MS = 6;
const BACKGROUND_MS = 250;

export type Frames = (then: (now: number) => void) => void;

export class Turns<T> {
  private readonly waiting = new Set<T>();
  private asked = false;

  constructor(
    private readonly take: (waiter: T) => void,
    private readonly frames: Frames = nextFrame,
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
    this.frames(() => this.frame());
  }

  private frame(): void {
    this.asked = false;
    const ends = this.clock() + FRAME_MS;
    for (const waiter of [...this.waiting]) {
      this.waiting.delete(waiter);
      this.take(waiter);
      if (this.clock() >= ends) break;
    }
    if (this.waiting.size > 0) this.schedule();
  }
}

/** A page that nobody sees has no frames. */
export function nextFrame(then: (now: number) => void): void {
  if (document.visibilityState === "visible") requestAnimationFrame(then);
  else setTimeout(() => then(performance.now()), BACKGROUND_MS);
}
