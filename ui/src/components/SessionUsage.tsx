import "../style/usage.css";
import { useFetched } from "../fetched";
import { go } from "../router";
import type { Session, Usage } from "../shapes";
import { summary } from "../usage";

const LONGEST_DAYS = 3660;

/** What a session's agent has used in all its turns; nothing where it does not tell. */
export function SessionUsage({ session }: { session: Session }) {
  const path = `/api/usage?by=day&days=${LONGEST_DAYS}&session=${encodeURIComponent(session.id)}`;
  const { value } = useFetched<Usage>(path, `${session.run} ${session.attention} ${session.since}`);
  const words = value ? summary(value.total) : "";
  if (!words) return null;
  return (
    <p class="session-usage">
      {words}
      <button type="button" onClick={() => go({ usage: "day" })}>
        All usage
      </button>
    </p>
  );
}
