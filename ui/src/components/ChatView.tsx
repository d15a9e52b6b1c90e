import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ask, sessionPath } from "../api";
import { Chat, type Part, type Tool } from "../chat";
import type { ChatLine, Session } from "../shapes";
import { onOutput, viewOf } from "../views";
import { Markdown } from "./Markdown";

const NEAR_PX = 80;

/** What was said, asked and done, as it comes. Prompts and answers have their places around it, as in a terminal. */
export function ChatView({ session }: { session: Session }) {
  const { chat, trouble } = useChat(session);
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const shown = chat.parts.length;
  useLayoutEffect(() => {
    const place = box.current;
    if (place && follows.current) place.scrollTop = place.scrollHeight;
  });
  const onScroll = () => {
    const place = box.current!;
    follows.current = place.scrollHeight - place.scrollTop - place.clientHeight < NEAR_PX;
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: who has no mouse scrolls it with keys
    <div class="chat" role="log" aria-label={`Chat with ${session.name}`} ref={box} onScroll={onScroll} tabIndex={0}>
      {trouble ? <p class="trouble">{trouble}</p> : null}
      {shown === 0 && !trouble ? <p class="notice-line">Nothing was said yet.</p> : null}
      {chat.parts.map((part, at) => (
        <PartView key={at} part={part} />
      ))}
    </div>
  );
}

function PartView({ part }: { part: Part }) {
  switch (part.kind) {
    case "user":
      return <p class="said-by-you">{part.text}</p>;
    case "agent":
      return <Markdown text={part.text} />;
    case "thought":
      return (
        <details class="thought">
          <summary>Thoughts</summary>
          <p>{part.text}</p>
        </details>
      );
    case "tool":
      return <ToolView tool={part.tool} />;
    case "plan":
      return (
        <ul class="plan" aria-label="Plan">
          {part.entries.map((entry, at) => (
            <li key={at} class={entry.status}>
              {entry.text}
            </li>
          ))}
        </ul>
      );
    case "asked":
      return (
        <p class="permission-line">
          {part.text} <b>{part.choice || "not answered"}</b>
        </p>
      );
    case "trouble":
      return <p class="trouble">{part.text}</p>;
    default:
      return <p class="notice-line">{part.text}</p>;
  }
}

function ToolView({ tool }: { tool: Tool }) {
  const head = (
    <>
      {tool.title || "a tool"} <span class="tool-status">{tool.status.replace("_", " ")}</span>
    </>
  );
  if (!tool.output && tool.diffs.length === 0) return <p class={`tool ${tool.status}`}>{head}</p>;
  return (
    <details class={`tool ${tool.status}`}>
      <summary>{head}</summary>
      {tool.diffs.map((diff) => (
        <div class="tool-diff" key={diff.path}>
          <p>{diff.path}</p>
          {diff.old ? <pre class="old">{diff.old}</pre> : null}
          <pre class="new">{diff.new}</pre>
        </div>
      ))}
      {tool.output ? <pre>{tool.output}</pre> : null}
    </details>
  );
}

/** The session's own output tells when there is more to read: nothing is asked for again and again. */
function useChat(session: Session): { chat: Chat; trouble: string } {
  const state = useRef({ id: "", chat: new Chat(), next: 0 });
  const [, draw] = useState(0);
  const [trouble, setTrouble] = useState("");
  if (state.current.id !== session.id) state.current = { id: session.id, chat: new Chat(), next: 0 };
  useEffect(() => {
    const mine = state.current;
    let [busy, stale, over] = [false, false, false];
    const read = async () => {
      stale = true;
      if (busy) return;
      busy = true;
      while (stale && !over) {
        stale = false;
        try {
          const path = `${sessionPath(session.id, "chat")}?start=${mine.next}`;
          const found = await ask<{ lines: ChatLine[]; next: number }>("GET", path);
          if (over) break;
          stale ||= found.next > mine.next;
          mine.next = found.next;
          mine.chat.add(found.lines);
          setTrouble("");
          draw((count) => count + 1);
        } catch (error) {
          if (!over) setTrouble((error as Error).message);
        }
      }
      busy = false;
    };
    viewOf(session.id).attach();
    const quiet = onOutput(session.id, () => void read());
    void read();
    return () => {
      over = true;
      quiet();
    };
  }, [session.id, session.run, session.state]);
  return { chat: state.current.chat, trouble };
}
