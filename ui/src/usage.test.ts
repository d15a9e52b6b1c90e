import { expect, test } from "vitest";
import { short, summary } from "./usage";

const SUM = { key: "", turns: 0, input: 0, cached: 0, cache_write: 0, output: 0, cost_usd: null, total: 0 };

test("a count has three digits", () => {
  expect([0, 999, 1000, 1200, 12_345, 999_400, 1_000_000, 4_560_000, 2e9].map(short)).toEqual([
    "0",
    "999",
    "1k",
    "1.2k",
    "12.3k",
    "999k",
    "1M",
    "4.56M",
    "2G",
  ]);
  expect([100_000, 120_000, 300].map(short)).toEqual(["100k", "120k", "300"]);
});

test("what was used is one line, with its cost where that is known", () => {
  expect(summary(SUM)).toBe("");
  expect(summary({ ...SUM, turns: 1, input: 700, cache_write: 300, output: 3 })).toBe(
    "1 turn · 1k in, 0 cached, 3 out tokens",
  );
  expect(summary({ ...SUM, turns: 2, cached: 9000, cost_usd: 0.125 })).toBe(
    "2 turns · 0 in, 9k cached, 0 out tokens · $0.13",
  );
});
