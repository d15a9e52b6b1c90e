import { act, teardown } from "../actions";
import { offersOf } from "../offers";
import type { Session } from "../shapes";
import { mayChange } from "../store";
import { resume } from "../views";
import { ARCHIVED, canBegin, ending, FRESH, hasCrashed, isForeign, MAY_BE_RESUMABLE, SAME } from "../words";

/** What stands under the output of a session that does not run, and the way back where there is one. */
export function EndBar({ session }: { session: Session }) {
  if (session.record === "archived") return <p class="end-bar">{ARCHIVED}</p>;
  if (session.record === "error") return <p class="end-bar red">{session.label}</p>;
  if (isForeign(session)) {
    return (
      <p class="end-bar yellow">
        {ending(session)} {session.description}
      </p>
    );
  }
  if (session.status === "stale") {
    return (
      <div class="end-bar yellow">
        <span>{session.label}</span>
        {mayChange.value && session.actions.includes("restart-in-container") ? (
          <button type="button" onClick={() => void act(session, "restart")}>
            Restart session
          </button>
        ) : null}
        {mayChange.value && session.actions.includes("stop") ? (
          <button type="button" onClick={() => teardown(session)}>
            Teardown
          </button>
        ) : null}
      </div>
    );
  }
  if (session.record === "suspended") {
    return (
      <div class="end-bar">
        <span>
          Suspended: <span>{MAY_BE_RESUMABLE}</span>
        </span>
        {mayChange.value && canBegin(session) ? (
          <button type="button" title={session.supports_resume ? SAME : FRESH} onClick={() => resume(session.id)}>
            Resume
          </button>
        ) : null}
      </div>
    );
  }
  if (session.live || session.state === "created") return null;
  const kind = hasCrashed(session) || session.status === "orphaned" ? "end-bar red" : "end-bar";
  if (!mayChange.value) return <p class={kind}>{ending(session)}</p>;
  if (!canBegin(session)) {
    return (
      <div class={kind}>
        <span>{ending(session)}</span>
        {offersOf(session)
          .filter(({ danger }) => !danger)
          .map(({ name, word, deed }) => (
            <button type="button" key={name} onClick={deed}>
              {word}
            </button>
          ))}
      </div>
    );
  }
  return (
    <button type="button" class={`${kind} restart`} onClick={() => resume(session.id)}>
      {`${ending(session)} Click to restart.${session.supports_resume ? ` ${SAME}.` : ""}`}
    </button>
  );
}
