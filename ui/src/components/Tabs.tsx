import { go } from "../router";
import { close, current, grid, hasGrid, sessions, tabs } from "../store";
import { Dot } from "./Dot";

export function Tabs() {
  const found = tabs.value.flatMap((id) => sessions.value.get(id) ?? []);
  if (found.length === 0 && !hasGrid.value) return null;
  return (
    <nav class="tabs" aria-label="Open sessions">
      <button
        type="button"
        class="back"
        aria-label="Back to the list"
        onClick={() => go({ session: null, grid: false })}
      >
        ‹
      </button>
      <ul>
        {found.map((session) => {
          const chosen = current.value === session.id && !grid.value;
          return (
            <li key={session.id} class={chosen ? "tab chosen" : "tab"} data-session={session.id}>
              <Dot session={session} />
              <button
                type="button"
                class="tab-name"
                aria-current={chosen ? "page" : undefined}
                onClick={() => go({ session: session.id, grid: false })}
              >
                {session.name}
              </button>
              <button
                type="button"
                class="tab-close"
                aria-label={`Close the tab of ${session.name}`}
                onClick={() => close(session.id)}
              >
                ×
              </button>
            </li>
          );
        })}
      </ul>
      {hasGrid.value ? (
        <button type="button" class="grid-toggle" aria-pressed={grid.value} onClick={() => go({ grid: !grid.value })}>
          Grid
        </button>
      ) : null}
    </nav>
  );
}
