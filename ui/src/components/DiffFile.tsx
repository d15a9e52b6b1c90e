import { useEffect, useId, useState } from "preact/hooks";
import type { PatchFile, PatchLine } from "../patch";
import { commentsOf, placeOf } from "../review";
import type { Session } from "../shapes";
import { piecesOf } from "../syntax";
import { anchorOf } from "./DiffPanel";

interface Props {
  file: PatchFile;
  session: Session;
  viewed: boolean;
  onViewed: (is: boolean) => void;
  chosen: PatchLine | null;
  onChoose: ((line: PatchLine) => void) | undefined;
}

/** One file's changes, which fold away; what was viewed is folded. */
export function DiffFile({ file, session, viewed, onViewed, chosen, onChoose }: Props) {
  const [folded, setFolded] = useState(viewed);
  useEffect(() => setFolded(viewed), [viewed]);
  return (
    <section class="diff-file" id={anchorOf(file.path)} aria-label={file.path}>
      <header>
        <button type="button" class="fold" aria-expanded={!folded} onClick={() => setFolded(!folded)}>
          <span aria-hidden="true">{folded ? "▸" : "▾"}</span> {file.path}
        </button>
        <label class="viewed-toggle">
          <input type="checkbox" checked={viewed} onChange={(event) => onViewed(event.currentTarget.checked)} />
          Viewed
        </label>
      </header>
      {folded ? null : <Patch file={file} session={session} chosen={chosen} onChoose={onChoose} />}
    </section>
  );
}

type PatchProps = Pick<Props, "file" | "session" | "chosen" | "onChoose">;

/** A list box whose options are the lines: one of them is the active one, and Enter or a click chooses it. */
function Patch({ file, session, chosen, onChoose }: PatchProps) {
  const id = useId();
  const [active, setActive] = useState(-1);
  const { lines } = file;
  const places = lines.flatMap((line, at) => (line.line > 0 ? [at] : []));
  const commented = new Set(commentsOf(session.id).map((comment) => placeOf(comment.line)));
  const isChosen = (line: PatchLine) => chosen !== null && placeOf(line) === placeOf(chosen);
  useEffect(() => {
    if (active >= 0) document.getElementById(`${id}-${active}`)?.scrollIntoView({ block: "nearest" });
  }, [active]);
  const onKeyDown = (event: KeyboardEvent) => {
    const at = places.indexOf(active);
    const [down, up] = [at + 1, Math.max(at, 1) - 1];
    const to = { ArrowDown: down, j: down, ArrowUp: up, k: up, Home: 0, End: places.length - 1 }[event.key];
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
      tabIndex={0}
      role="listbox"
      aria-label={`Patch of ${file.path}`}
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
            class={`${line.kind}${at === active ? " active" : ""}${commented.has(placeOf(line)) ? " commented" : ""}`}
            role="option"
            aria-selected={isChosen(line)}
            data-was={line.was || ""}
            data-is={line.is || ""}
            onClick={() => onClick(line, at)}
          >
            <Code path={file.path} text={line.text} />
          </div>
        ),
      )}
    </div>
  );
}

/** A line with its sign, and its code in colours. */
function Code({ path, text }: { path: string; text: string }) {
  return (
    <>
      {text.slice(0, 1)}
      {piecesOf(path, text.slice(1)).map((piece, at) =>
        piece.kind ? (
          <span key={at} class={`code-${piece.kind}`}>
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
    </>
  );
}
