import { Hand, List, Plus } from "lucide";
import { go } from "../router";
import { creating, current, notify, open, owner, sessions } from "../store";
import { Icon } from "./Icon";

const NEEDS_YOU = "needs-you";

/** On a phone: where a thumb is. "Needs you" goes through those that do, the most urgent first. */
export function BottomBar() {
  const waiting = [...sessions.value.values()]
    .filter((session) => session.section === NEEDS_YOU)
    .sort((a, b) => a.rank - b.rank || (b.since ?? "").localeCompare(a.since ?? ""));
  const next = () => {
    const at = waiting.findIndex((session) => session.id === current.value);
    const wanted = waiting[(at + 1) % waiting.length];
    if (wanted) open(wanted.id);
    else notify("Nobody needs you.", "note");
  };
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
      <button type="button" class={waiting.length > 0 ? "waits" : ""} onClick={next}>
        <Icon of={Hand} size={20} />
        Needs you{waiting.length > 0 ? <b>{waiting.length}</b> : null}
      </button>
      {owner.value ? (
        <button type="button" onClick={() => (creating.value = true)}>
          <Icon of={Plus} size={20} />
          New
        </button>
      ) : null}
    </nav>
  );
}
