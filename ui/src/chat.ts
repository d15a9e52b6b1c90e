/** The chat of a session over ACP: its lines, as the hub has them, put together for the eye. */

import type { ChatLine, PlanEntry, ToolDiff } from "./shapes";

export interface Tool {
  id: string;
  title: string;
  status: string;
  output: string;
  diffs: readonly ToolDiff[];
  /** Whether the agent waits for a permission to use it. */
  asked?: boolean;
}

/** What a person has said, or is about to say. `images` are names, by which the hub gives them. */
export interface Prompt {
  run: number;
  name: string;
  text: string;
  images: readonly string[];
}

export type Part =
  | { kind: "agent" | "thought" | "notice"; text: string }
  | { kind: "user" | "unsent"; prompt: Prompt }
  | { kind: "tool"; tool: Tool }
  | { kind: "plan"; entries: readonly PlanEntry[] }
  | { kind: "asked"; text: string; choice: string; tool: string; waits: boolean }
  | { kind: "trouble"; text: string };

/**
 * What came before and what came since, as one: a message arrives in many lines, and a tool changes as it goes on. A part
 * that has changed is another object, so that only what is new is drawn.
 */
export class Chat {
  readonly parts: Part[] = [];
  /** Whether the agent takes images; undefined as long as it has not said so. */
  images: boolean | undefined;
  private readonly queue = new Map<string, Prompt>();
  /** Where the part of each tool and of each permission is. */
  private readonly tools = new Map<string, number>();
  private readonly asked = new Map<string, number>();

  add(lines: readonly ChatLine[]): void {
    for (const line of lines) this.take(line);
  }

  /** Prompts that wait for the agent, if it is still in its run. */
  waiting(run: number, live: boolean): Prompt[] {
    return [...this.queue.values()].filter((prompt) => live && prompt.run === run);
  }

  /** Prompts that waited when their run ended, so that nobody has got them. */
  leftOver(run: number, live: boolean): Prompt[] {
    return [...this.queue.values()].filter((prompt) => !live || prompt.run !== run);
  }

  private take(line: ChatLine): void {
    const text = line.text ?? "";
    switch (line.type) {
      case "begun":
        this.images = line.images === true;
        this.leave(line.run);
        this.giveUp();
        break;
      case "queued":
        this.queue.set(keyOf(line), promptOf(line));
        break;
      case "user":
      case "not_sent":
        this.queue.delete(keyOf(line));
        this.parts.push({ kind: line.type === "user" ? "user" : "unsent", prompt: promptOf(line) });
        break;
      case "taken_back":
        this.queue.delete(keyOf(line));
        break;
      case "notice":
        this.parts.push({ kind: "notice", text });
        break;
      case "agent":
      case "thought":
        this.say(line.type, text);
        break;
      case "tool":
        this.work(line);
        break;
      case "plan":
        this.plan(line.entries ?? []);
        break;
      case "permission":
        this.asked.set(`${line.run}:${line.request}`, this.parts.length);
        this.parts.push({ kind: "asked", text, choice: "", tool: `${line.run}:${line.tool ?? ""}`, waits: true });
        this.ask(`${line.run}:${line.tool ?? ""}`, true);
        break;
      case "answer":
        this.answer(`${line.run}:${line.request}`, line.choice ?? "");
        break;
      case "turn":
        this.giveUp();
        if (line.state === "error") this.parts.push({ kind: "trouble", text: line.message ?? "" });
        if (line.state === "idle") this.parts.push({ kind: "notice", text: "Interrupted" });
        break;
    }
  }

  /** What waited in a run before this one stands where that run ended. */
  private leave(run: number): void {
    for (const [key, prompt] of this.queue) {
      if (prompt.run === run) continue;
      this.queue.delete(key);
      this.parts.push({ kind: "unsent", prompt });
    }
  }

  private say(kind: "agent" | "thought", text: string): void {
    const last = this.parts.at(-1);
    if (last?.kind === kind) this.parts[this.parts.length - 1] = { kind, text: last.text + text };
    else if (text) this.parts.push({ kind, text });
  }

  private answer(request: string, choice: string): void {
    const at = this.asked.get(request) ?? -1;
    const part = this.parts[at];
    if (part?.kind !== "asked") return;
    this.parts[at] = { ...part, choice, waits: false };
    this.ask(part.tool, false);
  }

  /** What was not answered when its turn ended will not be. */
  private giveUp(): void {
    for (const request of this.asked.keys()) {
      const part = this.parts[this.asked.get(request)!];
      if (part?.kind === "asked" && part.waits) this.answer(request, "");
    }
    this.asked.clear();
  }

  private ask(key: string, asked: boolean): void {
    const at = this.tools.get(key) ?? -1;
    const part = this.parts[at];
    if (part?.kind === "tool") this.parts[at] = { kind: "tool", tool: { ...part.tool, asked } };
  }

  private work(line: ChatLine): void {
    const id = line.id ?? "";
    const key = `${line.run}:${id}`;
    const at = this.tools.get(key) ?? this.parts.length;
    const part = this.parts[at];
    const before = part?.kind === "tool" ? part.tool : { id, title: "", status: "", output: "", diffs: [] };
    const tool = {
      ...before,
      id,
      title: line.title || before.title,
      status: line.status || before.status,
      output: line.output || before.output,
      diffs: line.diffs ?? before.diffs,
    };
    this.tools.set(key, at);
    this.parts[at] = { kind: "tool", tool };
  }

  /** One plan, which changes: the newest stands where the first stood in its turn. */
  private plan(entries: readonly PlanEntry[]): void {
    const turn = this.parts.findLastIndex((part) => part.kind === "user");
    const known = this.parts.findIndex((part, at) => at > turn && part.kind === "plan");
    if (known < 0) this.parts.push({ kind: "plan", entries });
    else this.parts[known] = { kind: "plan", entries };
  }
}

const keyOf = (line: ChatLine): string => `${line.run}:${line.prompt}`;

const promptOf = (line: ChatLine): Prompt => ({
  run: line.run,
  name: line.prompt ?? "",
  text: line.text ?? "",
  images: Array.isArray(line.images) ? line.images : [],
});
