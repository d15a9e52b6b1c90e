/** What is replayed beside the live terminals. */

import { signal } from "@preact/signals";

/** A moment of a session's story: the run that it belongs to, and when it was. */
export interface Moment {
  session: string;
  run: number;
  at: string;
  /** Whether the run ended with it. What the agent wrote just before may have been read just after. */
  isEnd?: boolean;
  /** Whether it goes on from there by itself. */
  play?: boolean;
}

/** The moment that is looked at instead of the present. */
export const replaying = signal<Moment | null>(null);

export function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}
