/**
 * What REST and the WebSocket take and give, and words of the model, made by `script/ui shapes`; not to be edited.
 * Fields and words that are not known here are to be ignored.
 */

/** A session as `/api/agents` shows it. `state` may be a word that a client does not know. */
export interface AgentView {
  id: string;
  name: string;
  display_name: string;
  state: string;
  session_alive: boolean | null;
  sandbox_alive: boolean | null;
  container?: string | null;
}

/** `request` names what is answered; empty means what is asked now. */
export interface Answer {
  choice: string;
  request?: string;
  message?: string;
}

/** Look at a session; `from` is the offset of the first byte that is wanted. */
export interface Attach {
  sessionId: string;
  type: "session.attach";
  cols?: number;
  rows?: number;
  readOnly?: boolean;
  picture?: boolean;
  from?: number | null;
}

/** Binary frames of this view carry `channel`. */
export interface Attached {
  type: "session.attached";
  sessionId: string;
  channel: number;
  run: number;
  cols: number;
  rows: number;
  offset: number;
}

/** What a session can be made of on the hub's machine, or in a fleet's pods: there are `profiles` there, the usual */
export interface Catalog {
  agents: CatalogAgent[];
  runtimes: CatalogRuntime[];
  profiles: CatalogProfile[];
  detach_key: string;
}

/** `path` is where its program is; null when it is not installed, and `install` then says how to. */
export interface CatalogAgent {
  name: string;
  title: string;
  argv: string[];
  path: string | null;
  install: string;
  broken: string;
  options: string[];
  watched: boolean;
  chat: boolean;
  conversations: string;
}

/** What a session in a pod can have. Amounts are as Kubernetes writes them. */
export interface CatalogProfile {
  name: string;
  cpu: string;
  memory: string;
  storage: string;
}

/** `missing` is why it cannot be used; empty when it can. */
export interface CatalogRuntime {
  name: string;
  available: boolean;
  missing: string;
}

/** `origin` is where the page was loaded from, and has to be ours. */
export interface Challenge {
  id: string;
  nonce: string;
  origin: string;
}

/** Lines are counted for text only. `status` is git's letter. */
export interface ChangedFile {
  path: string;
  old_path: string | null;
  status: string;
  added: number | null;
  deleted: number | null;
  binary: boolean;
  untracked: boolean;
}

export interface Changes {
  name?: string | null;
  description?: string | null;
  idle_after_s?: number | null;
  pinned?: boolean | null;
  snooze_s?: number | null;
  when_limit?: "" | "stop" | "wait" | null;
}

export interface Chat {
  lines: ChatLine[];
  next: number;
}

/** `type` is begun, user, agent, thought, tool, plan, permission, answer, turn or notice. Messages come in parts. */
export interface ChatLine {
  at: string;
  run: number;
  type: string;
  text?: string;
  resumed?: boolean;
  images?: boolean | string[];
  prompt?: string;
  id?: string;
  title?: string;
  kind?: string;
  status?: string;
  output?: string;
  diffs?: ToolDiff[];
  entries?: PlanEntry[];
  request?: string;
  tool?: string;
  options?: Record<string, string>;
  choice?: string;
  state?: string;
  message?: string;
  [field: string]: unknown;
}

/** A part of a chat that is followed: `from` is the offset of its first byte, `next` that behind its last. */
export interface ChatLines {
  type: "chat.lines";
  sessionId: string;
  from: number;
  lines: ChatLine[];
  next: number;
}

export interface Code {
  url: string;
  launch_url: string;
}

/** What `hitch` says and ends with, where it is another than the rest tells: options to use, its exit code. */
export interface CommandLine {
  hint?: string | null;
  exit_code?: number | null;
}

/** Files that would be committed; `refusal` says why they cannot be, and is empty when they can. */
export interface CommitPlan {
  changed: string[];
  new: string[];
  refusal: string;
}

/** A container that is there. `name` is what people read, `container` its name at the engine. */
export interface Container {
  name: string;
  container: string;
  session: string;
  state: string;
  status: string;
  note: string;
}

export interface Cordon {
  on?: boolean;
}

export interface Detach {
  sessionId: string;
  type: "session.detach";
}

export interface Difference {
  base: string | null;
  head: string | null;
  branch: string | null;
  files: ChangedFile[];
  patch: string;
  cut: boolean;
}

export interface Drain {
  how?: "rest" | "suspend" | "move" | null;
}

export interface DrainStep {
  id: string;
  name: string;
  label: string;
  step: "end" | "pod" | "stays";
  words: string;
}

export interface Drained {
  became: "left" | "ended" | "suspended" | "moved";
  session: Session;
}

/** `exitCode` is 128 and the number for a signal; null when nobody saw the end. */
export interface Ended {
  type: "terminal.exit";
  sessionId: string;
  exitCode: number | null;
  signal?: string | null;
  signalNumber?: number | null;
  run: number;
}

export interface Error {
  code: string;
  message: string;
  hint?: string;
  field?: string | null;
  cli?: CommandLine | null;
}

export interface ErrorBody {
  error: Error;
}

/** What the client asked for was not done. */
export interface ErrorMessage {
  type: "error";
  code: string;
  message: string;
  sessionId?: string | null;
}

export interface Exit {
  code: number | null;
  signal: string | null;
  core_dumped: boolean;
  intent: string | null;
  ended_at: string | null;
  ended_at_known: boolean;
}

/** `in_status_s` is how long it has had its status. `story` is there when it was asked for. */
export interface Explanation {
  session: Session;
  at: string;
  in_status_s: number;
  rule: string;
  facts: Fact[];
  story?: StoryLine[] | null;
}

export interface Export {
  version: number;
  exported_at: string;
  sessions: ExportedSession[];
}

/** `status` is active, waiting, idle, error or stopped; `session` is the one shape. */
export interface ExportedSession {
  sessionId: string;
  name: string;
  status: string;
  reason: string | null;
  worktreePath: string;
  branch: string | null;
  createdAt: string | null;
  lastActivity: string | null;
  exitCode: number | null;
  signal: string | null;
  session: Session;
}

/** `source` is a file of the session's folder, or what was looked at. */
export interface Fact {
  fact: string;
  value: string;
  source: string;
  at: string | null;
}

/** `working`: the agent works, so nothing is done without `force`. `message` is what a commit says if nobody */
export interface FinishPlan {
  working: boolean;
  live: boolean;
  branch: string;
  folder: string;
  message: string;
  commit: CommitPlan;
  merge: MergePlan | null;
  push: PushPlan | null;
  pull_request: string[] | null;
}

/** The steps to do, in this order. */
export interface FinishWish {
  commit?: boolean;
  merge?: boolean;
  push?: boolean;
  remove?: boolean;
  message?: string;
  into?: string | null;
  force?: boolean;
}

/** What was done: the commits, the ref that keeps what was not committed before, the folder that was removed. */
export interface Finished {
  snapshot: string | null;
  commit: string | null;
  merge: string | null;
  push: Pushed | null;
  removed: string | null;
  pull_request: string[] | null;
  notes?: string[];
  session: Session;
}

export interface Fleet {
  replica: string;
  database: string;
  revision: number;
  replicas: Replica[];
  nodes: Node[];
  problems: string[];
}

/** `repository` says that it is the top of a git repository. */
export interface Folder {
  path: string;
  repository: boolean;
}

/** `path` is what was typed, in full, `home` what `~` stands for, `repository` the one that `path` is in. */
export interface Folders {
  path: string;
  home: string;
  is_folder: boolean;
  repository: string | null;
  branch: string | null;
  folders: Folder[];
  cut: boolean;
}

/** Send what is said in the session over ACP, from the byte `from` on, and each further line as it comes. */
export interface FollowChat {
  sessionId: string;
  type: "chat.follow";
  from?: number;
}

export interface ForkWish {
  name?: string | null;
}

/** A session, and what the command line says about it: the `word` that means it in a shell, how it goes on when it */
export interface Found {
  session: Session;
  word: string;
  way_on: string;
  notes: string[];
}

export interface Health {
  ok: boolean;
  version: string;
  pid: number;
  uptime_s: number;
  sessions: number;
  live: number;
  problems?: string[];
}

/** The hub's nonce, and its proof that it knows the secret that belongs to the id. */
export interface HubProof {
  nonce: string;
  proof: string;
}

/** Nothing was shown between the two, in seconds since the beginning. */
export interface IdleStretch {
  from_s: number;
  to_s: number;
}

/** What a person types; or, as an answer, what a client's terminal says by itself when the program asks it. */
export interface Input {
  sessionId: string;
  type: "terminal.input" | "terminal.answer";
  data: string;
  encoding?: "utf-8" | "base64";
}

/** Whom a launch code is to sign in: a person, with no more than `role`, or the hub's own user. */
export interface LaunchWish {
  role?: string;
  user?: string | null;
  sessions?: string[] | null;
  lasts_s?: number;
}

export interface LeaveChat {
  sessionId: string;
  type: "chat.leave";
}

/** What somebody may use at once: sessions that run, and what their pods ask for, such as 2 or `500m` processors */
export interface Limits {
  sessions?: number | string | null;
  cpu?: number | string | null;
  memory?: number | string | null;
  storage?: number | string | null;
}

/** What was deleted with a session and is nowhere else, in words. */
export interface Lost {
  lost: string[];
}

export interface Made {
  workspace: WorkspaceView;
  notes: string[];
}

/** `token` is shown this once. */
export interface MadeToken {
  id: string;
  token: string;
}

/** `name` is whose sign-in it is, or what a token was made for; empty for the hub's own user. `sessions` are the */
export interface Me {
  name: string;
  user: string | null;
  role: string;
  may: string[];
  sessions: string[] | null;
  expires_at: string | null;
}

/** `folder` is your own worktree whose files follow the branch, if one does. */
export interface MergePlan {
  into: string;
  kind: "up-to-date" | "fast-forward" | "merge" | "conflicts";
  commits: number;
  conflicts: string[];
  folder: string | null;
  refusal: string;
}

export interface NamedSession {
  id: string;
  name: string;
  label: string;
}

/** An agent of the catalog, or any command; `folder` is where a branch or a relative path is looked for. */
export interface NewSession {
  agent?: string | null;
  command?: string[];
  folder?: string | null;
  repo?: string | null;
  profile?: string;
  branch?: string | null;
  workspace?: string | null;
  exclusive?: boolean;
  share?: boolean;
  name?: string | null;
  description?: string;
  runtime?: string;
  sandbox?: Sandbox | null;
  permission_mode?: string;
  model?: string;
  idle_after_s?: number | null;
  when_limit?: "" | "stop" | "wait";
  prompt?: string | null;
  prompt_is_typed?: boolean;
  until_ready?: boolean;
  env?: Record<string, unknown>;
  cols?: number;
  rows?: number;
}

export interface NewSubscription {
  endpoint: string;
  keys: SubscriptionKeys;
}

/** `user` is whose token it is: it may do what that person may, and no more than `role`. Without one, it is a */
export interface NewToken {
  name?: string;
  user?: string | null;
  role?: "owner" | "member" | "viewer";
  sessions?: string[] | null;
  lasts_s?: number | null;
}

export interface NewUser {
  name: string;
  role?: "owner" | "member" | "viewer";
  quota?: Limits;
}

/** A worktree on a branch, new or there already, of the repository that `folder` is in. */
export interface NewWorkspace {
  folder: string;
  branch: string;
}

export interface Node {
  name: string;
  ready: boolean | null;
  cordoned: boolean;
  sessions: number;
  live: number;
}

export interface NodePlan {
  name: string;
  ready: boolean | null;
  cordoned: boolean;
  sessions: number;
  live: number;
  how: "rest" | "suspend" | "move";
  steps: DrainStep[];
  drained: NamedSession[];
}

export interface NotificationChannel {
  name: "browser" | "push" | "ntfy" | "webhook" | "command" | "desktop" | "terminal";
  ready: boolean;
  on: boolean;
  where: string;
}

/** What a person chooses in the page. What is left out stays as it is. */
export interface NotificationChoices {
  kinds?: ("permission" | "your-turn" | "error" | "failed" | "finished" | "hub")[] | null;
  sessions?: Record<string, unknown> | null;
  dwell_s?: number | null;
  cooldown_s?: number | null;
  group_s?: number | null;
  quiet_hours?: string | null;
  off?: ("browser" | "push" | "ntfy" | "webhook" | "command" | "desktop" | "terminal")[] | null;
}

/** A person is to be told; `to` says by whom: a page that may show notifications, or an attached terminal. */
export interface NotificationMessage {
  type: "notification";
  sessionId: string;
  to: "browser" | "terminal";
  id: string;
  title: string;
  body: string;
}

export interface NotificationOutcome {
  channel: string;
  outcome: string;
  why: string;
  ms: number;
}

export interface NotificationTest {
  channel?: string;
}

export interface Notifications {
  kinds: ("permission" | "your-turn" | "error" | "failed" | "finished" | "hub")[];
  every_kind: ("permission" | "your-turn" | "error" | "failed" | "finished" | "hub")[];
  sessions: Record<string, ("permission" | "your-turn" | "error" | "failed" | "finished" | "hub")[]>;
  dwell_s: number;
  cooldown_s: number;
  group_s: number;
  quiet_hours: string;
  channels: NotificationChannel[];
  push_key: string;
  subscriptions: PushSubscription[];
}

/** `outcome` is finished, asked, limit or failed; null when time was up, as in `/api/wait`. */
export interface OutcomeView {
  outcome: string | null;
  exit_code: number | null;
  answer: string | null;
  usage: TokensUsed | null;
  has_ended: boolean;
  not_yet: string;
  session: Session | null;
}

/** `first` and `end` are the offsets that the log has bytes between; some in the middle may be missing. */
export interface OutputOutline {
  run: number;
  first: number;
  end: number;
  told_end: number;
}

/** The hub's nonce, and the page's proof. */
export interface PageProof {
  nonce: string;
  proof: string;
}

export interface PlanEntry {
  text: string;
  status: string;
}

/** `resume`: a session that has ended or is suspended is resumed first. */
export interface Prompt {
  text: string;
  enter?: boolean;
  force?: boolean;
  resume?: boolean;
  images?: string[];
}

/** `proof` is what showed that the agent has the prompt; without one it was typed, and is not confirmed. */
export interface PromptAnswer {
  delivered: boolean;
  proof: string;
  offset: number;
  started: boolean;
  waits: boolean;
  since: string;
  notes?: string[];
  session: Session;
}

export interface PushPlan {
  remote: string;
  url: string;
}

export interface PushSubscription {
  id: string;
  created_at: string;
  by: string;
}

export interface Pushed {
  remote: string;
  url: string;
  branch: string;
}

/** The state-machine page's answer: its own word, and our whole shape. `resumed`: the same conversation. */
export interface RecordAnswer {
  sessionId: string;
  status: string;
  resumed?: boolean;
  cancelled?: boolean;
  notes?: string[];
  session: Session;
}

export interface Removed {
  id: string;
  snapshot: string | null;
}

/** Bytes of the terminal (base64), after `lost` ones that are not in the log any more (null: nobody knows how */
export interface ReplayEvent {
  at_s: number;
  data?: string | null;
  lost?: number | null;
  cols?: number | null;
  rows?: number | null;
}

export interface ReplayOutline {
  run: number;
  began_at: string | null;
  length_s: number;
  idle: IdleStretch[];
}

/** `next` is where the following part begins; null at the end of what was recorded so far. */
export interface ReplayPart {
  run: number;
  offset: number;
  next: number | null;
  screen: ReplayScreen | null;
  events: ReplayEvent[];
}

/** `data` (base64) shows the screen on a cleared terminal of this size. */
export interface ReplayScreen {
  cols: number;
  rows: number;
  data: string;
}

/** A hub of the fleet, as PostgreSQL sees it. */
export interface Replica {
  name: string;
  since: string;
  connections: number;
  watched: number;
  leads: boolean;
}

/** What the agent is doing, who says so, and what it asks. The message is the agent's own text. */
export interface Report {
  state: string;
  kind: string | null;
  message: string | null;
  request: string | null;
  options: string[];
  takes_text: boolean;
  background: number;
  until: string | null;
  ends_at: string | null;
  source: string;
  at: string;
}

export interface Resize {
  sessionId: string;
  type: "terminal.resize";
  cols: number;
  rows: number;
}

/** `again` sends the first prompt once more; `workspace` moves the session to another workspace or folder, for */
export interface RestartWish {
  again?: boolean;
  workspace?: string | null;
  force?: boolean;
}

/** Start the next run of a session that has ended. */
export interface Resume {
  sessionId: string;
  type: "session.resume";
}

/** `agent` is another one that goes on with the conversation; empty: the same. */
export interface ResumeWish {
  agent?: string;
  when_limit?: "" | "stop" | "wait";
}

export interface Run {
  run: number;
  state: string;
  [field: string]: unknown;
}

/** For the docker runtime; what is missing is as the settings say. */
export interface Sandbox {
  image?: string | null;
  mounts?: string[];
  network?: string | null;
  memory?: string | null;
  cpus?: number | null;
  config?: string | null;
  keep_failed?: boolean;
}

export interface Screen {
  text: string;
  offset: number;
}

/** A person has this session before their eyes now. */
export interface Seen {
  sessionId: string;
  type: "session.seen";
}

/** The one shape of a session, the same as `hitch ps --json` prints. */
export interface Session {
  id: string;
  index: number;
  name: string;
  owner: string | null;
  description: string;
  agent: string;
  runtime: string;
  node: string | null;
  record: string;
  workspace: Workspace;
  run: number;
  state: string;
  status: string;
  label: string;
  quiet_since: string | null;
  attention: string;
  headline: string;
  detail: string;
  report: Report | null;
  since: string | null;
  rank: number;
  glyph: string;
  colour: string;
  section: string;
  actions: string[];
  changes: SizeOfChanges | null;
  pinned: boolean;
  snoozed_until: string | null;
  seen_at: string | null;
  live: boolean;
  takes_prompt: boolean;
  refusal: string | null;
  sandbox_alive: boolean | null;
  session_alive: boolean | null;
  exit: Exit | null;
  survivors: number | null;
  created_at: string | null;
  started_at: string | null;
  state_changed_at: string | null;
  last_activity_at: string | null;
  last_active_at: string | null;
  idle_after_s: number | null;
  supports_resume: boolean;
  conversation: string | null;
  chat: boolean;
  when_limit: string;
}

export interface SessionChanged {
  type: "session.created" | "session.updated" | "session.removed";
  sessionId: string;
  session: Session;
}

export interface SessionWithNotes {
  session: Session;
  notes?: string[];
}

/** `token` is for `Authorization: Bearer` and dies with the hub; `ticket` is for the first WebSocket. Who */
export interface SignedIn {
  name: string;
  user: string | null;
  role: string;
  may: string[];
  sessions: string[] | null;
  expires_at: string | null;
  id: string;
  page: string;
  token: string;
  ticket: string;
}

export interface Size {
  type: "terminal.size";
  sessionId: string;
  cols: number;
  rows: number;
}

/** How much differs in its folder from where it began: files, and lines of those that are text. */
export interface SizeOfChanges {
  files: number;
  added: number;
  deleted: number;
  at: string;
}

/** `counts` says how many agents are in which state; all are of the sessions that `hitch ps` lists. */
export interface Status {
  hub: Health;
  counts: Record<string, number>;
  containers: Container[];
  agents: AgentView[];
  sessions: Session[];
}

/** `status` is active, waiting, idle, error or stopped. `reason` goes with `error`. */
export interface StatusChanged {
  type: "session.status";
  sessionId: string;
  status: string;
  reason?: string | null;
  session: Session;
}

/** `grace_s`: so long it has until force is used; missing for what it was made with. */
export interface StopWish {
  reason?: string;
  grace_s?: number | null;
}

export interface StoryLine {
  at: string;
  event: string;
  [field: string]: unknown;
}

export interface SubscriptionKeys {
  p256dh: string;
  auth: string;
}

export interface SubscriptionMade {
  id: string;
}

export interface Ticket {
  ticket: string;
}

export interface TokenView {
  id: string;
  kind: string;
  name: string;
  role: string;
  user: string | null;
  sessions: string[] | null;
  created_at: string;
  expires_at: string;
  used_at: string;
}

export interface TokensUsed {
  input: number;
  cached: number;
  cache_write: number;
  output: number;
  cost_usd: number | null;
  total: number;
}

/** What a tool has changed in a file. */
export interface ToolDiff {
  path: string;
  old: string;
  new: string;
}

export interface Usage {
  by: string;
  since: string;
  sums: UsageSum[];
  total: UsageSum;
  limits: UsageLimit[];
}

/** A limit that the agent of a session is at now. `ends_at` is null where its own words are not understood. */
export interface UsageLimit {
  session: string;
  name: string;
  agent: string;
  until: string | null;
  ends_at: string | null;
  detail: string;
}

/** Tokens of some turns. `cost_usd` is null when no agent has told it; `key` is a day, an agent … */
export interface UsageSum {
  key: string;
  turns: number;
  input: number;
  cached: number;
  cache_write: number;
  output: number;
  cost_usd: number | null;
  total: number;
}

export interface User {
  name: string;
  role: string;
  quota: Record<string, number | number | string>;
  created_at: string;
}

/** Only what is given changes. */
export interface UserChanges {
  role?: "owner" | "member" | "viewer" | null;
  quota?: Limits;
}

/** `used` is what counts against the quota now. */
export interface UserInUse {
  name: string;
  role: string;
  quota: Record<string, number | number | string>;
  created_at: string;
  used: Record<string, number | number | string>;
}

/** How many tokens and sign-ins have ended with the person. */
export interface UserRemoved {
  ended: number;
}

/** `session` is the one that became what was waited for, or whose run has ended. It is null when time was up, and */
export interface Waited {
  session: Session | null;
  has_ended: boolean;
  not_yet: string;
}

/** Tell when files of the session's worktree change, or stop telling. */
export interface Watch {
  sessionId: string;
  type: "workspace.watch" | "workspace.unwatch";
}

export interface Workspace {
  id: string | null;
  path: string;
  branch: string | null;
  repository: string | null;
}

export interface WorkspaceChanged {
  type: "workspace.changed";
  sessionId: string;
}

export interface WorkspaceUser {
  session: string;
  name: string;
  run: number;
  reader: boolean;
  since: string;
}

export interface WorkspaceView {
  id: string;
  name: string;
  path: string;
  repo: string | null;
  branch: string | null;
  base: string | null;
  managed: boolean;
  capacity: number;
  created_at: string;
  removed_at: string | null;
  setup_done: boolean;
  state: string;
  text: string;
  users: WorkspaceUser[];
  snapshots: string[];
}

export type ClientMessage = Attach | Detach | Input | Resize | Resume | Seen | Watch | FollowChat | LeaveChat;

export type HubMessage = Attached | SessionChanged | StatusChanged | Ended | Size | WorkspaceChanged | ChatLines | NotificationMessage | ErrorMessage;

/** The parts of a list, in their order, and what they are called. */
export const SECTIONS = { "needs-you": "Needs you", "finished": "Finished", "working": "Working", "quiet": "Quiet", "ended": "Ended" } as const;

/** The last rank that a person is told of. */
export const NEWS = 5;

/** The statuses of which a person is told no more once somebody has looked. */
export const SEEN: readonly string[] = ["completed", "failed"];
