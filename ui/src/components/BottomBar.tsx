import { Hand, List, Plus } from "lucide";
import { nextThatNeedsMe } from "../palette";
import { needYou } from "../rail";
import { go } from "../router";
import { creating, current, mayBegin } from "../store";
import { Icon } from "./Icon";

/** On a phone: where a thumb is. "Needs you" goes through those that do, the most urgent first. */
export function BottomBar() {
  const waiting = needYou.value.length;
  return (
    <nav class="bottom-bar" aria-label="Go to">
      <button
        type="button"
        aria-current={current.value === null ? "page" : undefined}
        onClick={() => go({ session: null, grid: false })}
      >
        <Icon of={List} size={20} />
        List
      </button>
      <button type="button" onClick={nextThatNeedsMe}>
        <Icon of={Hand} size={20} />
        Needs you{waiting > 0 ? <b>{waiting}</b> : null}
      </button>
      {mayBegin.value ? (
        <button type="button" onClick={() => (creating.value = true)}>
          <Icon of={Plus} size={20} />
          New
        </button>
      ) : null}
    </nav>
  );
}
