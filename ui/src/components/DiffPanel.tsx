import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useDifference } from "../changes";
import { filesOf, hunksOf, type PatchFile, type PatchLine } from "../patch";
import { commentsOf, setViewed, viewed, viewKey } from "../review";
import { go, leaveDialog, route } from "../router";
import type { ChangedFile, Session } from "../shapes";
import { mayChange, mayManage } from "../store";
import { loadSyntax } from "../syntax";
import { CommentBox } from "./CommentBox";
import { DiffFile } from "./DiffFile";
import { Finish } from "./Finish";
import { ReviewBar } from "./ReviewBar";

const MOST_LINES = 3000;

/** What the session changed since it began: committed, uncommitted and untracked. Lines can be commented on. */
export function DiffPanel({ session }: { session: Session }) {
  const { value, trouble } = useDifference(session.id, session.state);
  const [chosen, setChosen] = useState<PatchLine | null>(null);
  const body = useRef<HTMLDivElement>(null);
  const { lines, left } = useMemo(() => hunksOf(value?.patch ?? "", MOST_LINES), [value?.patch]);
  const files = useMemo(() => filesOf(lines), [lines]);
  useEffect(loadSyntax, []);
  if (!value) return trouble ? <p class="trouble">{trouble}</p> : null;
  const said = trouble ? <p class="trouble">{trouble}</p> : null;
  if (value.files.length === 0 && !chosen)
    return (
      <div class="diff">
        {said}
        <p class="quiet">Nothing changed.</p>
        <FinishButton session={session} />
        <FinishDialog session={session} />
      </div>
    );
  const isViewed = (file: PatchFile) => viewed.value.has(viewKey(session.id, file));
  return (
    <div class="diff" ref={body}>
      {said}
      <div class="diff-head">
        <Files files={value.files} patches={files} isViewed={isViewed} />
        <p class="quiet">
          {files.filter(isViewed).length} of {files.length} viewed.{" "}
          <span class="by-keys">n and p go to the next and the previous file. </span>
          {mayChange.value ? (
            <>
              Click a line<span class="by-keys">, or press Enter on it,</span> to comment.
            </>
          ) : null}
        </p>
        <FinishButton session={session} />
      </div>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the lines inside have the focus */}
      <div class="diff-files" onKeyDown={(event) => stepThrough(event, body.current)}>
        {files.map((file) => (
          <DiffFile
            key={file.path}
            file={file}
            session={session}
            viewed={isViewed(file)}
            onViewed={(is) => setViewed(viewKey(session.id, file), is)}
            chosen={chosen}
            onChoose={mayChange.value ? setChosen : undefined}
          />
        ))}
      </div>
      {value.cut ? <p class="quiet">The changes are too large; only their beginning is shown.</p> : null}
      {left > 0 ? <p class="quiet">{left} more lines; hitch diff shows them all.</p> : null}
      {chosen ? (
        <CommentBox
          session={session}
          line={chosen}
          onClose={() => {
            setChosen(null);
            body.current?.querySelector<HTMLElement>(".patch:has(.active)")?.focus();
          }}
        />
      ) : commentsOf(session.id).length > 0 ? (
        <ReviewBar session={session} onOpen={setChosen} />
      ) : null}
      <FinishDialog session={session} />
    </div>
  );
}

const canBeFinished = (session: Session): boolean => mayManage.value && session.workspace.id !== null;

function FinishButton({ session }: { session: Session }) {
  if (!canBeFinished(session)) return null;
  return (
    <button type="button" class="finish" onClick={() => go({ finish: true })}>
      Finish…
    </button>
  );
}

function FinishDialog({ session }: { session: Session }) {
  if (!route.value.finish || !canBeFinished(session)) return null;
  // what goes on when somebody has left closes nothing elsewhere
  const leave = () => route.value.session === session.id && leaveDialog("finish");
  return <Finish session={session} onClose={leave} />;
}

interface FilesProps {
  files: readonly ChangedFile[];
  patches: readonly PatchFile[];
  isViewed: (file: PatchFile) => boolean;
}

/** Every file with its folder once, and how much of it changed. A click goes there. */
function Files({ files, patches, isViewed }: FilesProps) {
  const byPath = new Map(patches.map((file) => [file.path, file]));
  return (
    <ul class="changed-files">
      {[...files]
        .sort((a, b) => a.path.localeCompare(b.path))
        .map((file) => {
          const patch = byPath.get(file.path);
          const cut = file.path.lastIndexOf("/") + 1;
          return (
            <li key={file.path} class={patch && isViewed(patch) ? "viewed" : ""}>
              <button type="button" class="jump" title={file.path} onClick={() => goTo(file.path)}>
                <span class="folder">{file.path.slice(0, cut)}</span>
                {file.path.slice(cut)}
              </button>
              <span class="counts">
                {file.untracked ? <span class="new">new</span> : null} <ins>+{file.added ?? "?"}</ins>{" "}
                <del>−{file.deleted ?? "?"}</del>
              </span>
            </li>
          );
        })}
    </ul>
  );
}

export const anchorOf = (path: string): string => `file ${path}`;

function goTo(path: string): void {
  const file = document.getElementById(anchorOf(path));
  file?.scrollIntoView({ block: "start" });
  file?.querySelector<HTMLElement>(".patch")?.focus({ preventScroll: true });
}

/** `n` and `p`: to the next and the previous file, from wherever the focus is. */
function stepThrough(event: KeyboardEvent, body: HTMLElement | null): void {
  if (!body || (event.key !== "n" && event.key !== "p") || event.ctrlKey || event.metaKey || event.altKey) return;
  if ((event.target as HTMLElement).closest("textarea, input")) return;
  const patches = [...body.querySelectorAll<HTMLElement>(".patch")];
  const at = patches.findIndex((patch) => patch.contains(document.activeElement));
  const next = patches[at + (event.key === "n" ? 1 : -1)];
  if (!next) return;
  event.preventDefault();
  event.stopPropagation();
  next.closest(".diff-file")?.scrollIntoView({ block: "start" });
  next.focus({ preventScroll: true });
}
