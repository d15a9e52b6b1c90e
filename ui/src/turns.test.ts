import { expect, test } from "vitest";
import { Turns } from "./turns";

/** Frames that come when the test says so. Each turn takes `ms`. */
function stage(ms = 0): { turns: Turns<number>; taken: number[][]; frame: () => boolean; rests: number[] } {
  let next: ((now: number) => void) | undefined;
  let now = 0;
  const taken: number[][] = [];
  const rests: number[] = [];
  const turns = new Turns<number>(
    (number) => {
      taken.at(-1)!.push(number);
      now += ms;
    },
    (then) => (next = then),
    (then, ms) => {
      now += ms;
      rests.push(ms);
      then();
    },
    () => now,
  );
  const frame = () => {
    const then = next;
    next = undefined;
    taken.push([]);
    then?.(now);
    return next !== undefined;
  };
  return { turns, taken, frame, rests };
}

const numbers = (count: number): number[] => [...Array(count).keys()];

test("a few take their turn in the next frame, each once", () => {
  const { turns, taken, frame } = stage();
  for (const number of [1, 2, 1]) turns.ask(number);
  expect(frame()).toBe(false);
  expect(taken).toEqual([[1, 2]]);
});

test("many are spread over frames by the time that they take, and none is left out", () => {
  const { turns, taken, frame } = stage(2);
  for (const number of numbers(10)) turns.ask(number);
  while (frame());
  expect(taken).toEqual([
    [0, 1, 2, 3],
    [4, 5, 6, 7],
    [8, 9],
  ]);
});

test("one that takes longer than a frame does not hold up the others for ever", () => {
  const { turns, taken, frame } = stage(50);
  for (const number of numbers(3)) turns.ask(number);
  while (frame());
  expect(taken).toEqual([[0], [1], [2]]);
});

test("who asks again comes after those that wait", () => {
  const { turns, taken, frame } = stage(50);
  for (const number of numbers(3)) turns.ask(number);
  frame();
  turns.ask(0);
  while (frame());
  expect(taken).toEqual([[0], [1], [2], [0]]);
});

test("who does not want any more is left out", () => {
  const { turns, taken, frame } = stage();
  turns.ask(1);
  turns.ask(2);
  turns.forget(1);
  frame();
  expect(taken).toEqual([[2]]);
});

test("after all were taken there is a rest, and none while some wait", () => {
  const { turns, taken, frame, rests } = stage(50);
  for (const number of numbers(3)) turns.ask(number);
  while (frame());
  expect(rests).toEqual([]);
  turns.ask(4);
  expect(rests).toEqual([200]);
  frame();
  expect(taken.at(-1)).toEqual([4]);
});

test("after many the rest is longer", () => {
  const { turns, frame, rests } = stage(2);
  for (const number of numbers(50)) turns.ask(number);
  while (frame());
  turns.ask(1);
  expect(rests).toEqual([600]);
  frame();
  turns.ask(1);
  expect(rests).toEqual([600, 200]);
});
