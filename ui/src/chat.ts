/** The chat of a session over ACP: its lines, as the hub has them, put together for the eye. */

import type { ChatLine } from "./shapes";

export interface Tool {
  id: string;
  title: string;
  status: string;
  output: string;
  diffs: { path: string; old: string; new: string }[];
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
  | { kind: "plan"; entries: { text: string; status: string }[] }
  | { kind: "asked"; text: string; choice: string }
  | { kind: "trouble"; text: string };

/** What came before and what came since, as one: a message arrives in many lines, and a tool changes as it goes on. */
export class Chat {
  readonly parts: Part[] = [];
  /** Whether the agent takes images; undefined as long as it has not said so. */
  images: boolean | undefined;
  private readonly queue = new Map<string, Prompt>();
  private readonly tools = new Map<string, Tool>();
  private readonly asked = new Map<string, Extract<Part, { kind: "asked" }>>();

  add(lines: readonly ChatLine[]): void {
    for (const line of lines) this.take(line as Line);
  }

  /** Prompts that wait for the agent, if it is still in its run. */
  waiting(run: number, live: boolean): Prompt[] {
    return [...this.queue.values()].filter((prompt) => live && prompt.run === run);
  }

  /** Prompts that waited when their run ended, so that nobody has got them. */
  leftOver(run: number, live: boolean): Prompt[] {
    return [...this.queue.values()].filter((prompt) => !live || prompt.run !== run);
  }

  private take(line: Line): void {
    const text = textOf(line["text"]);
    switch (line.type) {
      case "begun":
        this.images = line["images"] === true;
        this.leave(line.run);
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
        this.plan(line["entries"]);
        break;
      case "permission": {
        const part = { kind: "asked" as const, text, choice: "" };
        this.asked.set(`${line.run}:${textOf(line["request"])}`, part);
        this.parts.push(part);
        break;
      }
      case "answer": {
        const part = this.asked.get(`${line.run}:${textOf(line["request"])}`);
        if (part) part.choice = textOf(line["choice"]);
        break;
      }
      case "turn":
        if (line["state"] === "error") this.parts.push({ kind: "trouble", text: textOf(line["message"]) });
        if (line["state"] === "idle") this.parts.push({ kind: "notice", text: "Interrupted" });
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
    if (last?.kind === kind) last.text += text;
    else if (text) this.parts.push({ kind, text });
  }

  private work(line: Record<string, unknown>): void {
    const id = textOf(line["id"]);
    let tool = this.tools.get(id);
    if (!tool) {
      tool = { id, title: "", status: "", output: "", diffs: [] };
      this.tools.set(id, tool);
      this.parts.push({ kind: "tool", tool });
    }
    tool.title = textOf(line["title"]) || tool.title;
    tool.status = textOf(line["status"]) || tool.status;
    tool.output = textOf(line["output"]) || tool.output;
    if (Array.isArray(line["diffs"])) tool.diffs = line["diffs"] as Tool["diffs"];
  }

  /** One plan, which changes: the newest stands where the first stood in its turn. */
  private plan(found: unknown): void {
    const entries = Array.isArray(found) ? (found as { text: string; status: string }[]) : [];
    const turn = this.parts.findLastIndex((part) => part.kind === "user");
    const known = this.parts.findIndex((part, at) => at > turn && part.kind === "plan");
    if (known < 0) this.parts.push({ kind: "plan", entries });
    else this.parts[known] = { kind: "plan", entries };
  }
}

type Line = ChatLine & Record<string, unknown>;

const keyOf = (line: Line): string => `${line.run}:${textOf(line["prompt"])}`;

const promptOf = (line: Line): Prompt => ({
  run: line.run,
  name: textOf(line["prompt"]),
  text: textOf(line["text"]),
  images: Array.isArray(line["images"]) ? line["images"].filter((name) => typeof name === "string") : [],
});

const textOf = (found: unknown): string => (typeof found === "string" ? found : "");
