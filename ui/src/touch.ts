/**
 * Fingers on a terminal: one scrolls, two change the size of the letters.
 *
 * xterm.js 6.0 itself knows no touch (its issue 5489). A program that has taken the mouse or the whole screen gets what a
 * wheel would send it.
 */

import type { Terminal } from "@xterm/xterm";
import { setFontSize } from "./settings";

/** A finger that moved less than this has tapped. */
const TAP_PX = 8;
/** What a let go finger keeps of its speed, each millisecond. */
const GLIDE = 0.996;
const SLOWEST_PX_MS = 0.05;

export class Touch {
  private y = 0;
  private at = 0;
  private speed = 0;
  private rest = 0;
  private moves = false;
  private pinch: { apart: number; font: number } | null = null;
  private gliding = 0;

  constructor(
    private readonly element: HTMLElement,
    private readonly term: Terminal,
  ) {
    const hear = (name: keyof HTMLElementEventMap, listener: (event: TouchEvent) => void) =>
      element.addEventListener(name, listener as EventListener, { passive: false });
    hear("touchstart", (event) => this.begin(event));
    hear("touchmove", (event) => this.move(event));
    hear("touchend", (event) => this.end(event));
    hear("touchcancel", (event) => this.end(event));
  }

  private begin({ touches, timeStamp }: TouchEvent): void {
    cancelAnimationFrame(this.gliding);
    this.moves = false;
    this.speed = this.rest = 0;
    this.y = touches[0]!.clientY;
    this.at = timeStamp;
    this.pinch = touches.length === 2 ? { apart: apart(touches), font: this.term.options.fontSize! } : null;
  }

  private move(event: TouchEvent): void {
    if (this.pinch && event.touches.length === 2) {
      event.preventDefault();
      this.moves = true;
      setFontSize((this.pinch.font * apart(event.touches)) / this.pinch.apart);
      return;
    }
    const y = event.touches[0]!.clientY;
    const by = this.y - y;
    if (this.pinch || (!this.moves && Math.abs(by) < TAP_PX)) return;
    if (event.cancelable) event.preventDefault();
    this.moves = true;
    this.speed = by / Math.max(event.timeStamp - this.at, 1);
    this.y = y;
    this.at = event.timeStamp;
    this.scroll(by);
  }

  private end(event: TouchEvent): void {
    if (!this.moves) return;
    // no click comes of it, and no keyboard
    if (event.cancelable) event.preventDefault();
    if (event.touches.length > 0 || this.pinch || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    this.gliding = requestAnimationFrame((now) => this.glide(now, now));
  }

  private glide(last: number, now: number): void {
    this.speed *= GLIDE ** (now - last);
    if (Math.abs(this.speed) < SLOWEST_PX_MS || !this.element.isConnected) return;
    this.scroll(this.speed * (now - last));
    this.gliding = requestAnimationFrame((next) => this.glide(now, next));
  }

  /** First what shows a terminal that is larger than its place, then the terminal, by whole lines. */
  private scroll(pixels: number): void {
    const box = this.element.parentElement!;
    const top = box.scrollTop;
    box.scrollTop += pixels;
    this.rest += pixels - (box.scrollTop - top);
    const screen = this.element.querySelector<HTMLElement>(".xterm-screen")!;
    const height = screen.offsetHeight / this.term.rows;
    const lines = Math.trunc(this.rest / height);
    if (lines === 0) return;
    this.rest -= lines * height;
    if (this.term.modes.mouseTrackingMode === "none" && this.term.buffer.active.type === "normal")
      this.term.scrollLines(lines);
    else for (let line = 0; line < Math.abs(lines); line++) turnWheel(screen, Math.sign(lines));
  }
}

function turnWheel(screen: HTMLElement, deltaY: number): void {
  const { left, top, width, height } = screen.getBoundingClientRect();
  const middle = { clientX: left + width / 2, clientY: top + height / 2 };
  const lines = WheelEvent.DOM_DELTA_LINE;
  screen.dispatchEvent(
    new WheelEvent("wheel", { deltaY, deltaMode: lines, bubbles: true, cancelable: true, ...middle }),
  );
}

const apart = (touches: TouchList): number =>
  Math.hypot(touches[0]!.clientX - touches[1]!.clientX, touches[0]!.clientY - touches[1]!.clientY);
