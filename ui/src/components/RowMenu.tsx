import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { archiveAll, canBeSeen, change, isSnoozed, markAllSeen, snoozes, stopAll, which } from "../deeds";
import { menuOf, renaming, select } from "../rail";
import { now, open, sessions } from "../store";

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
    back.current = document.activeElement;
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
    menu.querySelector<HTMLElement>("button")?.focus();
  }, [at, session === undefined]);
  if (!at || !session) return null;
  const item = (word: ComponentChildren, deed: () => void) => (
    <button
      type="button"
      role="menuitem"
      tabIndex={-1}
      onClick={() => {
        close();
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
      onKeyDown={(event) => onKeyDown(event, close, back.current)}
    >
      {item("Open", () => open(session.id))}
      {item("Rename", () => (renaming.value = session.id))}
      {item(session.pinned ? "Unpin" : "Pin", () => void change(session, { pinned: !session.pinned }))}
      {isSnoozed(session, now.peek())
        ? item("End the snooze", () => void change(session, { snooze_s: 0 }))
        : snoozes(new Date()).map(([word, snooze_s]) => item(word, () => void change(session, { snooze_s })))}
      {canBeSeen(session) ? item("Mark as seen", () => markAllSeen([session])) : null}
      {item("Select", () => select(session.id, true))}
      {which([session], "stop").length > 0 ? item("Stop…", () => stopAll([session])) : null}
      {which([session], "archive").length > 0 ? item("Archive…", () => archiveAll([session])) : null}
    </div>
  );
}

function onKeyDown(
  event: KeyboardEvent & { currentTarget: HTMLElement },
  close: () => void,
  back: Element | null,
): void {
  const items = [...event.currentTarget.querySelectorAll<HTMLElement>("button")];
  const at = items.indexOf(document.activeElement as HTMLElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
  if (event.key === "Escape" || event.key === "Tab") {
    close();
    if (back instanceof HTMLElement) back.focus();
  } else if (to !== undefined) items.at(to % items.length)?.focus();
  else return;
  event.preventDefault();
  event.stopPropagation();
}
