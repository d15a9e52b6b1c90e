/**
 * Where a view is in a session's output. Pure: messages of the hub come in, effects go out.
 *
 * `next` is the offset of the first byte that was not shown yet, so a view that comes back asks for exactly that one.
 */

import { type Frame, GAP, lostIn, OUTPUT, SNAPSHOT } from "./frames";
import type { Attached } from "./shapes";

export type Effect =
  | { do: "reset"; data: Uint8Array }
  | { do: "write"; data: Uint8Array }
  | { do: "gap"; lost: number }
  | { do: "separate"; run: number }
  | { do: "attach"; from: number | undefined };

const NO_CHANNEL = -1;

export class Stream {
  run = 0;
  next: number | undefined;
  private channel = NO_CHANNEL;
  private asked: { run: number; from: number | undefined } | undefined;

  /** What to ask for when the session's current run is `run`: the rest of what is shown, or the screen. */
  ask(run: number): { from: number | undefined } {
    const from = run === this.run ? this.next : undefined;
    return this.askFrom(run, from);
  }

  /** The connection is gone: what still comes of it is of no use, and channels begin anew. */
  lose(): void {
    this.channel = NO_CHANNEL;
    this.asked = undefined;
  }

  attached(told: Attached): Effect[] {
    const asked = this.asked;
    this.asked = undefined;
    if (this.run === 0 || told.run === this.run) {
      this.run = told.run;
      this.channel = told.channel;
      if (asked?.from === undefined) this.next = undefined;
      return [];
    }
    if (asked?.run === told.run && asked.from === 0) {
      this.run = told.run;
      this.channel = told.channel;
      this.next = 0;
      return [{ do: "separate", run: told.run }];
    }
    // Another run than the one that is shown: its output goes under that of the last one, from its first byte on.
    this.channel = NO_CHANNEL;
    return [{ do: "attach", ...this.askFrom(told.run, 0) }];
  }

  frame(frame: Frame): Effect[] {
    if (frame.channel !== this.channel) return [];
    if (frame.kind === SNAPSHOT) {
      this.next = frame.offset;
      return [{ do: "reset", data: frame.data }];
    }
    if (frame.kind === GAP) {
      const lost = lostIn(frame);
      this.next = frame.offset + lost;
      return [{ do: "gap", lost }];
    }
    return frame.kind === OUTPUT ? this.output(frame) : [];
  }

  private output(frame: Frame): Effect[] {
    const next = this.next ?? frame.offset;
    const end = frame.offset + frame.data.byteLength;
    if (frame.offset > next) {
      this.channel = NO_CHANNEL;
      return [{ do: "attach", ...this.askFrom(this.run, undefined) }];
    }
    if (end <= next) return [];
    this.next = end;
    return [{ do: "write", data: frame.data.subarray(next - frame.offset) }];
  }

  private askFrom(run: number, from: number | undefined): { from: number | undefined } {
    this.asked = { run, from };
    return { from };
  }
}
