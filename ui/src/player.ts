/** Plays a run's recording in a terminal of its own. Only what is looked at is fetched, in parts. */

import { computed, signal } from "@preact/signals";
import { ask, sessionPath } from "./api";
import { bytesOf } from "./replay";
import { Scale } from "./scale";
import type { ReplayEvent, ReplayOutline, ReplayPart } from "./shapes";
import { onTheme, terminalTheme } from "./themes";
import { newTerminal } from "./xterm";

/** Fetch the next part when there is less than this to play. */
const FEW_EVENTS = 200;
/** More than this not yet parsed: the clock waits. */
const MOST_PENDING = 1 << 20;
const LONGEST_STEP_S = 0.25;
const AFTER_A_GAP = "\x18\x1b[m";
const SMALLEST_FONT = 5;
const LARGEST_FONT = 15;

export const SPEEDS = [1, 2, 4, 8] as const;

export class Player {
  readonly element = document.createElement("div");
  readonly term = newTerminal();
  readonly outline = signal<ReplayOutline | null>(null);
  /** Where it is, in seconds of playing. */
  readonly position = signal(0);
  readonly playing = signal(false);
  readonly speed = signal<number>(1);
  readonly trouble = signal("");
  /** Whether the terminal shows what it showed at that position. */
  readonly settled = signal(false);
  readonly scale = computed(
    () =>
      new Scale(
        this.outline.value?.length_s ?? 0,
        (this.outline.value?.idle ?? []).map((stretch) => [stretch.from_s, stretch.to_s]),
      ),
  );
  /** The moment that is shown, in milliseconds since 1970. */
  readonly moment = computed(() => this.began + this.scale.value.recorded(this.position.value) * 1000);

  private readonly observer = new ResizeObserver(() => this.fit());
  private readonly stopTheming = onTheme(() => (this.term.options.theme = terminalTheme()));
  private queue: ReplayEvent[] = [];
  private next: number | null = null;
  private wanted: number | undefined;
  private seeking = false;
  private fetching = false;
  private pending = 0;
  private last = 0;
  private over = false;

  constructor(
    private readonly session: string,
    private readonly run: number,
  ) {
    this.element.className = "terminal read-only";
    this.term.options.disableStdin = true;
  }

  get began(): number {
    return Date.parse(this.outline.value?.began_at ?? "") || 0;
  }

  show(parent: HTMLElement): void {
    parent.append(this.element);
    this.term.open(this.element);
    this.observer.observe(parent);
  }

  /** Show the moment that many milliseconds after 1970; the nearest one that was recorded. And `play` on from there. */
  async open(moment: number, play = false): Promise<void> {
    try {
      this.outline.value ??= await ask<ReplayOutline>("GET", this.path(""));
    } catch (error) {
      this.trouble.value = (error as Error).message;
      return;
    }
    this.seek(
      this.scale.value.played(Math.min(Math.max((moment - this.began) / 1000, 0), this.outline.value.length_s)),
    );
    if (play !== this.playing.value && !(play && this.atEnd)) this.toggle();
  }

  close(): void {
    this.over = true;
    this.playing.value = false;
    this.observer.disconnect();
    this.stopTheming();
    this.element.remove();
    this.term.dispose();
  }

  toggle(): void {
    if (this.playing.value) {
      this.playing.value = false;
      return;
    }
    if (this.atEnd) this.seek(0);
    this.playing.value = true;
    this.last = performance.now();
    requestAnimationFrame((now) => this.step(now));
  }

  /** Of many positions that are wanted while one is fetched, the last one counts. */
  seek(position: number): void {
    this.wanted = this.position.value = Math.min(Math.max(position, 0), this.scale.value.length);
    this.settled.value = false;
    if (!this.seeking) void this.seekAll();
  }

  private async seekAll(): Promise<void> {
    this.seeking = true;
    try {
      while (this.wanted !== undefined && !this.over) {
        const at = this.scale.value.recorded(this.wanted);
        this.wanted = undefined;
        const part = await ask<ReplayPart>(
          "GET",
          this.path("/part", `&at=${Math.min(at, this.outline.value!.length_s)}`),
        );
        if (this.wanted === undefined && !this.over) await this.replace(part);
      }
      this.trouble.value = "";
    } catch (error) {
      this.trouble.value = (error as Error).message;
      this.playing.value = false;
    }
    this.seeking = false;
  }

  private async replace(part: ReplayPart): Promise<void> {
    await new Promise<void>((done) => this.term.write("", done));
    if (this.over || !part.screen) return;
    this.term.reset();
    this.resize(part.screen.cols, part.screen.rows);
    this.queue = part.events;
    this.next = part.next;
    await new Promise<void>((done) => this.term.write(bytesOf(part.screen!.data), done));
    if (!this.over && this.wanted === undefined) this.settled.value = true;
  }

  private get atEnd(): boolean {
    return this.position.value >= this.scale.value.length;
  }

  private step(now: number): void {
    if (!this.playing.value) return;
    const passed = Math.min(Math.max(now - this.last, 0) / 1000, LONGEST_STEP_S);
    this.last = now;
    if (!this.seeking) {
      const starved = this.queue.length === 0 && this.next !== null;
      const to =
        starved || this.pending > MOST_PENDING ? this.position.value : this.position.value + passed * this.speed.value;
      this.position.value = Math.min(to, this.scale.value.length);
      this.write();
    }
    if (this.atEnd && !this.seeking && (this.queue.length > 0 || this.next === null)) this.playing.value = false;
    else requestAnimationFrame((later) => this.step(later));
  }

  /** Everything that is due. A run that lives may have gone on since its length was told: that is not shown. */
  private write(): void {
    const until = this.atEnd ? this.outline.value!.length_s : this.scale.value.recorded(this.position.value);
    const later = this.queue.findIndex((event) => event.at_s > until);
    for (const event of this.queue.splice(0, later < 0 ? this.queue.length : later)) this.writeOne(event);
    if (this.queue.length < FEW_EVENTS && this.next !== null && !this.fetching) void this.fetchMore(this.next);
  }

  private writeOne(event: ReplayEvent): void {
    const { data, cols, rows } = event;
    if (cols && rows) this.term.write("", () => this.resize(cols, rows));
    if (!data) return;
    if (event.lost === null || event.lost) this.term.write(AFTER_A_GAP);
    const bytes = bytesOf(data);
    this.pending += bytes.length;
    this.term.write(bytes, () => (this.pending -= bytes.length));
  }

  private async fetchMore(from: number): Promise<void> {
    this.fetching = true;
    try {
      const part = await ask<ReplayPart>("GET", this.path("/part", `&from=${from}`));
      if (this.next === from) {
        this.queue.push(...part.events);
        this.next = part.next;
      }
    } catch (error) {
      this.trouble.value = (error as Error).message;
      this.playing.value = false;
    }
    this.fetching = false;
  }

  private resize(cols: number, rows: number): void {
    this.term.resize(cols, rows);
    this.fit();
  }

  /** The recording's size is given: the letters become as small as they must. */
  private fit(): void {
    const [box, screen] = [this.element.parentElement, this.element.querySelector<HTMLElement>(".xterm-screen")];
    if (!box || !screen?.offsetWidth || !screen.offsetHeight) return;
    const factor = Math.min((box.clientWidth - 24) / screen.offsetWidth, (box.clientHeight - 12) / screen.offsetHeight);
    const font = this.term.options.fontSize ?? LARGEST_FONT;
    const fitting = Math.min(Math.max(Math.floor(font * factor * 2) / 2, SMALLEST_FONT), LARGEST_FONT);
    if (fitting !== font) this.term.options.fontSize = fitting;
  }

  private path(what: string, more = ""): string {
    return `${sessionPath(this.session, "replay")}${what}?run=${this.run}${more}`;
  }
}
