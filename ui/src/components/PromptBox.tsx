import { X } from "lucide";
import { useEffect, useRef, useState } from "preact/hooks";
import { askToForce, prompt } from "../actions";
import { handed } from "../handed";
import { base64Of, imageOf, type Picked, pick, refusalOf } from "../images";
import { keep, keptOf } from "../prompts";
import type { Session } from "../shapes";
import { mayChange } from "../store";
import { viewOf } from "../views";
import { receipt } from "../words";
import { Icon } from "./Icon";

interface Props {
  session: Session;
  /** Whether the agent takes images; undefined as long as nobody knows: the hub then says so. */
  images: boolean | undefined;
}

/** Sends text without typing into the terminal. Arrow up brings back what was sent before. */
export function PromptBox({ session, images }: Props) {
  const [text, setText] = useState("");
  const [picked, setPicked] = useState<readonly Picked[]>([]);
  const [wrong, setWrong] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  const [sending, setSending] = useState(false);
  const [told, setTold] = useState("");
  const back = useRef(0);
  const enabled = mayChange.value && session.takes_prompt;

  const refusal = enabled && session.refusal ? `Cannot take a prompt now: ${session.refusal}` : null;

  // an agent over ACP is not typed to, nor is an image
  const forcible = refusal !== null && !session.chat && picked.length === 0;

  const isEmpty = !text.trim() && picked.length === 0;

  const send = async (force = false) => {
    if (isEmpty || sending) return;
    setSending(true);
    setTold("");
    setWrong("");
    const sent = await prompt(session, text, picked.map(base64Of), force);
    if (sent) {
      setTold(receipt(sent));
      if (text.trim()) keep(session.id, text);
      back.current = 0;
      setText((typed) => (typed === text ? "" : typed));
      setPicked((now) => now.filter((one) => !picked.includes(one)));
    }
    setSending(false);
  };
  const add = async (files: readonly Blob[]) => {
    const why = images === false ? "This agent takes no images." : refusalOf(files, picked);
    setWrong(why);
    if (why) return;
    const found = await Promise.all(files.map(pick));
    setPicked((before) => [...before, ...found]);
  };
  const onPaste = (event: ClipboardEvent) => {
    const files = filesOf(event.clipboardData);
    if (files.length === 0 || event.clipboardData?.getData("text/plain")) return;
    event.preventDefault();
    void add(files);
  };
  const onDrop = (event: DragEvent) => {
    const files = filesOf(event.dataTransfer);
    if (files.length === 0) return;
    event.preventDefault();
    if (enabled) void add(files);
  };

  // what was taken back goes before what was typed since
  const given = handed.value?.session === session.id ? handed.value.prompt : null;
  useEffect(() => {
    if (!given) return;
    handed.value = null;
    setTold("");
    setText((typed) => [given.text, typed].filter(Boolean).join("\n"));
    void Promise.all(given.images.map((name) => imageOf(session.id, name))).then(
      (found) => setPicked((before) => [...found, ...before]),
      () => setWrong("An image of this prompt is gone."),
    );
    field.current?.focus();
  }, [given]);

  const leave = () => {
    const chat = document.querySelector<HTMLElement>(".pane .chat");
    if (chat) chat.focus();
    else viewOf(session.id).terminal.term.focus();
  };

  const onKeyDown = (event: KeyboardEvent & { currentTarget: HTMLTextAreaElement }) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      void send();
    }
    if (event.key === "Escape") leave();
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
      onDragOver={(event) => {
        if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
      }}
      onDrop={onDrop}
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <div class="prompt-line">
        <p id="prompt-told" role="status" class={refusal || wrong ? "refusal" : ""}>
          {refusal ?? (enabled ? wrong || told : "")}
        </p>
        {forcible ? (
          <button
            type="button"
            disabled={sending || isEmpty}
            onClick={() => askToForce(session, (force) => void send(force))}
          >
            Send anyway
          </button>
        ) : null}
      </div>
      {picked.length > 0 ? (
        <ul class="picked" aria-label="Images of the prompt">
          {picked.map((one, at) => (
            <li key={at}>
              <img src={one.url} alt={`Number ${at + 1}`} />
              <button
                type="button"
                class="icon"
                aria-label={`Remove image ${at + 1}`}
                onClick={() => setPicked(picked.filter((other) => other !== one))}
              >
                <Icon of={X} size={14} />
              </button>
            </li>
          ))}
        </ul>
      ) : null}
      <textarea
        ref={field}
        rows={Math.min(6, text.split("\n").length)}
        aria-label={`Prompt for ${session.name}`}
        placeholder={enabled ? "Send a prompt" : "Cannot take a prompt right now"}
        value={text}
        aria-describedby="prompt-told"
        disabled={!enabled}
        onInput={(event) => {
          back.current = 0;
          setTold("");
          setWrong("");
          setText(event.currentTarget.value);
        }}
        onKeyDown={onKeyDown}
        onPaste={onPaste}
      />
      <button type="submit" disabled={!enabled || sending || isEmpty}>
        Send
      </button>
    </form>
  );
}

const filesOf = (data: DataTransfer | null): File[] => [...(data?.files ?? [])];
