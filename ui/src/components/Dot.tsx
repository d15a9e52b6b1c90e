import { NEWS, type Session } from "../shapes";
import { labelOf, mayChange } from "../store";
import { resume } from "../views";
import { CRASHED, canBegin, hasCrashed } from "../words";

/** What works, and may turn for as long. */
export const WORKS = "◐";

/** Signs that not every font has, drawn as lucide draws them. */
const DRAWN: Record<string, string> = {
  "✋": "M18 11V6a2 2 0 0 0-4 0M14 10V4a2 2 0 0 0-4 0v2M10 10.5V6a2 2 0 0 0-4 0v8M18 8a2 2 0 1 1 4 0v6a8 8 0 0 1-8 8h-2c-2.8 0-4.5-.86-5.99-2.34l-3.6-3.6a2 2 0 0 1 2.83-2.82L7 15",
  "⏸": "M9 6v12M15 6v12",
  "✕": "M18 6 6 18M6 6l12 12",
  "✓": "M20 6 9 17l-5-5",
};

/** A session's colour, and with `sign` what it wants. The red one of a crash is also the way back. */
export function Dot({ session, sign = false }: { session: Session; sign?: boolean }) {
  const isNews = sign && session.rank <= NEWS; // large enough to be read
  const turns = session.glyph === WORKS && session.colour === "green";
  const kind = `dot ${session.colour}${isNews ? " sign" : ""}${turns ? " turning" : ""}`;
  const glyph = isNews ? <Glyph of={session.glyph} /> : null;
  if (hasCrashed(session) && canBegin(session) && mayChange.value) {
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

export function Glyph({ of }: { of: string }) {
  const path = DRAWN[of];
  if (!path) return <>{`${of}\ufe0e`}</>;
  return (
    <svg viewBox="0 0 24 24" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}
