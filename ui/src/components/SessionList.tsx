import { useEffect, useRef, useState } from "preact/hooks";
import { canBeSeen, markAllSeen } from "../deeds";
import {
  compact,
  filter,
  fold,
  hold,
  isCalm,
  isFolded,
  letGo,
  listed,
  only,
  onlyProject,
  parts,
  projects,
  record,
  STEP,
  selected,
  unfolded,
  waits,
} from "../rail";
import { go } from "../router";
import { hasFailed, type Part } from "../sections";
import type { Session } from "../shapes";
import { count, creating, current, known, mayBegin, mayChange } from "../store";
import { RowMenu } from "./RowMenu";
import { SelectionBar } from "./SelectionBar";
import { SessionRow } from "./SessionRow";
import { ViewMenu } from "./ViewMenu";

export function SessionList() {
  const shown = only.value ? parts.value.filter((part) => part.key === only.value) : parts.value;
  return (
    <aside class="list" aria-label="Sessions">
      <header class="list-head">
        <h1>
          <button type="button" class="brand" title="Home" onClick={() => go({ session: null, grid: false })}>
            Hitchpost
          </button>
        </h1>
        <span
          class="badge"
          role="img"
          title="active and suspended sessions"
          aria-label={`${count.value} active and suspended sessions`}
        >
          {count.value}
        </span>
        {mayBegin.value ? (
          <button type="button" class="primary" onClick={() => (creating.value = true)}>
            New
          </button>
        ) : null}
      </header>
      <div class="rail-tools">
        <select
          aria-label="Project"
          title="List the sessions of one repository or folder"
          value={onlyProject.value}
          onChange={(event) => (onlyProject.value = event.currentTarget.value)}
        >
          <option value="">All projects</option>
          {projects.value.map(({ path, name, live }) => (
            <option key={path} value={path} title={path}>
              {live > 0 ? `${name} (${live})` : name}
            </option>
          ))}
        </select>
        <ViewMenu />
      </div>
      <div class="finder">
        <input
          class="filter"
          type="search"
          placeholder="Search"
          aria-label="Filter sessions"
          value={filter.value}
          onInput={(event) => (filter.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Escape" || !filter.value) return;
            filter.value = "";
            event.preventDefault();
          }}
        />
        <button
          type="button"
          class="palette-hint"
          title="Sessions and commands (Ctrl K)"
          onClick={() => go({ palette: true })}
        >
          Ctrl K<span class="heard"> Commands</span>
        </button>
      </div>
      <Only />
      {/* biome-ignore lint/a11y/noStaticElementInteractions: what it hears comes from the rows in it */}
      <div
        class={`rows${compact.value ? " compact" : ""}${isCalm.value ? " calm" : ""}`}
        onKeyDown={walk}
        onPointerMove={hold}
        onPointerLeave={letGo}
      >
        {shown.map((part) => (
          <PartView key={part.key} part={part} />
        ))}
        {known.value && listed.value.length === 0 ? (
          <p class="nothing">{filter.value || record.value || onlyProject.value ? "No matches." : "No sessions."}</p>
        ) : null}
      </div>
      {waits.value ? (
        <button type="button" class="waits" onClick={letGo}>
          The list has changed. Show it
        </button>
      ) : null}
      <SelectionBar />
      <RowMenu />
    </aside>
  );
}

function Only() {
  const part = parts.value.find(({ key }) => key === only.value);
  if (!only.value) return null;
  return (
    <button type="button" class="only" onClick={() => (only.value = "")}>
      Only {part?.title ?? "nothing"} <span aria-hidden="true">×</span>
      <span class="heard"> Show all</span>
    </button>
  );
}

function PartView({ part }: { part: Part }) {
  const closed = isFolded(part.key);
  // the session that is open is listed, whatever is folded
  const at = closed ? part.rows.find((session) => session.id === current.value) : undefined;
  return (
    <section class="part" data-part={part.key} aria-label={part.title}>
      <h2 class="part-head">
        <button
          type="button"
          class="fold"
          aria-expanded={!closed}
          title={part.hint || undefined}
          onClick={() => fold(part.key)}
        >
          {part.title}
        </button>
        <button
          type="button"
          class="count"
          aria-pressed={only.value === part.key}
          aria-label={`Only ${part.title}: ${part.count}`}
          title={`Only ${part.title}`}
          onClick={() => (only.value = only.value === part.key ? "" : part.key)}
        >
          {part.count}
        </button>
      </h2>
      {closed ? at ? <Rows sessions={[at]} /> : null : <Rows sessions={part.rows} />}
      {!closed && part.rest.length > 0 ? <Rest part={part} /> : null}
    </section>
  );
}

/** Those that are listed only for who asks. */
function Rest({ part }: { part: Part }) {
  const asked = unfolded.value.has(part.key) || filter.value.trim() !== "";
  const failed = [...part.rows, ...part.rest].filter((session) => hasFailed(session) && canBeSeen(session));
  const toggle = () => {
    const next = new Set(unfolded.value);
    if (!next.delete(part.key)) next.add(part.key);
    unfolded.value = next;
  };
  const at = asked ? undefined : part.rest.find((session) => session.id === current.value);
  return (
    <>
      {asked ? <Rows sessions={part.rest} /> : at ? <Rows sessions={[at]} /> : null}
      <div class="rest">
        <button type="button" class="fold" aria-expanded={asked} onClick={toggle}>
          {asked ? `Fewer` : `${part.rest.length} ${part.restWord}`}
        </button>
        {failed.length > 0 && mayChange.value ? (
          <button type="button" class="all-seen" onClick={() => markAllSeen(failed)}>
            Mark all as seen
          </button>
        ) : null}
      </div>
    </>
  );
}

function Rows({ sessions }: { sessions: readonly Session[] }) {
  const [most, setMost] = useState(STEP);
  const picking = selected.value.size > 0;
  return (
    <>
      <ul>
        {sessions.slice(0, most).map((session) => (
          <SessionRow
            key={session.id}
            session={session}
            chosen={current.value === session.id}
            picked={selected.value.has(session.id)}
            picking={picking}
          />
        ))}
      </ul>
      {sessions.length > most ? <More left={sessions.length - most} show={() => setMost(most + STEP)} /> : null}
    </>
  );
}

/** Draws more when somebody has come this far. */
function More({ left, show }: { left: number; show: () => void }) {
  const box = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const observer = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && show(), {
      rootMargin: "200px",
    });
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, [left]);
  return (
    <button type="button" class="more" ref={box} onClick={show}>
      {left} more
    </button>
  );
}

/** Arrow keys, Home and End go through the rows. */
function walk(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const rows = [...event.currentTarget.querySelectorAll<HTMLElement>(".open-session")];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
  if (to === undefined || !rows[to] || (event.target as HTMLElement).matches("input")) return;
  event.preventDefault();
  rows[to].focus();
}
