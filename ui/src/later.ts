/**
 * Parts of the page that its first load has not. Once a hub has proved itself they come by themselves: a page that stays open
 * has all of its own version then, whatever becomes of the hub.
 */

import { signal } from "@preact/signals";
import { link } from "./store";

const parts: Part<unknown>[] = [];
/** Whether a hub has proved itself to this page. */
let isProved = false;

export class Part<T> {
  readonly found = signal<T | undefined>(undefined);
  /** It could not be loaded when that was tried last. */
  readonly isMissing = signal(false);
  private coming: Promise<boolean> | undefined;

  constructor(private readonly get: () => Promise<T>) {
    parts.push(this);
    if (isProved) void this.load();
  }

  /** Whether it is there then. What has failed is tried again. */
  load(): Promise<boolean> {
    if (!this.coming && !mayLoad()) return Promise.resolve(this.fail(link.peek() !== "connecting"));
    this.coming ??= this.get().then(
      (value) => {
        this.found.value = value;
        this.isMissing.value = false;
        return true;
      },
      () => this.fail(true),
    );
    return this.coming;
  }

  private fail(isMissing: boolean): false {
    this.isMissing.value = isMissing;
    this.coming = undefined;
    return false;
  }
}

/** From our own worker, or from a hub that has proved itself: while that is away, anybody may answer in its place. */
const mayLoad = (): boolean => link.peek() === "open" || !!navigator.serviceWorker?.controller;

/** Have all that is not there yet, as soon as there is nothing else to do. For a hub that has proved itself. */
export function loadAll(): void {
  whenIdle(() => {
    isProved = true;
    for (const part of parts) void part.load();
  });
}

// Safari has no idle moments
const whenIdle = (then: () => void): unknown =>
  "requestIdleCallback" in globalThis ? requestIdleCallback(then) : setTimeout(then);
