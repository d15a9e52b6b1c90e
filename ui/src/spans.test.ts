import { expect, test } from "vitest";
import type { StoryLine } from "./shapes";
import { signsOf, spansOf } from "./spans";

const BEGAN = Date.parse("2026-01-01T10:00:00Z");
const at = (second: number): string => new Date(BEGAN + second * 1000).toISOString();
const after = (ms: number): number => (ms - BEGAN) / 1000;

const state = (second: number, to: string, colour: string, run = 1): StoryLine => ({
  at: at(second),
  event: "state",
  run,
  to,
  headline: to,
  colour,
});
const attention = (second: number, headline: string, colour: string): StoryLine => ({
  at: at(second),
  event: "attention",
  run: 1,
  headline,
  colour,
});

function drawn(story: StoryLine[], until: number): unknown[] {
  return spansOf(story, BEGAN + until * 1000).map((span) => [
    span.run,
    span.stretches.map(({ from, to, words, colour }) => [after(from), after(to), words, colour]),
    span.pins.map((pin) => [after(pin.at), pin.kind, pin.text]),
  ]);
}

test("each change of what a session was begins a stretch, until the run has ended", () => {
  const story = [
    { at: at(0), event: "created", run: 1 },
    state(1, "starting", "blue"),
    state(2, "running", "green"),
    attention(10, "Needs permission", "orange"),
    { at: at(14), event: "answered", run: 1, choice: "yes", question: "Write a.txt?" },
    attention(15, "Working", "green"),
    { at: at(18), event: "prompt", run: 1, text: "go on" },
    { at: at(19), event: "prompt", run: 1, letters: 7, reason: "not kept" },
    attention(20, "Working", "green"),
    state(30, "completed", "blue"),
  ];
  expect(drawn(story, 99)).toEqual([
    [
      1,
      [
        [1, 2, "starting", "blue"],
        [2, 10, "running", "green"],
        [10, 15, "Needs permission", "orange"],
        [15, 30, "Working", "green"],
        [30, 30, "completed", "blue"],
      ],
      [
        [14, "answer", "yes: Write a.txt?"],
        [18, "prompt", "go on"],
        [19, "prompt", "not kept"],
      ],
    ],
  ]);
});

test("a run that lives goes on until now, and the time between two runs is in none", () => {
  const story = [
    state(0, "running", "green"),
    state(10, "failed", "red"),
    { at: at(50), event: "run", run: 2 },
    state(60, "starting", "blue", 2),
    state(61, "running", "green", 2),
  ];
  expect(drawn(story, 70)).toEqual([
    [
      1,
      [
        [0, 10, "running", "green"],
        [10, 10, "failed", "red"],
      ],
      [],
    ],
    [
      2,
      [
        [60, 61, "starting", "blue"],
        [61, 70, "running", "green"],
      ],
      [],
    ],
  ]);
});

test("what was found out late counts from when it came about", () => {
  const story = [state(0, "running", "green"), { ...state(90, "failed", "red"), since: at(20) }];
  expect(drawn(story, 100)).toEqual([
    [
      1,
      [
        [0, 20, "running", "green"],
        [20, 20, "failed", "red"],
      ],
      [],
    ],
  ]);
});

test("words that share a colour are told apart by a pattern, each the same wherever it comes again", () => {
  const story = [
    state(1, "Starting", "blue"),
    state(2, "running", "green"),
    attention(3, "Your turn", "orange"),
    attention(4, "Needs permission", "orange"),
    attention(5, "Your turn", "orange"),
    attention(6, "Finished", "blue"),
  ];
  expect([...signsOf(spansOf(story, BEGAN + 7000))]).toEqual([
    ["Starting", { colour: "blue", pattern: 0 }],
    ["running", { colour: "green", pattern: 0 }],
    ["Your turn", { colour: "orange", pattern: 0 }],
    ["Needs permission", { colour: "orange", pattern: 1 }],
    ["Finished", { colour: "blue", pattern: 1 }],
  ]);
});
