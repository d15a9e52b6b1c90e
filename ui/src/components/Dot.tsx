import type { Session } from "../shapes";
import { labelOf, owner } from "../store";
import { resume } from "../views";
import { CRASHED, hasCrashed } from "../words";

/** The last rank that a person is told of: its sign is large enough to be read. */
const NEWS = 5;

/** A session's colour, and with `sign` what it wants. The red one of a crash is also the way back. */
export function Dot({ session, sign = false }: { session: Session; sign?: boolean }) {
  const kind = `dot ${session.colour}${sign && session.rank <= NEWS ? " sign" : ""}`;
  const glyph = sign && session.rank <= NEWS ? session.glyph : null;
  if (hasCrashed(session) && owner.value) {
    return (
      <button
        type="button"
        class={kind}
        title={CRASHED}
        aria-label={`${session.name}: ${CRASHED}`}
        onClick={() => resume(session.id)}
      >
        {glyph}
      </button>
    );
  }
  return (
    <span class={kind} title={labelOf(session)} aria-hidden="true">
      {glyph}
    </span>
  );
}
