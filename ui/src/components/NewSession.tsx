import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, ask } from "../api";
import { agentOptions, chosenOf, runtimeOptions } from "../catalog";
import { useFetched } from "../fetched";
import type { Catalog, SessionWithNotes, NewSession as Wish, WorkspaceView } from "../shapes";
import { creating, notify, open, sessions } from "../store";
import { argv } from "../words";
import { Field } from "./Field";
import { Select } from "./Select";

const NOTHING: Catalog = { agents: [], runtimes: [{ name: "local", available: true, missing: "" }] };
type FieldName = "agent" | "command" | "folder" | "branch" | "workspace" | "runtime" | "image" | "name" | "prompt";
type Trouble = { field: FieldName | "top"; text: string } | null;
type Place = "folder" | "branch" | "workspace";

export function NewSession() {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (creating.value) box.current?.showModal();
    else box.current?.close();
  }, [creating.value]);
  return (
    <dialog ref={box} class="new-session" aria-labelledby="new-title" onClose={() => (creating.value = false)}>
      {creating.value ? <Form /> : null}
    </dialog>
  );
}

function Form() {
  const [what, setWhat] = useState<"agent" | "command">("agent");
  const [place, setPlace] = useState<Place>("folder");
  const [trouble, setTrouble] = useState<Trouble>(null);
  const [busy, setBusy] = useState(false);
  const [agent, setAgent] = useState("");
  const [runtime, setRuntime] = useState("");
  const { value: catalog = NOTHING, trouble: unknown } = useFetched<Catalog>("/api/catalog", "");
  const [agents, runtimes] = [agentOptions(catalog), runtimeOptions(catalog)];
  const runtimeName = chosenOf(runtimes, runtime, "local");
  const inContainer = runtimeName === "docker";
  const shownFields: FieldName[] = [
    what,
    "folder",
    "runtime",
    "name",
    "prompt",
    ...(inContainer ? (["image"] as const) : []),
  ];
  if (place !== "folder") shownFields.push(place);
  const of = (field: FieldName | "top") => (trouble?.field === field ? trouble.text : "");

  const submit = async (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    const command = argv(text("command"));
    const missing = what === "agent" ? !text("agent") && "agent" : command.length === 0 && "command";
    if (missing) return setTrouble({ field: missing, text: `Say which ${missing} to run.` });
    const wanted: Wish = {
      ...(what === "agent" ? { agent: text("agent") } : { command }),
      folder: text("folder"),
      ...(place === "branch" ? { branch: text("branch") } : {}),
      ...(place === "workspace" ? { workspace: text("workspace") } : {}),
      ...(text("name") ? { name: text("name") } : {}),
      ...(text("prompt") ? { prompt: text("prompt") } : {}),
      runtime: text("runtime"),
      ...(text("image") ? { sandbox: { image: text("image") } } : {}),
    };
    setBusy(true);
    try {
      const made = await ask<SessionWithNotes>("POST", "/api/sessions", wanted);
      localStorage.setItem("folder", wanted.folder);
      if (wanted.agent) localStorage.setItem("agent", wanted.agent);
      sessions.value = new Map(sessions.value).set(made.session.id, made.session);
      for (const note of made.notes ?? []) notify(note, "note");
      creating.value = false;
      open(made.session.id);
    } catch (error) {
      setTrouble(troubleOf(error as Error, shownFields));
    }
    setBusy(false);
  };

  return (
    <form onSubmit={submit}>
      <h2 id="new-title">New session</h2>
      {of("top") ? (
        <p class="trouble" role="alert">
          {of("top")}
        </p>
      ) : null}
      <fieldset class="choice">
        <legend>Run</legend>
        <Choice name="what" value="agent" chosen={what} choose={setWhat} text="an agent" />
        <Choice name="what" value="command" chosen={what} choose={setWhat} text="a command" />
      </fieldset>
      {what === "agent" ? (
        <Select
          name="agent"
          label="Agent"
          options={agents}
          chosen={chosenOf(agents, agent, localStorage.getItem("agent"))}
          choose={setAgent}
          trouble={of("agent") || unknown}
          autoFocus
        />
      ) : (
        <Field
          name="command"
          label="Command"
          trouble={of("command")}
          hint="quoted as in a shell, but run without one"
          autoFocus
        />
      )}
      <Field
        name="folder"
        label="Folder"
        trouble={of("folder")}
        value={firstFolder()}
        hint="a full path on the hub's machine"
        required
      />
      <fieldset class="choice">
        <legend>Where</legend>
        <Choice name="place" value="folder" chosen={place} choose={setPlace} text="in the folder" />
        <Choice name="place" value="branch" chosen={place} choose={setPlace} text="in its own worktree" />
        <Choice name="place" value="workspace" chosen={place} choose={setPlace} text="in a workspace" />
      </fieldset>
      {place === "branch" ? <Field name="branch" label="Branch" trouble={of("branch")} required /> : null}
      {place === "workspace" ? <WorkspaceField trouble={of("workspace")} /> : null}
      <div class="two">
        <Field name="name" label="Name" trouble={of("name")} hint="optional" />
        <Select
          name="runtime"
          label="Runtime"
          options={runtimes}
          chosen={runtimeName}
          choose={setRuntime}
          trouble={of("runtime")}
        />
      </div>
      {inContainer ? (
        <Field name="image" label="Image" trouble={of("image")} hint="optional; must contain tmux and the agent" />
      ) : null}
      <Field name="prompt" label="First prompt" trouble={of("prompt")} hint="optional" long />
      <div class="buttons">
        <button type="button" onClick={() => (creating.value = false)}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={busy}>
          {busy ? "Starting…" : "Start"}
        </button>
      </div>
    </form>
  );
}

function WorkspaceField({ trouble }: { trouble: string }) {
  const { value = [] } = useFetched<WorkspaceView[]>("/api/workspaces", "");
  const names = value.filter((workspace) => workspace.removed_at === null).map((workspace) => workspace.name);
  return <Field name="workspace" label="Workspace" trouble={trouble} list={names} required />;
}

function Choice<T extends string>(of: { name: string; value: T; chosen: T; choose: (value: T) => void; text: string }) {
  return (
    <label>
      <input
        type="radio"
        name={of.name}
        value={of.value}
        checked={of.chosen === of.value}
        onChange={() => of.choose(of.value)}
      />
      {of.text}
    </label>
  );
}

/** Beside the field that the hub names, where the form shows it. */
function troubleOf(error: Error, shown: readonly FieldName[]): Trouble {
  const text = error.message;
  if (!(error instanceof ApiError)) return { field: "top", text };
  // an agent is a command, too
  const named = error.field === "command" ? shown[0] : shown.find((field) => field === error.field.split(".").at(-1));
  return named ? { field: named, text } : { field: "top", text: error.hint ? `${text}; ${error.hint}` : text };
}

function firstFolder(): string {
  return localStorage.getItem("folder") ?? [...sessions.value.values()].at(-1)?.workspace.path ?? "";
}
