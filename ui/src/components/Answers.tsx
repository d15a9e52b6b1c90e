import { useEffect, useState } from "preact/hooks";
import { answer, answered, type Request, requestOf } from "../answers";
import type { Session } from "../shapes";
import { mayChange } from "../store";

/** Who clicks sooner has aimed at what was here before. */
const AIM_MS = 400;
const NO = "no";
const LONGEST = 1000;

/** Buttons for what the agent asks, and a field where it takes text, for those who may answer; a refusal can say why. */
export function Answers({ session, remark = false }: { session: Session; remark?: boolean }) {
  const asked = requestOf(session);
  if (!asked || !mayChange.value) return null;
  return (
    <Buttons
      key={asked.key}
      session={session}
      asked={asked}
      remark={remark && !asked.takesText && asked.options.includes(NO)}
    />
  );
}

function Buttons({ session, asked, remark }: { session: Session; asked: Request; remark: boolean }) {
  const [aimed, setAimed] = useState(false);
  const [text, setText] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setAimed(true), AIM_MS);
    return () => clearTimeout(timer);
  }, []);
  const disabled = !aimed || answered.value.get(session.id) === asked.key;
  const give = (choice: string) => void answer(session, asked, choice, choice === NO && remark ? text.trim() : "");
  return (
    <div class="answers" role="group" aria-label={`Answer ${session.name}`}>
      {asked.options.map((choice) => (
        <button type="button" key={choice} disabled={disabled} onClick={() => give(choice)}>
          {choice.charAt(0).toUpperCase() + choice.slice(1)}
        </button>
      ))}
      {asked.takesText ? (
        <Line
          label="Your answer"
          hint="Your answer…"
          text={text}
          change={setText}
          disabled={disabled}
          submit={() => give(text.trim())}
        />
      ) : remark ? (
        <Line
          label="Why not"
          hint="No, because…"
          text={text}
          change={setText}
          disabled={disabled}
          submit={() => give(NO)}
        />
      ) : null}
      {asked.takesText ? (
        <button type="button" disabled={disabled || !text.trim()} onClick={() => give(text.trim())}>
          Answer
        </button>
      ) : null}
    </div>
  );
}

interface LineProps {
  label: string;
  hint: string;
  text: string;
  change: (text: string) => void;
  disabled: boolean;
  submit: () => void;
}

/** One line of text; Enter gives it. */
function Line({ label, hint, text, change, disabled, submit }: LineProps) {
  return (
    <input
      aria-label={label}
      placeholder={hint}
      maxLength={LONGEST}
      value={text}
      disabled={disabled}
      onInput={(event) => change(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === "Enter" && !event.isComposing && text.trim()) submit();
      }}
    />
  );
}
