/** The one WebSocket. It comes back by itself, with growing pauses, and tells when it is there again. */

import { ApiError } from "./api";
import type { ClientMessage, HubMessage } from "./shapes";
import { entered, forget, leave, takeTicket } from "./signin";

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 8000;
const NOT_ALLOWED = 1008;

/** `refused`: not signed in. `stranger`: what answers is not our hub, as far as it has shown. */
export type Link = "connecting" | "open" | "lost" | "refused" | "stranger";

export function linkAfter(error: unknown): Link {
  if (!(error instanceof ApiError)) return "lost";
  if (error.code === "not_the_hub") return "stranger";
  return [401, 403, 429].includes(error.status) ? "refused" : "lost";
}

export interface Listener {
  link(state: Link): void;
  /** Messages that are not known are to be ignored. */
  message(message: HubMessage): void;
  frame(buffer: ArrayBuffer): void;
}

export class Connection {
  private socket: WebSocket | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private pause = FIRST_PAUSE_MS;
  private trying = false;

  constructor(private readonly listener: Listener) {
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.hurry());
  }

  open(): void {
    this.listener.link("connecting");
    void this.try();
  }

  /** False when there is no connection: what a person typed is then not kept for later, when it may mean harm. */
  send(message: ClientMessage): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  /** Try now instead of after the pause. */
  hurry(): void {
    if (this.timer === undefined) return;
    this.pause = FIRST_PAUSE_MS;
    void this.try();
  }

  private async try(): Promise<void> {
    if (this.trying) return;
    this.trying = true;
    clearTimeout(this.timer);
    this.timer = undefined;
    try {
      const ticket = await takeTicket();
      const address = new URL("/ws", location.href);
      address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
      address.searchParams.set("ticket", ticket);
      this.take(new WebSocket(address));
    } catch (error) {
      this.trying = false;
      leave();
      const link = linkAfter(error);
      if (link === "lost") this.later();
      else this.listener.link(link);
    }
  }

  private take(socket: WebSocket): void {
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.trying = false;
      this.pause = FIRST_PAUSE_MS;
      this.listener.link("open");
    };
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => {
      if (typeof event.data === "string") this.listener.message(JSON.parse(event.data) as HubMessage);
      else this.listener.frame(event.data);
    };
    socket.onclose = (event) => {
      this.trying = false;
      if (this.socket !== socket) return;
      this.socket = undefined;
      if (event.code === NOT_ALLOWED)
        void entered().then(
          ({ id }) => forget(id),
          () => undefined,
        );
      leave();
      this.later();
    };
  }

  private later(): void {
    this.listener.link("lost");
    const pause = this.pause * (0.75 + Math.random() / 2);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE_MS);
    this.timer = setTimeout(() => void this.try(), pause);
  }
}
