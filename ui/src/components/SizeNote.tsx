import { useEffect, useState } from "preact/hooks";
import type { Session } from "../shapes";
import { link, mayChange } from "../store";
import { viewOf } from "../views";
import { takesInput } from "../words";

/** A size that was just asked for is there within this time. */
const SETTLED_MS = 600;

/** Why a terminal is smaller or larger than its place, and the way out. */
export function SizeNote({ session }: { session: Session }) {
  const { terminal } = viewOf(session.id);
  const size = terminal.foreign.value;
  const [shown, setShown] = useState(false);
  // without a hub nobody hears what fits here
  const lasts = size !== null && session.live && link.value === "open";
  useEffect(() => {
    if (!lasts) return setShown(false);
    const timer = setTimeout(() => setShown(true), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [lasts]);
  if (!shown || !size) return null;
  return (
    <p class="size-note" role="status">
      <span>
        sized elsewhere: {size.cols}×{size.rows}
      </span>
      {mayChange.value && takesInput(session) ? (
        <button type="button" onClick={() => viewOf(session.id).takeOver()}>
          Take over
        </button>
      ) : null}
    </p>
  );
}
