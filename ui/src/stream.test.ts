import { describe, expect, test } from "vitest";
import { type Frame, frameOf, GAP, gapText, OUTPUT, SNAPSHOT } from "./frames";
import type { Attached } from "./shapes";
import { Stream } from "./stream";

const bytes = (text: string) => new TextEncoder().encode(text);
const output = (channel: number, offset: number, text: string): Frame => ({
  kind: OUTPUT,
  channel,
  offset,
  data: bytes(text),
});
const snapshot = (channel: number, offset: number, text: string): Frame => ({
  kind: SNAPSHOT,
  channel,
  offset,
  data: bytes(text),
});
const attached = (channel: number, run: number): Attached => ({
  type: "session.attached",
  sessionId: "k3v9q0x2m7ab",
  channel,
  run,
  cols: 80,
  rows: 24,
  offset: 0,
});

function shown(stream: Stream, ...frames: Frame[]): string {
  const parts = frames
    .flatMap((frame) => stream.frame(frame))
    .map((effect) => {
      if (effect.do === "write") return new TextDecoder().decode(effect.data);
      if (effect.do === "reset") return `[reset]${new TextDecoder().decode(effect.data)}`;
      return `[${effect.do}]`;
    });
  return parts.join("");
}

function open(): Stream {
  const stream = new Stream();
  expect(stream.ask(1)).toEqual({ from: undefined });
  expect(stream.attached(attached(1, 1))).toEqual([]);
  return stream;
}

describe("a stream", () => {
  test("shows the screen, then what follows", () => {
    const stream = open();
    expect(shown(stream, snapshot(1, 7, "screen"), output(1, 7, "abc"), output(1, 10, "d"))).toBe("[reset]screenabcd");
    expect(stream.next).toBe(11);
  });

  test("comes back with the first byte that it has not shown", () => {
    const stream = open();
    shown(stream, snapshot(1, 0, ""), output(1, 0, "abc"));
    stream.lose();
    expect(shown(stream, output(1, 3, "late"))).toBe("");
    expect(stream.ask(1)).toEqual({ from: 3 });
    expect(stream.attached(attached(1, 1))).toEqual([]);
    expect(shown(stream, output(1, 3, "def"))).toBe("def");
  });

  test("shows a byte that comes twice once", () => {
    const stream = open();
    expect(shown(stream, snapshot(1, 0, ""), output(1, 0, "abc"), output(1, 1, "bcd"), output(1, 0, "ab"))).toBe(
      "[reset]abcd",
    );
  });

  test("asks for the screen when bytes are missing that nobody announced", () => {
    const stream = open();
    expect(shown(stream, snapshot(1, 0, ""), output(1, 5, "x"), output(1, 6, "y"))).toBe("[reset][attach]");
    stream.attached(attached(2, 1));
    expect(shown(stream, snapshot(2, 9, "screen"), output(2, 9, "z"))).toBe("[reset]screenz");
  });

  test("goes on behind an announced gap", () => {
    const stream = open();
    const lost = new Uint8Array(8);
    new DataView(lost.buffer).setBigUint64(0, 100n);
    expect(
      shown(stream, snapshot(1, 0, ""), { kind: GAP, channel: 1, offset: 0, data: lost }, output(1, 100, "x")),
    ).toBe("[reset][gap]x");
  });

  test("puts the next run under the last one, from its first byte on", () => {
    const stream = open();
    shown(stream, snapshot(1, 0, ""), output(1, 0, "abc"));
    expect(stream.attached(attached(2, 2))).toEqual([{ do: "attach", from: 0 }]);
    expect(shown(stream, snapshot(2, 0, "not this"))).toBe("");
    expect(stream.attached(attached(3, 2))).toEqual([{ do: "separate", run: 2 }]);
    expect(shown(stream, output(3, 0, "again"))).toBe("again");
  });

  test("does not take an offset of one run for that of another", () => {
    const stream = open();
    shown(stream, snapshot(1, 0, ""), output(1, 0, "abc"));
    stream.lose();
    expect(stream.ask(1)).toEqual({ from: 3 });
    expect(stream.attached(attached(1, 2))).toEqual([{ do: "attach", from: 0 }]);
  });

  test("ignores other channels and kinds that it does not know", () => {
    const stream = open();
    expect(shown(stream, output(9, 0, "x"), { kind: 77, channel: 1, offset: 0, data: bytes("x") })).toBe("");
  });
});

test("a frame is read from its bytes", () => {
  const head = [1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 5, 104, 105];
  expect(frameOf(new Uint8Array(head).buffer)).toEqual({ kind: 1, channel: 2, offset: 2 ** 32 + 5, data: bytes("hi") });
  expect(frameOf(new ArrayBuffer(5))).toBeNull();
});

test("a gap that nobody could count has no number", () => {
  expect([1, 8].map(gapText)).toEqual([
    "some output is missing here (amount unknown)",
    "8 bytes are no longer in the log",
  ]);
});
