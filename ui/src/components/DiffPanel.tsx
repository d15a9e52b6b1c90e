import { useEffect, useId, useRef, useState } from "preact/hooks";
import { useDifference } from "../changes";
import { hunksOf, type PatchLine } from "../patch";
import type { Session } from "../shapes";
import { owner } from "../store";
import { CommentBox } from "./CommentBox";

const MOST_LINES = 3000;

/** What the session changed since it began: committed, uncommitted and untracked. A line can be commented on. */
export function DiffPanel({ session }: { session: Session }) {
  const { value, trouble } = useDifference(session.id, session.state);
  const [chosen, setChosen] = useState<PatchLine | null>(null);
  const patch = useRef<HTMLDivElement>(null);
  if (trouble) return <p class="quiet">{trouble}</p>;
  if (!value) return null;
  if (value.files.length === 0) return <p class="quiet">Nothing changed.</p>;
  const { lines, left } = hunksOf(value.patch, MOST_LINES);
  return (
    <>
      <ul class="changed-files">
        {value.files.map((file) => (
          <li key={file.path}>
            <code>{file.path}</code>
            <span class="counts">
              {file.untracked ? "new " : ""}
              <ins>+{file.added ?? "?"}</ins> <del>−{file.deleted ?? "?"}</del>
            </span>
          </li>
        ))}
      </ul>
      {owner.value ? (
        <p class="quiet">Click a line, or choose one with the arrow keys and Enter, to comment on it.</p>
      ) : null}
      <Patch lines={lines} chosen={chosen} onChoose={owner.value ? setChosen : undefined} box={patch} />
      {value.cut ? <p class="quiet">The diff is too large; only its beginning is shown.</p> : null}
      {left > 0 ? <p class="quiet">{left} more lines; hitch diff shows them all.</p> : null}
      {chosen ? (
        <CommentBox
          session={session}
          line={chosen}
          onClose={() => {
            setChosen(null);
            patch.current?.focus();
          }}
        />
      ) : null}
    </>
  );
}

interface PatchProps {
  lines: readonly PatchLine[];
  chosen: PatchLine | null;
  onChoose: ((line: PatchLine) => void) | undefined;
  box: { current: HTMLDivElement | null };
}

/** A list box whose options are the lines: one of them is the active one, and Enter or a click chooses it. */
function Patch({ lines, chosen, onChoose, box }: PatchProps) {
  const id = useId();
  const [active, setActive] = useState(-1);
  const places = lines.flatMap((line, at) => (line.line > 0 ? [at] : []));
  const isChosen = (line: PatchLine) => chosen !== null && place(line) === place(chosen);
  useEffect(() => {
    if (active >= 0) document.getElementById(`${id}-${active}`)?.scrollIntoView({ block: "nearest" });
  }, [active]);
  const onKeyDown = (event: KeyboardEvent) => {
    const at = places.indexOf(active);
    const to = { ArrowDown: at + 1, ArrowUp: Math.max(at, 1) - 1, Home: 0, End: places.length - 1 }[event.key];
    const line = lines[active];
    if (to !== undefined && places[to] !== undefined) setActive(places[to]);
    else if ((event.key === "Enter" || event.key === " ") && line) onChoose?.(line);
    else return;
    event.preventDefault();
  };
  const onClick = (line: PatchLine, at: number) => {
    // text that is being selected, to be copied, is no choice
    if (document.getSelection()?.type === "Range") return;
    setActive(at);
    onChoose?.(line);
  };
  return (
    <div
      class="patch"
      ref={box}
      tabIndex={0}
      role="listbox"
      aria-label="Patch"
      aria-activedescendant={places.includes(active) ? `${id}-${active}` : undefined}
      onKeyDown={onKeyDown}
    >
      {lines.map((line, at) =>
        line.line === 0 ? (
          <div key={at} class={line.kind} role="presentation">
            {line.text}
          </div>
        ) : (
          // biome-ignore lint/a11y: the list box has the focus and the keys
          <div
            key={at}
            id={`${id}-${at}`}
            class={`${line.kind}${at === active ? " active" : ""}`}
            role="option"
            aria-selected={isChosen(line)}
            onClick={() => onClick(line, at)}
          >
            {line.text}
          </div>
        ),
      )}
    </div>
  );
}

const place = (line: PatchLine): string => `${line.kind === "deleted" ? "-" : "+"}${line.line} ${line.path}`;
