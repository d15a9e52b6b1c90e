import { useRef } from "preact/hooks";
import { renaming } from "../actions";
import { requestOf } from "../answers";
import { menuOf, select, selectTo } from "../rail";
import { NEWS, type Session } from "../shapes";
import { labelOf, mayChange, minute, now, open } from "../store";
import { elapsed, secondsSince, whereabouts } from "../words";
import { Answers } from "./Answers";
import { Dot } from "./Dot";
import { Size } from "./Size";

interface Props {
  session: Session;
  chosen: boolean;
  picked: boolean;
  /** Whether several are being selected. */
  picking: boolean;
}

/** Three lines: who, what it wants, and where it works. A row is drawn again only when its own session has changed. */
export function SessionRow({ session, chosen, picked, picking }: Props) {
  const mine = mayChange.value;
  const flashes = useChanges(`${session.headline} ${session.section} ${session.run}`);
  const onClick = (event: MouseEvent) => {
    if (event.shiftKey && picking) selectTo(session.id, drawn());
    else if ((event.ctrlKey || event.metaKey) && mine) select(session.id, !picked);
    else open(session.id);
  };
  const rename = () => {
    if (mine) renaming.value = session;
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
      class={`row${chosen ? " chosen" : ""}${picked ? " picked" : ""}${mine && requestOf(session) ? " asks" : ""}`}
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
      <button
        type="button"
        class="open-session"
        aria-current={chosen ? "true" : undefined}
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
          <Detail session={session} />
        </span>
        <span class="where" title={session.workspace.path}>
          {whereabouts(session)} <Size session={session} />
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

/** What it says; else what it was told to do, which is no news and so is called by its name. */
export function Detail({ session }: { session: Session }) {
  if (session.detail) return <span class="detail">{session.detail}</span>;
  return session.description ? <span class="detail task">Task: {session.description}</span> : null;
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

/** In their order, those of which there is a row. */
const drawn = (): string[] =>
  [...document.querySelectorAll<HTMLElement>(".list .row")].map((row) => row.dataset["session"] ?? "");

/** How often `text` has changed since the row is there. */
function useChanges(text: string): number {
  const seen = useRef({ text, count: 0 });
  if (seen.current.text !== text) seen.current = { text, count: seen.current.count + 1 };
  return seen.current.count;
}
