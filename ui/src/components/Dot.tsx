import type { Session } from "../shapes";
import { labelOf, owner } from "../store";
import { resume } from "../views";
import { CRASHED, hasCrashed } from "../words";

/** A session's colour. The red one of a crash is also the way back. */
export function Dot({ session }: { session: Session }) {
  if (hasCrashed(session) && owner.value) {
    return (
      <button
        type="button"
        class="dot red"
        title={CRASHED}
        aria-label={`${session.name}: ${CRASHED}`}
        onClick={() => resume(session.id)}
      />
    );
  }
  return <span class={`dot ${session.colour}`} title={labelOf(session)} aria-hidden="true" />;
}
