import { act, cancel, downloadRecording, remove } from "../actions";
import { go, type Panel } from "../router";
import type { Session } from "../shapes";
import { labelOf, owner, panel } from "../store";
import { resume } from "../views";
import { canResume, FRESH, isForeign, SAME, whereabouts } from "../words";
import { Menu } from "./Menu";

const PANELS: [Panel, string][] = [
  ["explain", "Why"],
  ["timeline", "Timeline"],
  ["diff", "Diff"],
];

export function Toolbar({ session, onSearch }: { session: Session; onSearch: () => void }) {
  const live = session.live;
  const ended = !live && !isForeign(session);
  return (
    <header class="toolbar">
      <div class="title">
        <h2>{session.name}</h2>
        <span class={`label ${session.colour}`} title={labelOf(session)}>
          {labelOf(session)}
        </span>
        <span class="where" title={session.workspace.path}>
          {whereabouts(session)}
          {session.run ? ` · run ${session.run}` : ""}
        </span>
      </div>
      <div class="tools">
        {PANELS.map(([which, word]) => (
          <button
            type="button"
            key={which}
            aria-pressed={panel.value === which}
            onClick={() => go({ panel: panel.value === which ? null : which })}
          >
            {word}
          </button>
        ))}
        {owner.value && live ? (
          <button type="button" onClick={() => void act(session, "stop")}>
            Stop
          </button>
        ) : null}
        {owner.value && canResume(session) && session.supports_resume ? (
          <button type="button" title={SAME} onClick={() => resume(session.id)}>
            Resume
          </button>
        ) : null}
        {owner.value && (live || canResume(session)) ? (
          <button type="button" title={FRESH} onClick={() => void act(session, "restart")}>
            Restart
          </button>
        ) : null}
        <Menu label={`More for ${session.name}`}>
          <button type="button" onClick={onSearch}>
            Search the terminal
          </button>
          <button type="button" onClick={() => void downloadRecording(session)}>
            Download the recording
          </button>
          {owner.value && live ? (
            <button type="button" onClick={() => cancel(session)}>
              Cancel…
            </button>
          ) : null}
          {owner.value && ended && session.record !== "archived" ? (
            <button type="button" onClick={() => void act(session, "archive")}>
              Archive
            </button>
          ) : null}
          {owner.value && ended ? (
            <button type="button" class="danger" onClick={() => remove(session)}>
              Delete…
            </button>
          ) : null}
        </Menu>
      </div>
    </header>
  );
}
