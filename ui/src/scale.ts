/** The time of a player: that of the recording, with what is left of its idle stretches. */

/** How long an idle stretch of any length takes to play. */
const SHORT_S = 1;

export class Scale {
  /** How long it takes to play everything. */
  readonly length: number;
  private readonly cuts: { from: number; to: number; played: number }[] = [];

  /** `idle` are the stretches from and to, in order, none shorter than what is left of it. */
  constructor(recorded: number, idle: readonly (readonly [number, number])[]) {
    let saved = 0;
    for (const [from, to] of idle) {
      if (to - from <= SHORT_S) continue;
      this.cuts.push({ from, to, played: from - saved });
      saved += to - from - SHORT_S;
    }
    this.length = recorded - saved;
  }

  /** When a moment of the recording is played. */
  played(recorded: number): number {
    const cut = this.cuts.findLast((candidate) => candidate.from <= recorded);
    if (!cut) return recorded;
    if (recorded >= cut.to) return cut.played + SHORT_S + recorded - cut.to;
    return cut.played + (SHORT_S * (recorded - cut.from)) / (cut.to - cut.from);
  }

  /** Which moment of the recording is played then. */
  recorded(played: number): number {
    const cut = this.cuts.findLast((candidate) => candidate.played <= played);
    if (!cut) return played;
    const into = played - cut.played;
    return into >= SHORT_S ? cut.to + into - SHORT_S : cut.from + (into * (cut.to - cut.from)) / SHORT_S;
  }
}
