import type { Session } from "../shapes";
import { Answers } from "./Answers";

/** What the agent reports, in the hub's words, on one line. Nothing where nothing but its output tells. */
export function Headline({ session }: { session: Session }) {
  if (!session.report) return null;
  const whole = session.report.message ?? session.detail;
  return (
    <span class="headline" title={[session.headline, whole].filter(Boolean).join(": ")}>
      <span class={`word ${session.colour}`}>{session.headline}</span>{" "}
      {session.detail ? <span class="detail">{session.detail}</span> : null}
    </span>
  );
}

/**
 * Above a terminal: the headline, and the way to answer. It stays while reports come, so that the terminal keeps its size;
 * what is asked can be read whole, over the terminal where it is long.
 */
export function HeadlineBar({ session, remark = false }: { session: Session; remark?: boolean }) {
  if (!session.report) return null;
  return (
    <div class="headline-bar">
      <div class="asked">
        <div role="status">
          <Headline session={session} />
        </div>
        <Answers session={session} remark={remark} />
      </div>
    </div>
  );
}
