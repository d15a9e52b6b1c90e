import { expect, test } from "vitest";
import tokens from "./tokens.css?raw";

const GROUNDS = ["ground", "raised", "field", "hover", "chosen", "terminal"];
const COLOURS = ["red", "orange", "violet", "yellow", "blue", "green", "grey"];
const TEXTS = ["text", "quiet", "link", ...COLOURS.map((name) => `${name}-text`)];
const WASHES = ["red", "orange", "yellow", "green"];

/** A token's colour, light or dark. */
function colour(name: string, dark: boolean): string {
  const said = new RegExp(`--${name}: ([^;]+);`).exec(tokens)?.[1] ?? "";
  const other = /^var\(--([\w-]+)\)$/.exec(said)?.[1];
  if (other) return colour(other, dark);
  const both = /^light-dark\((#\w{6}), (#\w{6})\)$/.exec(said);
  const found = both ? both[dark ? 2 : 1]! : said;
  expect(found, name).toMatch(/^#[0-9a-f]{6}$/);
  return found;
}

function luminance(hex: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

/** What is too weak, in words; nothing where all can be read. */
function weak(texts: string[], grounds: string[], least: number): string[] {
  return [true, false].flatMap((dark) =>
    texts.flatMap((text) =>
      grounds.flatMap((ground) => {
        const found = contrast(colour(text, dark), colour(ground, dark));
        return found < least ? [`${dark ? "dark" : "light"}: ${text} on ${ground} ${found.toFixed(2)}`] : [];
      }),
    ),
  );
}

test("every text can be read on every ground, dark and light", () => {
  expect(weak(TEXTS, GROUNDS, 4.5)).toEqual([]);
  expect(weak(["on-accent"], ["accent"], 4.5)).toEqual([]);
  for (const name of WASHES) expect(weak(["text", "quiet", `${name}-text`], [`${name}-wash`], 4.5)).toEqual([]);
});

test("every dot, and the edge of every control, can be told from its ground", () => {
  expect(weak([...COLOURS, "edge-strong", "accent-edge"], ["ground", "raised", "field"], 3)).toEqual([]);
});

test("the red of a crash is the same everywhere", () => {
  expect([true, false].map((dark) => colour("red", dark))).toEqual(["#bf616a", "#bf616a"]);
});
