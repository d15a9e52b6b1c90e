import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useModal } from "../modal";
import { type Entry, entries } from "../palette";
import { leaveDialog, route } from "../router";

/** Every session and every command, from the keyboard. */
export function Palette() {
  const open = route.value.palette;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes a dialog; this is a click beside it
    <dialog
      {...useModal(open, close)}
      class="palette"
      aria-label="Sessions and commands"
      onClick={(event) => event.target === event.currentTarget && close()}
    >
      {open ? <Finder /> : null}
    </dialog>
  );
}

const close = () => leaveDialog("palette");

function Finder() {
  const [wanted, setWanted] = useState("");
  const [at, setAt] = useState(0);
  const found = entries(wanted);
  const chosen = Math.min(at, found.length - 1);
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: "nearest" }), [chosen]);
  const choose = (entry: Entry | undefined) => {
    if (entry) leaveDialog("palette", entry.deed);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setAt((chosen + step + found.length) % Math.max(1, found.length));
    else if (event.key === "Enter") choose(found[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <input
        type="text"
        role="combobox"
        aria-label="Find a session or a command"
        aria-expanded="true"
        aria-controls="palette-found"
        aria-activedescendant={found.length > 0 ? `palette-${chosen}` : undefined}
        placeholder="Find a session or a command"
        autoComplete="off"
        spellcheck={false}
        autoFocus
        value={wanted}
        onInput={(event) => {
          setWanted(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div id="palette-found" role="listbox" aria-label="Found" ref={list}>
        {found.map((entry, index) => (
          // biome-ignore lint/a11y: the field has the keys
          <div
            key={entry.key}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === chosen}
            onPointerMove={() => index !== chosen && setAt(index)}
            onClick={() => choose(entry)}
          >
            {entry.session ? <span class={`dot ${entry.session.colour}`} aria-hidden="true" /> : <span class="deed" />}
            <span class="title">{entry.title}</span>
            <span class="hint">{entry.hint}</span>
          </div>
        ))}
      </div>
      {found.length === 0 ? <p class="nothing">No matches.</p> : null}
    </>
  );
}
