import { expect, test } from "vitest";
import { Turns } from "./turns";

/** Frames that come when the test says so. */
function stage(): { turns: Turns<number>; taken: number[][]; frame: (now: number) => boolean } {
  let next: ((now: number) => void) | undefined;
  const taken: number[][] = [];
  const turns = new Turns<number>(
    (number) => taken.at(-1)!.push(number),
    (then) => (next = then),
  );
  const frame = (now: number) => {
    const then = next;
    next = undefined;
    taken.push([]);
    then?.(now);
    return next !== undefined;
  };
  return { turns, taken, frame };
}

const numbers = (count: number): number[] => [...Array(count).keys()];

test("a few take their turn in the next frame, each once", () => {
  const { turns, taken, frame } = stage();
  for (const number of [1, 2, 1]) turns.ask(number);
  expect(frame(0)).toBe(false);
  expect(taken).toEqual([[1, 2]]);
});

test("many are spread over frames, and none is left out", () => {
  const { turns, taken, frame } = stage();
  for (const number of numbers(30)) turns.ask(number);
  for (let now = 0; frame(now); now += 16);
  expect(taken.length).toBeGreaterThan(2);
  expect(taken.flat()).toEqual(numbers(30));
});

test("late frames take fewer, frames in time take more again", () => {
  const { turns, taken, frame } = stage();
  let now = 0;
  const sizes = (ms: number) =>
    numbers(6).map(() => {
      for (const number of numbers(100)) turns.ask(number);
      now += ms;
      frame(now);
      return taken.at(-1)!.length;
    });
  expect(sizes(60)).toEqual([8, 4, 2, 1, 1, 1]);
  expect(sizes(16)).toEqual([2, 3, 4, 5, 6, 7]);
});

test("who does not want any more is left out", () => {
  const { turns, taken, frame } = stage();
  turns.ask(1);
  turns.ask(2);
  turns.forget(1);
  frame(0);
  expect(taken).toEqual([[2]]);
});
