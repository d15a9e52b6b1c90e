import { ChevronLeft, LayoutGrid, X } from "lucide";
import { useEffect, useRef } from "preact/hooks";
import { go } from "../router";
import { close, current, grid, sessions, tabs } from "../store";
import { Dot } from "./Dot";
import { Icon } from "./Icon";

export function Tabs() {
  const found = tabs.value.flatMap((id) => sessions.value.get(id) ?? []);
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    list.current?.querySelector(".chosen")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current.value, grid.value, found.length]);
  if (found.length === 0) return null;
  return (
    <nav class="tabs" aria-label="Open sessions">
      <button
        type="button"
        class="back icon"
        aria-label="Back to the list"
        onClick={() => go({ session: null, grid: false })}
      >
        <Icon of={ChevronLeft} size={20} />
      </button>
      <ul ref={list}>
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
                <Icon of={X} size={14} />
              </button>
            </li>
          );
        })}
      </ul>
      {found.length > 1 ? (
        <button type="button" class="grid-toggle" aria-pressed={grid.value} onClick={() => go({ grid: !grid.value })}>
          <Icon of={LayoutGrid} />
          Grid
        </button>
      ) : null}
    </nav>
  );
}
