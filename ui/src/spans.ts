/** A session's story as stretches of time: what it was in each run, and what people said to it. Words and colours are the hub's. */

import type { StoryLine } from "./shapes";
import { endsRun, runOf, said } from "./story";

/** Times are in milliseconds since 1970. */
export interface Stretch {
  from: number;
  to: number;
  words: string;
  colour: string;
}

export interface Pin {
  at: number;
  kind: "prompt" | "answer";
  text: string;
}

export interface RunSpan {
  run: number;
  from: number;
  to: number;
  stretches: Stretch[];
  pins: Pin[];
}

export interface Sign {
  colour: string;
  /** Which of the words of this colour it is: each has another pattern, the first none. */
  pattern: number;
}

/** How each word is drawn, in the order of the story. */
export function signsOf(spans: readonly RunSpan[]): Map<string, Sign> {
  const signs = new Map<string, Sign>();
  const used = new Map<string, number>();
  for (const { words, colour } of spans.flatMap(({ stretches }) => stretches)) {
    if (signs.has(words)) continue;
    const pattern = used.get(colour) ?? 0;
    used.set(colour, pattern + 1);
    signs.set(words, { colour, pattern: pattern % PATTERNS });
  }
  return signs;
}

/** As many as the style has, with none. */
const PATTERNS = 4;

/** One for each run that has begun, the oldest first. A run that lives goes on until `now`. */
export function spansOf(story: readonly StoryLine[], now: number): RunSpan[] {
  const spans: RunSpan[] = [];
  let open: RunSpan | undefined;
  for (const line of story) {
    const [run, at] = [runOf(line), Date.parse(said(line["since"]) || line.at)];
    if (run === 0 || Number.isNaN(at)) continue;
    if (open && open.run !== run) open = finish(open, at);
    if (!open && line.event === "state" && !endsRun(line)) {
      open = { run, from: at, to: at, stretches: [], pins: [] };
      spans.push(open);
    }
    if (!open) continue;
    const pin = pinOf(line, at);
    if (pin) open.pins.push(pin);
    if (typeof line["colour"] !== "string") continue;
    finish(open, at);
    const ended = endsRun(line);
    open.stretches.push({ from: at, to: at, words: said(line["headline"]), colour: line["colour"] });
    if (ended) open = undefined;
  }
  if (open) finish(open, now);
  return spans.filter((span) => span.to > span.from);
}

/** What was, was so until then. Neighbours that look alike are one. */
function finish(span: RunSpan, at: number): undefined {
  span.to = Math.max(span.to, at);
  const [last, before] = [span.stretches.at(-1), span.stretches.at(-2)];
  if (last) last.to = span.to;
  if (last && before && last.words === before.words && last.colour === before.colour) {
    before.to = last.to;
    span.stretches.pop();
  }
}

function pinOf(line: StoryLine, at: number): Pin | undefined {
  if (line.event === "prompt") return { at, kind: "prompt", text: said(line["text"] ?? line["reason"]) };
  if (line.event !== "answered") return undefined;
  const question = said(line["question"]);
  return { at, kind: "answer", text: question ? `${said(line["choice"])}: ${question}` : said(line["choice"]) };
}
