import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { renaming } from "../actions";
import { canBeSeen, isSnoozed, markAllSeen, set, snoozes } from "../deeds";
import { choicesOf, learnAgents } from "../handover";
import { offersOf } from "../offers";
import { menuOf, select } from "../rail";
import { mayChange, now, open, sessions } from "../store";

const GAP = 8;

/** The menu of one row, wherever that is: rows come and go, and there may be many. */
export function RowMenu() {
  const at = menuOf.value;
  const session = at ? sessions.value.get(at.id) : undefined;
  const box = useRef<HTMLDivElement>(null);
  const back = useRef<Element | null>(null);
  const close = () => (menuOf.value = null);
  useEffect(() => {
    if (!at) return;
    void learnAgents();
    const onPointer = (event: PointerEvent) => {
      if (!box.current?.contains(event.target as Node)) close();
    };
    document.addEventListener("pointerdown", onPointer);
    addEventListener("resize", close);
    return () => {
      document.removeEventListener("pointerdown", onPointer);
      removeEventListener("resize", close);
    };
  }, [at]);
  useLayoutEffect(() => {
    const menu = box.current;
    if (!at || !menu) return;
    menu.style.left = `${Math.max(GAP, Math.min(at.x, innerWidth - menu.offsetWidth - GAP))}px`;
    menu.style.top = `${Math.max(GAP, Math.min(at.y, innerHeight - menu.offsetHeight - GAP))}px`;
    back.current = document.activeElement;
    menu.querySelector<HTMLElement>("button")?.focus();
  }, [at, session === undefined]);
  if (!at || !session) return null;
  const leave = () => {
    close();
    if (back.current instanceof HTMLElement) back.current.focus();
  };
  const item = (word: ComponentChildren, deed: () => void, kind = "") => (
    <button
      type="button"
      key={word}
      role="menuitem"
      class={kind}
      tabIndex={-1}
      onClick={() => {
        leave();
        deed();
      }}
    >
      {word}
    </button>
  );
  return (
    <div
      ref={box}
      class="menu-items row-menu"
      role="menu"
      tabIndex={-1}
      aria-label={`Menu of ${session.name}`}
      onKeyDown={(event) => onKeyDown(event, leave)}
    >
      {item("Open", () => open(session.id))}
      {offersOf(session).map(({ word, deed, danger }) => item(word, deed, danger ? "danger" : ""))}
      {mayChange.value ? choicesOf(session).map(({ word, deed }) => item(word, deed)) : null}
      {item("Rename…", () => (renaming.value = session))}
      {item(session.pinned ? "Unpin" : "Pin", () => void set(session, { pinned: !session.pinned }))}
      {isSnoozed(session, now.peek())
        ? item("End the snooze", () => void set(session, { snooze_s: 0 }))
        : snoozes(new Date()).map(([word, snooze_s]) => item(word, () => void set(session, { snooze_s })))}
      {canBeSeen(session) ? item("Mark as seen", () => markAllSeen([session])) : null}
      {item("Select", () => select(session.id, true))}
    </div>
  );
}

function onKeyDown(event: KeyboardEvent & { currentTarget: HTMLElement }, leave: () => void): void {
  const items = [...event.currentTarget.querySelectorAll<HTMLElement>("button")];
  const at = items.indexOf(document.activeElement as HTMLElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
  if (event.key === "Escape" || event.key === "Tab") leave();
  else if (to !== undefined) items.at(to % items.length)?.focus();
  else return;
  event.preventDefault();
  event.stopPropagation();
}
