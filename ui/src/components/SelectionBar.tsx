import { archive, canBeSeen, markAllSeen, stop, which } from "../deeds";
import { chosen, selected } from "../rail";

/** What can be done with those that are selected; each deed says how many it is for. */
export function SelectionBar() {
  const all = chosen.value;
  if (all.length === 0) return null;
  const [live, over, unseen] = [which(all, "stop"), which(all, "archive"), all.filter(canBeSeen)];
  return (
    <div class="selection" role="toolbar" aria-label="Selected sessions">
      <span role="status">{all.length} selected</span>
      <button type="button" class="clear" aria-label="Select none" onClick={() => (selected.value = new Set())}>
        ×
      </button>
      <button type="button" disabled={live.length === 0} onClick={() => stop(live)}>
        Stop {live.length || ""}
      </button>
      <button type="button" disabled={over.length === 0} onClick={() => void archive(over)}>
        Archive {over.length || ""}
      </button>
      <button type="button" disabled={unseen.length === 0} onClick={() => markAllSeen(unseen)}>
        Mark as seen
      </button>
    </div>
  );
}
