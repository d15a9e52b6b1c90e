import { expect, test } from "vitest";
import { Scale } from "./scale";

test("without idle stretches it plays as it was recorded", () => {
  const scale = new Scale(10, []);
  expect([scale.length, scale.played(4), scale.recorded(4)]).toEqual([10, 4, 4]);
});

test("an idle stretch takes a second, however long it was", () => {
  const scale = new Scale(3720, [
    [10, 110],
    [120, 3720],
  ]);
  expect(scale.length).toBe(22);
  expect([0, 10, 60, 110, 115, 3720].map((at) => scale.played(at))).toEqual([0, 10, 10.5, 11, 16, 22]);
  expect([0, 10, 10.5, 11, 16, 22].map((at) => scale.recorded(at))).toEqual([0, 10, 60, 110, 115, 3720]);
});

test("there and back again is the same moment", () => {
  const scale = new Scale(500, [
    [0, 5],
    [5, 9],
    [100, 400.5],
  ]);
  for (const at of [0, 0.1, 5, 7, 9, 99.9, 100, 250, 400.5, 500])
    expect(scale.recorded(scale.played(at))).toBeCloseTo(at, 6);
});
