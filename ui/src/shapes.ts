/** What the hub sends. Fields and words that are not known here are to be ignored. */

export interface Session {
  id: string;
  index: number;
  name: string;
  description: string;
  agent: string;
  runtime: string;
  record: string;
  workspace: { id: string | null; path: string; branch: string | null };
  run: number;
  state: string;
  status: string;
  label: string;
  attention: string;
  sandbox_alive: boolean | null;
  session_alive: boolean | null;
  exit: { code: number | null; signal: string | null; core_dumped: boolean; intent: string | null } | null;
  created_at: string | null;
  started_at: string | null;
  state_changed_at: string | null;
  last_activity_at: string | null;
  supports_resume: boolean;
}

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

export interface StoryLine {
  at: string;
  event: string;
  [field: string]: unknown;
}

export interface ChangedFile {
  path: string;
  status?: string;
  added?: number | null;
  deleted?: number | null;
  untracked?: boolean;
  [field: string]: unknown;
}

export interface Difference {
  base: string | null;
  head: string | null;
  branch: string | null;
  files: ChangedFile[];
  patch: string;
}

export interface Explanation {
  rule: string;
  at: string;
  facts: { fact: string; value: string; source: string; at: string | null }[];
}
