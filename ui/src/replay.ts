/** What is replayed beside the live terminals, and what the hub answers about it. */

import { signal } from "@preact/signals";

/** A moment of a session's story: the run that it belongs to, and when it was. */
export interface Moment {
  session: string;
  run: number;
  at: string;
}

export interface Outline {
  run: number;
  began_at: string | null;
  length_s: number;
  idle: { from_s: number; to_s: number }[];
}

export interface Event {
  at_s: number;
  data?: string | null;
  lost?: number | null;
  cols?: number | null;
  rows?: number | null;
}

export interface Part {
  run: number;
  offset: number;
  next: number | null;
  screen: { cols: number; rows: number; data: string } | null;
  events: Event[];
}

/** The moment that is looked at instead of the present. */
export const replaying = signal<Moment | null>(null);

export function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}
