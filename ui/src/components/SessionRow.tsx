import { useRef } from "preact/hooks";
import { change } from "../deeds";
import { menuOf, renaming, select, selectTo } from "../rail";
import type { Session } from "../shapes";
import { labelOf, minute, now, open, owner } from "../store";
import { elapsed, secondsSince, whereabouts } from "../words";
import { Answers } from "./Answers";
import { Dot, NEWS } from "./Dot";

interface Props {
  session: Session;
  chosen: boolean;
  picked: boolean;
  /** Whether several are being selected. */
  picking: boolean;
  naming: boolean;
}

/** Three lines: who, what it wants, and where it works. A row is drawn again only when its own session has changed. */
export function SessionRow({ session, chosen, picked, picking, naming }: Props) {
  const mine = owner.value;
  const flashes = useChanges(`${session.headline} ${session.section} ${session.run}`);
  const onClick = (event: MouseEvent) => {
    if (event.shiftKey && picking) selectTo(session.id);
    else if ((event.ctrlKey || event.metaKey) && mine) select(session.id, !picked);
    else open(session.id);
  };
  const rename = () => {
    if (mine) renaming.value = session.id;
  };
  const showMenu = (event: MouseEvent) => {
    if (!mine) return;
    event.preventDefault();
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const atButton = event.type === "click";
    menuOf.value = { id: session.id, x: atButton ? box.left : event.clientX, y: atButton ? box.bottom : event.clientY };
  };
  return (
    <li
      class={`row${chosen ? " chosen" : ""}${picked ? " picked" : ""}`}
      data-session={session.id}
      data-record={session.record}
      onContextMenu={showMenu}
    >
      {flashes > 0 ? <span key={flashes} class="flash" aria-hidden="true" /> : null}
      {picking ? (
        <input
          type="checkbox"
          class="pick"
          aria-label={`Select ${session.name}`}
          checked={picked}
          onChange={(event) => select(session.id, event.currentTarget.checked)}
        />
      ) : (
        <Dot session={session} sign />
      )}
      {naming ? <Rename session={session} /> : null}
      <button
        type="button"
        class="open-session"
        aria-current={chosen ? "true" : undefined}
        hidden={naming}
        onClick={onClick}
        onDblClick={rename}
      >
        <span class="name" title={session.description || session.name}>
          {session.name}
        </span>
        {session.pinned ? (
          <span class="pinned" role="img" aria-label="pinned" title="Pinned">
            ◆
          </span>
        ) : null}
        <Since since={session.since} />
        <Label session={session} />
        <span
          class="headline"
          title={[session.headline, session.report?.message ?? session.detail].filter(Boolean).join(": ")}
        >
          <span class={session.rank <= NEWS ? `word ${session.colour}` : "word"}>{session.headline}</span>{" "}
          {session.detail || session.description ? (
            <span class={session.detail ? "detail" : "detail task"}>{session.detail || session.description}</span>
          ) : null}
        </span>
        <span class="where" title={session.workspace.path}>
          {whereabouts(session)}
        </span>
      </button>
      {mine ? (
        <button type="button" class="row-more" aria-label={`Menu of ${session.name}`} onClick={showMenu}>
          ⋯
        </button>
      ) : null}
      <Answers session={session} />
    </li>
  );
}

/** The status, as `hitch ps` has it, for those who hear the list. */
function Label({ session }: { session: Session }) {
  return <span class={`label ${session.colour}`}>{labelOf(session)}</span>;
}

/** How long the headline has been so. Only a young one counts seconds. */
export function Since({ since }: { since: string | null }) {
  if (!since) return <span class="since" />;
  const old = secondsSince(since, Math.max(minute.value, now.peek()));
  const age = old < 60 ? secondsSince(since, now.value) : old;
  return (
    <span class="since" title={`since ${new Date(since).toLocaleString()}`}>
      {elapsed(age)}
    </span>
  );
}

function Rename({ session }: { session: Session }) {
  const over = useRef(false);
  const end = (name: string | undefined) => {
    if (over.current) return;
    over.current = true;
    renaming.value = "";
    if (name && name !== session.name) void change(session, { name });
  };
  return (
    <input
      class="rename"
      aria-label={`New name of ${session.name}`}
      defaultValue={session.name}
      autoFocus
      maxLength={128}
      ref={(input) => {
        if (input && document.activeElement !== input) {
          input.focus();
          input.select();
        }
      }}
      onBlur={(event) => end(event.currentTarget.value.trim())}
      onKeyDown={(event) => {
        if (event.key === "Enter" && !event.isComposing) end(event.currentTarget.value.trim());
        if (event.key === "Escape") end(undefined);
        event.stopPropagation();
      }}
    />
  );
}

/** How often `text` has changed since the row is there. */
function useChanges(text: string): number {
  const seen = useRef({ text, count: 0 });
  if (seen.current.text !== text) seen.current = { text, count: seen.current.count + 1 };
  return seen.current.count;
}
