import type { RefObject } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { act } from "../actions";
import { ApiError, ask, askInSteps } from "../api";
import {
  amountsOf,
  COMMAND,
  chosenOf,
  inPlace,
  meetsLimits,
  profileOptions,
  runsPods,
  runtimeOptions,
  takes,
  tilesOf,
} from "../catalog";
import { change, draft, type FieldName, forget } from "../draft";
import { useFetched, useSoon } from "../fetched";
import { useModal } from "../modal";
import { keep } from "../prompts";
import { projects as allProjects } from "../rail";
import { go, leaveDialog } from "../router";
import type { Catalog, Folders, Session, SessionWithNotes, NewSession as Wish } from "../shapes";
import { add, creating, hasPods, known as isKnown, mayBegin, notify, sessions } from "../store";
import { fullPath, habitsOf, inWords, isAddress, MOST_PROJECTS, newestOf, slug, withHabit } from "../wish";
import { argv, project } from "../words";
import { About } from "./Field";
import { NewSessionAgents } from "./NewSessionAgents";
import { NewSessionMore } from "./NewSessionMore";
import { NewSessionProject } from "./NewSessionProject";
import { NewSessionRepository } from "./NewSessionRepository";

const NOTHING: Catalog = {
  agents: [],
  runtimes: [{ name: "local", available: true, missing: "" }],
  profiles: [],
  detach_key: "",
};
const [AGENT, FOLDER, REPO, PROJECTS, MADE] = ["agent", "folder", "repo", "projects", "made"];
const POD = "pod";
/** What is installed meanwhile is offered. */
const CATALOG_MS = 10_000;
const SOON_MS = 120;
const IS_MAC = /Mac|iPhone|iPad/.test(navigator.platform);
/** Where it is to work, as the hub is told and as it is remembered. */
interface Place {
  wish: Pick<Wish, "folder" | "repo" | "branch" | "profile">;
  project: string;
  worktree: boolean;
}
type Troubles = Partial<Record<FieldName | "top", string>>;
/** Where the hub's word for a field is not the form's. */
const FIELDS: Record<string, FieldName> = {
  workspace: "folder",
  repository: "repo",
  "sandbox.image": "image",
  "permission mode": "permission_mode",
};

export function NewSession() {
  const open = creating.value && mayBegin.value;
  const start = useRef<Start | null>(null);
  const leave = () => {
    if (start.current) start.current.isLeft = true;
    leaveDialog("creating");
  };
  return (
    <dialog {...useModal(open, leave)} class="new-session" aria-labelledby="new-title">
      {open ? <Form of={start} leave={leave} /> : null}
    </dialog>
  );
}

/** What becomes of the form while its session starts. */
interface Start {
  hasBegun: boolean;
  /** Who leaves it has cancelled that. */
  isLeft: boolean;
  /** The page shows something else, as after a click on a notification. */
  isGone: boolean;
}

function Form({ of, leave }: { of: RefObject<Start | null>; leave: () => void }) {
  const form = useRef<HTMLFormElement>(null);
  const [troubles, setTroubles] = useState<Troubles>({});
  const [busy, setBusy] = useState(false);
  const [isMore, setIsMore] = useState(false);
  const { value: known, trouble: unknown } = useFetched<Catalog>("/api/catalog", "", CATALOG_MS);
  const inPods = known ? runsPods(known) : hasPods.value;
  const projects = allProjects.value.filter(({ path }) => isAddress(path) === inPods).slice(0, MOST_PROJECTS);
  const newest = newestOf(sessions.value.values());
  // what was begun elsewhere since is the last that was used
  const elsewhere = newest && newest.id !== localStorage.getItem(MADE) ? newest : undefined;
  useEffect(() => {
    if (draft.value[inPods ? "repo" : "folder"] || !isKnown.value) return;
    const used = elsewhere && project(elsewhere);
    const last = localStorage.getItem(inPods ? REPO : FOLDER) ?? projects[0]?.path;
    const path = used && isAddress(used) === inPods ? used : last;
    change(inPods ? { repo: path ?? "" } : { folder: path || "~/" });
  }, [isKnown.value, inPods]);
  const { prompt, folder, repo, profile, command, name, runtime, image, model, permission_mode, when_limit } =
    draft.value;
  const habits = habitsOf(localStorage.getItem(PROJECTS));
  const [home, setHome] = useState("");
  const habit = habits.get(inPods ? repo.trim() : fullPath(folder.trim(), home));
  // as long as the dialog is open, what begins elsewhere moves no tile
  const atFirst = useRef<string | null | undefined>(undefined);
  if (isKnown.value && atFirst.current === undefined) atFirst.current = elsewhere?.agent || localStorage.getItem(AGENT);
  const last = atFirst.current ?? null;
  const catalog = known ?? NOTHING;
  const places = useRef<readonly string[]>([]);
  const tiles = useMemo(() => {
    const found = known && isKnown.value ? inPlace(tilesOf(known, last, inPods), places.current) : [];
    places.current = found.map(({ value }) => value);
    return found;
  }, [known, last, isKnown.value]);
  const agent = chosenOf(tiles, draft.value.agent, habit?.agent, last);
  const runtimes = runtimeOptions(catalog);
  const runtimeName = inPods ? POD : chosenOf(runtimes, runtime, "local");
  const profiles = profileOptions(catalog);
  const profileName = chosenOf(profiles, profile);
  const wantsWorktree = draft.value.worktree ?? habit?.worktree ?? true;
  const branchBase = slug(prompt) || slug(name) || (agent === COMMAND ? slug(argv(command)[0] ?? "") : agent) || "work";

  const { value: found } = useFetched<Folders>(useSoon(inPods ? "" : foldersAt(folder, branchBase), SOON_MS), "");
  useEffect(() => setHome(found?.home ?? ""), [found]);

  /** What is wrong is said beside its field, and gone as soon as that is changed. */
  const set: typeof change = (changed) => {
    change(changed);
    const gone = Object.keys(changed) as FieldName[];
    if (gone.some((field) => troubles[field]) || troubles.top)
      setTroubles(
        Object.fromEntries(
          Object.entries(troubles).filter(([field]) => field !== "top" && !gone.includes(field as FieldName)),
        ),
      );
  };
  const fail = (field: FieldName | "top", text: string): undefined => {
    const found = form.current?.querySelector<HTMLElement>(`[name="${field}"]`);
    setTroubles({ [found ? field : "top"]: text });
    if (found?.closest("details")) setIsMore(true);
    requestAnimationFrame(() =>
      form.current?.querySelector<HTMLElement>(`[name="${field}"]:not([type=radio])`)?.focus(),
    );
  };

  /** A volume of its own, with a clone or empty. */
  const inPod = (): Place | undefined => {
    const [url, branch] = [repo.trim(), draft.value.branch?.trim()];
    if (branch && !url) return fail("repo", "Say of which repository that is a branch.");
    const where = url ? { repo: url, ...(branch ? { branch } : {}) } : { folder: "/" };
    return { wish: { ...where, ...(profile ? { profile } : {}) }, project: url, worktree: wantsWorktree };
  };

  const onMachine = async (): Promise<Place | undefined> => {
    if (!folder.trim()) return fail("folder", "Say in which folder to work.");
    const there = await ask<Folders>("GET", foldersAt(folder.trim(), branchBase));
    if (!there.is_folder) return fail("folder", "There is no such folder on the hub's machine.");
    const branch = wantsWorktree && there.repository ? draft.value.branch?.trim() || there.branch : null;
    return {
      wish: { folder: there.path, ...(branch ? { branch } : {}) },
      project: fullPath(there.path, ""),
      worktree: there.repository ? branch !== null : wantsWorktree,
    };
  };

  const start = useRef<Start>({ hasBegun: false, isLeft: false, isGone: false }).current;
  useEffect(() => {
    of.current = start;
    const goneBack = () => {
      start.isLeft ||= !creating.value;
    };
    addEventListener("popstate", goneBack);
    return () => {
      removeEventListener("popstate", goneBack);
      start.isGone = true;
    };
  }, []);

  const begin = async () => {
    const tile = tiles.find(({ value }) => value === agent);
    const words = argv(command);
    if (agent === COMMAND && words.length === 0) return fail("command", "Say which command to run.");
    if (!tile) return fail("agent", unknown || "Say which agent to run.");
    if (tile.missing) return fail("agent", `${tile.text} is not installed on the hub's machine.`);
    const place = inPods ? inPod() : await onMachine();
    if (!place) return;
    const wanted: Wish = {
      ...(agent === COMMAND ? { command: words } : { agent }),
      ...place.wish,
      ...(name.trim() ? { name: name.trim() } : {}),
      ...(prompt.trim() ? { prompt: prompt.trim() } : {}),
      runtime: runtimeName,
      ...(runtimeName === "docker" && image.trim() ? { sandbox: { image: image.trim() } } : {}),
      ...(model.trim() && takes(catalog, agent, "model") ? { model: model.trim() } : {}),
      ...(permission_mode.trim() && takes(catalog, agent, "permission_mode")
        ? { permission_mode: permission_mode.trim() }
        : {}),
      ...(when_limit && meetsLimits(catalog.agents, agent) ? { when_limit } : {}),
    };
    const made = await askInSteps<SessionWithNotes>("/api/sessions", wanted, ({ session }) =>
      opened(session, wanted, place),
    );
    if (!start.hasBegun && !start.isLeft) opened(made.session, wanted, place);
    if (start.hasBegun) for (const note of made.notes ?? []) notify(note, "note");
  };

  /** Its run has begun. What goes wrong from now on is told where it is. */
  const opened = (session: Session, wanted: Wish, place: Place) => {
    if (start.isLeft) return void cancelled(session);
    start.hasBegun = true;
    localStorage.setItem(inPods ? REPO : FOLDER, (inPods ? repo : folder).trim());
    localStorage.setItem(MADE, session.id);
    if (wanted.agent) localStorage.setItem(AGENT, wanted.agent);
    const kept = { agent: wanted.agent ?? habit?.agent ?? "", worktree: place.worktree };
    if (place.project) localStorage.setItem(PROJECTS, withHabit(habits, place.project, kept));
    if (wanted.prompt) keep(session.id, wanted.prompt);
    add(session);
    // who came back meanwhile may be describing another one
    if (!start.isGone || !creating.value) forget();
    if (start.isGone) notify(`${session.name} was started.`, "note");
    else go({ creating: false, session: session.id }, "replace");
  };

  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setTroubles({});
    try {
      await begin();
    } catch (error) {
      const { field, text } = troubleOf(error as Error, agent === COMMAND);
      if (start.hasBegun || (start.isGone && !start.isLeft)) notify(text);
      else if (!start.isLeft) fail(field, text);
    }
    setBusy(false);
  };

  return (
    <form ref={form} onSubmit={submit} noValidate>
      <header>
        <h2 id="new-title">New session</h2>
        <button type="button" class="icon" aria-label="Close" onClick={leave}>
          ✕
        </button>
      </header>
      <div class="parts">
        {troubles.top ? (
          <p class="trouble" role="alert">
            {troubles.top}
          </p>
        ) : null}
        <div class="field prompt">
          <label for="new-prompt">What should be done?</label>
          <textarea
            id="new-prompt"
            name="prompt"
            rows={5}
            autoFocus
            aria-describedby="prompt-about"
            aria-invalid={!!troubles.prompt}
            value={prompt}
            placeholder="Describe the task, or leave it empty and type later"
            onInput={(event) => set({ prompt: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
              event.preventDefault();
              form.current?.requestSubmit();
            }}
          />
          <About name="prompt" trouble={troubles.prompt ?? ""} />
        </div>
        {inPods ? (
          <NewSessionRepository
            projects={projects}
            draft={draft.value}
            change={set}
            profiles={profiles}
            profile={profileName}
            amounts={amountsOf(catalog, profileName)}
            troubles={troubles}
          />
        ) : (
          <NewSessionProject
            projects={projects}
            found={found}
            draft={draft.value}
            change={set}
            branchBase={branchBase}
            wantsWorktree={wantsWorktree}
            folderTrouble={troubles.folder ?? ""}
            branchTrouble={troubles.branch ?? ""}
          />
        )}
        <NewSessionAgents
          tiles={tiles}
          chosen={agent}
          command={command}
          change={set}
          agentTrouble={troubles.agent ?? unknown}
          commandTrouble={troubles.command ?? ""}
        />
        <NewSessionMore
          draft={draft.value}
          change={set}
          isOpen={isMore}
          toggle={setIsMore}
          runtimes={runtimes}
          runtime={runtimeName}
          model={takes(catalog, agent, "model")}
          permissionMode={takes(catalog, agent, "permission_mode")}
          limits={meetsLimits(catalog.agents, agent)}
          troubles={troubles}
        />
      </div>
      <footer>
        <p class="keys">
          <kbd>Enter</kbd> starts, in the prompt <kbd>{IS_MAC ? "⌘" : "Ctrl"}</kbd> <kbd>Enter</kbd>
        </p>
        <button type="button" onClick={leave}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={busy}>
          {busy ? "Starting…" : "Start"}
        </button>
      </footer>
    </form>
  );
}

async function cancelled(session: Session): Promise<void> {
  if (await act(session, "cancel")) notify(`Cancelled: ${session.name} was stopped and archived.`, "note");
}

const foldersAt = (path: string, branch: string): string =>
  `/api/folders?${new URLSearchParams({ path: path || "~/", branch })}`;

/** Beside the field that the hub names; above them all when it names none that is here. */
function troubleOf(error: Error, isCommand: boolean): { field: FieldName | "top"; text: string } {
  const text = inWords(error);
  if (!(error instanceof ApiError) || !error.field) return { field: "top", text };
  if (error.field === "command" || error.field === "agent") return { field: isCommand ? "command" : "agent", text };
  const field = FIELDS[error.field] ?? error.field;
  return { field: field in draft.value ? (field as FieldName) : "top", text };
}
