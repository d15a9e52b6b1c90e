/** A terminal's screen as a small picture. Only rows that look different than before are drawn. */

import type { IBufferCell, IBufferLine, ITheme, Terminal } from "@xterm/xterm";
import { terminalTheme } from "./themes";

const FONT_PX = 13;
/** Below this, what is drawn in its own colour cannot be told from its ground. */
const LEAST_CONTRAST = 2.5;
const TELL_MS = 1000;
const BOLD = "bold ";
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

/** Neighbouring letters that look alike, from a column on. */
interface Run {
  at: number;
  width: number;
  text: string;
  ink: string;
  ground: string;
  style: string;
}

interface Letters {
  font: string;
  width: number;
  height: number;
  ascent: number;
}

export class Painter {
  readonly canvas = document.createElement("canvas");
  private readonly context = this.canvas.getContext("2d", { alpha: false })!;
  private rows: string[] = [];
  private cell: IBufferCell | undefined;
  private shape = "";
  private text = "";
  private telling: ReturnType<typeof setTimeout> | undefined;
  /** Pixels of the picture for each of the terminal's own. */
  private across = 1;
  private down = 1;
  private colours = new Colours(terminalTheme());

  /** The whole screen, as large as fits into the box, and never larger than it is. */
  paint(term: Terminal, box: { width: number; height: number }): void {
    if (box.width < 1 || box.height < 1) return;
    const letters = lettersOf(term.options.fontFamily ?? "monospace");
    const [width, height] = [term.cols * letters.width, term.rows * letters.height];
    const scale = Math.min(box.width / width, box.height / height, 1);
    this.prepare(letters, width * scale, height * scale, `${term.cols} ${term.rows}`);
    this.across = this.canvas.width / width;
    this.down = this.canvas.height / height;
    const buffer = term.buffer.active;
    const text: string[] = [];
    for (let row = 0; row < term.rows; row++) {
      const line = buffer.getLine(buffer.baseY + row);
      const runs = line ? this.runs(line, term.cols) : [];
      text.push(runs.map((run) => run.text).join(""));
      const look = runs.map(({ at, text, ink, ground, style }) => `${at}${style}${ink}${ground}${text}`).join("\0");
      if (this.rows[row] === look) continue;
      this.rows[row] = look;
      this.row(row, runs, letters, term.cols);
    }
    this.tell(text.join("\n").trimEnd());
  }

  /** What a canvas contains is for those who do not see it, and need not follow every frame. */
  private tell(text: string): void {
    this.text = text;
    if (this.telling !== undefined || this.canvas.textContent === text) return;
    this.canvas.textContent = text;
    this.telling = setTimeout(() => {
      this.telling = undefined;
      this.tell(this.text);
    }, TELL_MS);
  }

  close(): void {
    clearTimeout(this.telling);
    this.canvas.remove();
  }

  /** Everything anew when the picture has another size or other colours. */
  private prepare(letters: Letters, width: number, height: number, screen: string): void {
    const ratio = devicePixelRatio || 1;
    const colours = terminalTheme();
    const shape = `${letters.font} ${Math.round(width * ratio)} ${Math.round(height * ratio)} ${screen} ${colours.background}`;
    if (shape === this.shape) return;
    this.shape = shape;
    this.rows = [];
    this.colours = new Colours(colours);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
  }

  private row(row: number, runs: Run[], letters: Letters, cols: number): void {
    const { context } = this;
    const top = row * letters.height;
    this.fill(this.colours.ground, 0, top, cols * letters.width, letters.height);
    for (const { at, width, text, ink, ground, style } of runs) {
      const left = at * letters.width;
      if (ground !== this.colours.ground) this.fill(ground, left, top, width * letters.width, letters.height);
      if (text.trim() === "") continue;
      context.setTransform(this.across, 0, 0, this.down, 0, 0);
      context.font = style + letters.font;
      context.fillStyle = ink;
      context.fillText(text, left, top + letters.ascent);
    }
  }

  /** Whole pixels only: between neighbours nothing shines through. */
  private fill(colour: string, left: number, top: number, width: number, height: number): void {
    const [x, y] = [Math.round(left * this.across), Math.round(top * this.down)];
    const [right, bottom] = [Math.round((left + width) * this.across), Math.round((top + height) * this.down)];
    this.context.resetTransform();
    this.context.fillStyle = colour;
    this.context.fillRect(x, y, right - x, bottom - y);
  }

  /** Letters that not every font has are drawn one by one: those of another font have another width. */
  private runs(line: IBufferLine, cols: number): Run[] {
    const runs: Run[] = [];
    let last: Run | undefined;
    let isPlain = true;
    for (let at = 0; at < cols; at++) {
      this.cell = line.getCell(at, this.cell);
      const cell = this.cell;
      if (!cell || cell.getWidth() === 0) continue;
      const text = (!cell.isInvisible() && cell.getChars()) || " ";
      const [ink, ground] = this.colours.of(cell);
      const style = cell.isBold() ? BOLD : "";
      const plain = text.length === 1 && text < "\x7f";
      if (last && plain && isPlain && last.ink === ink && last.ground === ground && last.style === style) {
        last.text += text;
        last.width++;
      } else {
        last = { at, width: cell.getWidth(), text, ink, ground, style };
        runs.push(last);
      }
      isPlain = plain;
    }
    if (last && last.ground === this.colours.ground) last.text = last.text.trimEnd();
    return runs;
  }
}

/** What a cell's colours are, in words that a canvas knows. */
class Colours {
  readonly ground: string;
  private readonly ink: string;
  private readonly named: string[];
  private readonly pairs = new Map<number, [string, string]>();

  constructor(theme: ITheme) {
    this.ground = theme.background ?? "#000000";
    this.ink = theme.foreground ?? "#ffffff";
    const bright = (name: string) => `bright${name.charAt(0).toUpperCase()}${name.slice(1)}` as keyof ITheme;
    this.named = [...NAMES, ...NAMES.map(bright)].map((name) => String(theme[name] ?? this.ink));
  }

  of(cell: IBufferCell): [string, string] {
    const flags = (cell.isInverse() ? 1 : 0) + (cell.isDim() ? 2 : 0);
    const [ink, ground] = [
      code(cell.isFgRGB(), cell.isFgDefault(), cell.getFgColor()),
      code(cell.isBgRGB(), cell.isBgDefault(), cell.getBgColor()),
    ];
    const key = (ink * CODES + ground) * 4 + flags;
    let pair = this.pairs.get(key);
    if (!pair) {
      pair = this.pair(ink, ground, flags);
      if (this.pairs.size > MOST_PAIRS) this.pairs.clear();
      this.pairs.set(key, pair);
    }
    return pair;
  }

  private pair(inkCode: number, groundCode: number, flags: number): [string, string] {
    let [ink, ground] = [this.word(inkCode, this.ink), this.word(groundCode, this.ground)];
    if (flags & 1) [ink, ground] = [ground, ink];
    if (flags & 2) ink = mixed(ink, ground);
    if (contrast(ink, ground) < LEAST_CONTRAST)
      ink = contrast(this.ink, ground) > contrast(this.ground, ground) ? this.ink : this.ground;
    return [ink, ground];
  }

  private word(colour: number, usual: string): string {
    if (colour === 0) return usual;
    if (colour >= RGB) return hex(colour - RGB);
    const at = colour - 1;
    if (at < 16) return this.named[at]!;
    if (at >= 232) return hex((8 + (at - 232) * 10) * 0x010101);
    const level = (part: number) => (part === 0 ? 0 : 55 + part * 40);
    const cube = at - 16;
    return hex((level(Math.floor(cube / 36)) << 16) | (level(Math.floor(cube / 6) % 6) << 8) | level(cube % 6));
  }
}

const MOST_PAIRS = 4096;
const RGB = 257;
/** More than there are codes: 0 for the usual colour, then 256 numbered ones, then all others. */
const CODES = 2 ** 25;

function code(isRgb: boolean, isDefault: boolean, colour: number): number {
  if (isDefault) return 0;
  return isRgb ? RGB + colour : 1 + colour;
}

const hex = (colour: number): string => `#${colour.toString(16).padStart(6, "0")}`;
const parts = (colour: string): number[] => [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));

function mixed(one: string, other: string): string {
  const others = parts(other);
  return hex(parts(one).reduce((sum, part, at) => sum * 256 + ((part + others[at]!) >> 1), 0));
}

function contrast(one: string, other: string): number {
  const [a, b] = [luminance(one), luminance(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

function luminance(colour: string): number {
  const [red, green, blue] = parts(colour).map((part) => (part / 255) ** 2.2);
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

let measured: Letters | undefined;

function lettersOf(family: string): Letters {
  const font = `${FONT_PX}px ${family}`;
  if (measured?.font === font) return measured;
  const context = document.createElement("canvas").getContext("2d")!;
  context.font = font;
  const found = context.measureText("0".repeat(100));
  const [up, down] = [found.fontBoundingBoxAscent, found.fontBoundingBoxDescent];
  measured = { font, width: found.width / 100, height: Math.ceil(up + down), ascent: up };
  return measured;
}
