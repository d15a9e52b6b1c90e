/** A session for unit tests, with what each of them is about. */

import type { Session } from "./shapes";

export const session = (fields: Partial<Session>): Session => ({
  id: "k3v9q0x2m7ab", index: 1, name: "dev", description: "", agent: "claude", runtime: "local", record: "active",
  workspace: { id: null, path: "/src/shop", branch: null }, run: 1, state: "running", status: "running", label: "running",
  quiet_since: null, attention: "working", colour: "green", live: true, takes_prompt: true, rank: 4, sandbox_alive: null, session_alive: true, exit: null, survivors: 0, created_at: null, started_at: null,
  state_changed_at: null, last_activity_at: null, last_active_at: null, idle_after_s: 30, supports_resume: false, ...fields,
});
