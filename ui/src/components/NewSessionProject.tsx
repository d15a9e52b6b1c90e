import { useEffect, useRef, useState } from "preact/hooks";
import type { Change, Draft } from "../draft";
import type { Folders } from "../shapes";
import { completed, isAbout, offered, type Project, shortened } from "../wish";
import { About, Labelled } from "./Field";

interface Props {
  projects: readonly Project[];
  found: Folders | undefined;
  draft: Draft;
  change: Change;
  /** What the branch is named after, until a person names it. */
  branchBase: string;
  wantsWorktree: boolean;
  folderTrouble: string;
  branchTrouble: string;
}

/** Where it works: a project of before, or any folder; there, or in a worktree of its own. */
export function NewSessionProject(of: Props) {
  const { draft, change } = of;
  const { found } = of;
  const here = found && isAbout(found, draft.folder) ? found : undefined;
  return (
    <>
      <div class="field project">
        <PathField found={found} folder={draft.folder} change={change} trouble={of.folderTrouble} />
        {of.projects.length > 0 ? (
          <fieldset class="chips" aria-label="Recent projects">
            {of.projects.map((project) => (
              <button
                type="button"
                key={project.path}
                title={project.path}
                aria-pressed={(here?.path ?? draft.folder) === project.path}
                onClick={() => change({ folder: found ? shortened(project.path, found.home) : project.path })}
              >
                {project.name}
              </button>
            ))}
          </fieldset>
        ) : null}
      </div>
      <Worktree {...of} here={here} />
    </>
  );
}

/** A text field with the folders that may be meant below it. */
function PathField(of: { found: Folders | undefined; folder: string; change: Change; trouble: string }) {
  const [isOpen, setIsOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const list = useRef<HTMLDivElement>(null);
  const choices = isOpen ? offered(of.found, of.folder) : [];
  useEffect(() => list.current?.children[at]?.scrollIntoView({ block: "nearest" }), [at]);
  const type = (folder: string) => {
    of.change({ folder });
    setIsOpen(true);
    setAt(-1);
  };
  const take = (index: number) => {
    const choice = choices[index];
    if (choice && of.found) type(completed(choice.path, of.found, of.folder));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const count = choices.length;
    if (event.key === "ArrowDown" && !isOpen) setIsOpen(true);
    else if (count === 0) return;
    else if (event.key === "ArrowDown") setAt((at + 1) % count);
    else if (event.key === "ArrowUp") setAt((at <= 0 ? count : at) - 1);
    else if ((event.key === "Enter" || (event.key === "Tab" && !event.shiftKey)) && at >= 0) take(at);
    else if (event.key === "Tab" && !event.shiftKey && count === 1) take(0);
    else if (event.key === "Escape") setIsOpen(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <Labelled name="folder" label="Project" trouble={of.trouble}>
      {(shared) => (
        <div class="path">
          <input
            {...shared}
            role="combobox"
            aria-expanded={choices.length > 0}
            aria-controls="folder-list"
            aria-autocomplete="list"
            aria-activedescendant={at >= 0 && choices[at] ? `folder-${at}` : undefined}
            value={of.folder}
            placeholder="~/project"
            onInput={(event) => type(event.currentTarget.value)}
            onKeyDown={onKeyDown}
            onBlur={() => setIsOpen(false)}
          />
          <div id="folder-list" ref={list} role="listbox" aria-label="Folders" hidden={choices.length === 0}>
            {choices.map((choice, index) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field
              // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field
              <div
                key={choice.path}
                id={`folder-${index}`}
                role="option"
                aria-selected={index === at}
                onMouseDown={(event) => event.preventDefault()}
                onClick={() => take(index)}
              >
                <span>{shortened(choice.path, of.found?.home ?? "")}</span>
                {choice.repository ? <span class="git">git</span> : null}
              </div>
            ))}
            {choices.length > 0 && of.found?.cut ? <Cut /> : null}
          </div>
        </div>
      )}
    </Labelled>
  );
}

const Cut = () => (
  <div class="cut" role="option" aria-selected={false} aria-disabled tabIndex={-1}>
    There are more: go on typing
  </div>
);

function Worktree(of: Props & { here: Folders | undefined }) {
  const { draft, change, here } = of;
  const isPossible = !here || here.repository !== null;
  const isOn = isPossible && of.wantsWorktree;
  return (
    <div class="worktree">
      <label class="check">
        <input
          type="checkbox"
          name="worktree"
          checked={isOn}
          disabled={!isPossible}
          onChange={(event) => change({ worktree: event.currentTarget.checked })}
        />
        Own worktree
      </label>
      {isOn ? (
        <label class="branch">
          <span>on branch</span>
          <input
            name="branch"
            aria-describedby="branch-about"
            aria-invalid={of.branchTrouble !== ""}
            autoComplete="off"
            autoCapitalize="off"
            spellcheck={false}
            value={draft.branch ?? here?.branch ?? of.branchBase}
            onInput={(event) => change({ branch: event.currentTarget.value })}
            onBlur={() => draft.branch?.trim() || change({ branch: null })}
          />
        </label>
      ) : (
        <span class="quiet">{whyNot(here)}</span>
      )}
      <About name="branch" trouble={of.branchTrouble} />
    </div>
  );
}

function whyNot(here: Folders | undefined): string {
  if (!here || here.repository) return "It works in the folder itself";
  return here.is_folder ? "Not a git repository: it works in the folder itself" : "No such folder yet";
}
