import { useEffect, useState } from "preact/hooks";
import { answer, answered, type Request, requestOf } from "../answers";
import type { Session } from "../shapes";
import { owner } from "../store";

/** Who clicks sooner has aimed at what was here before. */
const AIM_MS = 400;
const NO = "no";

/** Buttons for what the agent asks, for those who may answer; a refusal can say why. */
export function Answers({ session, remark = false }: { session: Session; remark?: boolean }) {
  const asked = requestOf(session);
  if (!asked || !owner.value) return null;
  return <Buttons key={asked.key} session={session} asked={asked} remark={remark && asked.options.includes(NO)} />;
}

function Buttons({ session, asked, remark }: { session: Session; asked: Request; remark: boolean }) {
  const [aimed, setAimed] = useState(false);
  const [why, setWhy] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setAimed(true), AIM_MS);
    return () => clearTimeout(timer);
  }, []);
  const disabled = !aimed || answered.value.get(session.id) === asked.key;
  const give = (choice: string) => void answer(session, asked, choice, choice === NO ? why.trim() : "");
  return (
    <div class="answers" role="group" aria-label={`Answer ${session.name}`}>
      {asked.options.map((choice) => (
        <button type="button" key={choice} disabled={disabled} onClick={() => give(choice)}>
          {choice.charAt(0).toUpperCase() + choice.slice(1)}
        </button>
      ))}
      {remark ? (
        <input
          aria-label="Why not"
          placeholder="No, because…"
          maxLength={1000}
          value={why}
          disabled={disabled}
          onInput={(event) => setWhy(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.isComposing && why.trim()) give(NO);
          }}
        />
      ) : null}
    </div>
  );
}
