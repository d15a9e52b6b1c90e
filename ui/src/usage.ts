/** What agents have used, in words. */

import type { UsageSum } from "./shapes";

/** Three digits are enough: 950, 12.3k, 4.56M. */
export function short(count: number): string {
  for (const [unit, size] of [
    ["G", 1e9],
    ["M", 1e6],
    ["k", 1e3],
  ] as const) {
    if (count >= size) return `${Number((count / size).toPrecision(3))}${unit}`;
  }
  return String(count);
}

/** What was read anew: also what the provider then keeps in its cache. */
export const inputOf = ({ input, cache_write }: UsageSum): number => input + cache_write;

export const costOf = ({ cost_usd }: UsageSum): string => (cost_usd === null ? "" : `$${cost_usd.toFixed(2)}`);

/** One line; empty when nothing was counted. */
export function summary(sum: UsageSum): string {
  if (sum.turns === 0) return "";
  const turns = sum.turns === 1 ? "1 turn" : `${sum.turns} turns`;
  const tokens = `${short(inputOf(sum))} in, ${short(sum.cached)} cached, ${short(sum.output)} out`;
  return [turns, `${tokens} tokens`, costOf(sum)].filter(Boolean).join(" · ");
}
