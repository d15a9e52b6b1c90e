import { useRef, useState } from "preact/hooks";
import { prompt } from "../actions";
import type { Session } from "../shapes";
import { owner } from "../store";
import { viewOf } from "../views";
import { receipt } from "../words";

const MOST_KEPT = 50;

/** Sends text without typing into the terminal. Arrow up brings back what was sent before. */
export function PromptBox({ session }: { session: Session }) {
  const [text, setText] = useState("");
  const [sending, setSending] = useState(false);
  const [told, setTold] = useState("");
  const back = useRef(0);
  const enabled = owner.value && session.takes_prompt;

  const refusal = enabled && session.refusal ? `Cannot take a prompt now: ${session.refusal}` : null;

  const send = async () => {
    if (!text.trim() || sending) return;
    setSending(true);
    setTold("");
    const sent = await prompt(session, text);
    if (sent) {
      setTold(receipt(sent));
      keep(session.id, text);
      back.current = 0;
      setText("");
    }
    setSending(false);
  };
  const onKeyDown = (event: KeyboardEvent & { currentTarget: HTMLTextAreaElement }) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      void send();
    }
    if (event.key === "Escape") viewOf(session.id).terminal.term.focus();
    const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!step || (text && back.current === 0)) return;
    const kept = keptOf(session.id);
    const to = Math.min(Math.max(back.current + step, 0), kept.length);
    if (to === back.current) return;
    event.preventDefault();
    back.current = to;
    setText(to === 0 ? "" : kept[kept.length - to]!);
  };
  return (
    <form
      class="prompt-box"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <p id="prompt-told" role="status" class={refusal ? "refusal" : ""}>
        {refusal ?? (enabled ? told : "")}
      </p>
      <textarea
        rows={Math.min(6, text.split("\n").length)}
        aria-label={`Prompt for ${session.name}`}
        placeholder={enabled ? "Send a prompt" : "Cannot take a prompt right now"}
        value={text}
        aria-describedby="prompt-told"
        disabled={!enabled}
        onInput={(event) => {
          back.current = 0;
          setTold("");
          setText(event.currentTarget.value);
        }}
        onKeyDown={onKeyDown}
      />
      <button type="submit" disabled={!enabled || sending || !text.trim()}>
        Send
      </button>
    </form>
  );
}

function keptOf(id: string): string[] {
  try {
    return JSON.parse(sessionStorage.getItem(`prompts ${id}`) ?? "[]") as string[];
  } catch {
    return [];
  }
}

function keep(id: string, text: string): void {
  const kept = [...keptOf(id).filter((prompt) => prompt !== text), text].slice(-MOST_KEPT);
  sessionStorage.setItem(`prompts ${id}`, JSON.stringify(kept));
}
