/** What goes over the WebSocket. Messages that are not known here are to be ignored. */

import type { Session } from "./shapes";

export interface Attached {
  type: "session.attached";
  sessionId: string;
  channel: number;
  run: number;
  cols: number;
  rows: number;
  offset: number;
}

export type HubMessage =
  | Attached
  | { type: "session.created" | "session.updated" | "session.status"; sessionId: string; session: Session }
  | { type: "session.removed"; sessionId: string; session: Session }
  | { type: "terminal.exit"; sessionId: string; exitCode: number | null; signal?: string; run: number }
  | { type: "terminal.size"; sessionId: string; cols: number; rows: number }
  | { type: "error"; code: string; message: string; sessionId?: string };

export type PageMessage =
  | { type: "session.attach"; sessionId: string; cols: number; rows: number; from?: number; readOnly?: boolean }
  | { type: "session.detach" | "session.resume"; sessionId: string }
  | { type: "terminal.input" | "terminal.answer"; sessionId: string; data: string }
  | { type: "terminal.resize"; sessionId: string; cols: number; rows: number };
