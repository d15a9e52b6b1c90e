import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { takeBack } from "../actions";
import type { Part, Prompt, Tool } from "../chat";
import type { Followed } from "../following";
import { handBack } from "../handed";
import type { Session } from "../shapes";
import { mayChange } from "../store";
import { Markdown } from "./Markdown";
import { Picture } from "./Picture";

const NEAR_PX = 80;

/** What was said, asked and done, as it comes. Prompts and answers have their places around it, as in a terminal. */
export function ChatView({ session, followed }: { session: Session; followed: Followed }) {
  const { chat } = followed;
  const told = followed.told.value;
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const drawn = useRef(new WeakMap<Part, VNode>());
  const toEnd = () => {
    const place = box.current;
    if (place && follows.current) place.scrollTop = place.scrollHeight;
  };
  const leftOver = chat.leftOver(session.run, session.live);
  useLayoutEffect(toEnd, [told, leftOver.length]);
  useEffect(() => {
    const observer = new ResizeObserver(toEnd);
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  const onScroll = () => {
    const place = box.current!;
    follows.current = place.scrollHeight - place.scrollTop - place.clientHeight < NEAR_PX;
  };
  /** The very same element for a part that has not changed: it is then not even compared. */
  const partOf = (part: Part, at: number): VNode => {
    const known = drawn.current.get(part) ?? <PartView key={at} part={part} session={session.id} />;
    drawn.current.set(part, known);
    return known;
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: who has no mouse scrolls it with keys
    <div class="chat" role="log" aria-label={`Chat with ${session.name}`} ref={box} onScroll={onScroll} tabIndex={0}>
      {chat.parts.length === 0 && told > 0 ? <p class="notice-line">Nothing was said yet.</p> : null}
      {chat.parts.map(partOf)}
      {leftOver.map((prompt) => (
        <Unsent key={`${prompt.run}:${prompt.name}`} prompt={prompt} session={session.id} />
      ))}
      {chat.waiting(session.run, session.live).map((prompt) => (
        <Waiting key={prompt.name} prompt={prompt} session={session} />
      ))}
    </div>
  );
}

/** A prompt: its words, and its pictures below them. */
function Said({ prompt, session }: { prompt: Prompt; session: string }) {
  return (
    <>
      {prompt.text}
      {prompt.images.length > 0 ? (
        <span class="pictures">
          {prompt.images.map((name, at) => (
            <Picture key={name} session={session} name={name} alt={`Number ${at + 1} of the prompt`} />
          ))}
        </span>
      ) : null}
    </>
  );
}

/** It waits for the agent to be done, and can be had back until then. */
function Waiting({ prompt, session }: { prompt: Prompt; session: Session }) {
  const onClick = async () => {
    if (await takeBack(session, prompt.name)) handBack(session.id, prompt);
  };
  return (
    <div class="said-by-you queued">
      <Said prompt={prompt} session={session.id} />
      <p class="fate">
        Queued
        {mayChange.value ? (
          <button type="button" onClick={() => void onClick()}>
            Take back
          </button>
        ) : null}
      </p>
    </div>
  );
}

function Unsent({ prompt, session }: { prompt: Prompt; session: string }) {
  return (
    <div class="said-by-you unsent">
      <Said prompt={prompt} session={session} />
      <p class="fate">
        Not sent
        {mayChange.value ? (
          <button type="button" onClick={() => handBack(session, prompt)}>
            Edit
          </button>
        ) : null}
      </p>
    </div>
  );
}

function PartView({ part, session }: { part: Part; session: string }) {
  switch (part.kind) {
    case "user":
      return (
        <p class="said-by-you">
          <Said prompt={part.prompt} session={session} />
        </p>
      );
    case "unsent":
      return <Unsent prompt={part.prompt} session={session} />;
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
          {part.text} <b>{part.choice || (part.waits ? "no answer yet" : "not answered")}</b>
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
    <details class={`tool ${tool.status}`} open={tool.asked}>
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
