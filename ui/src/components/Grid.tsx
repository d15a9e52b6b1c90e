import "../style/grid.css";
import { useEffect, useRef } from "preact/hooks";
import { requestOf } from "../answers";
import { Picture } from "../pictures";
import { filter, listed } from "../rail";
import { go } from "../router";
import { NEEDS_YOU } from "../sections";
import type { Session } from "../shapes";
import { labelOf, tabs } from "../store";
import { Dot } from "./Dot";
import { HeadlineBar } from "./Headline";
import { Since } from "./SessionRow";

/** The screens of all that live, or of all that the filter finds, where they were the last time. A click opens one. */
export function Grid() {
  const found = listed.value.filter((session) => session.live || filter.value.trim() !== "");
  found.sort((a, b) => a.index - b.index);
  if (found.length === 0) return <p class="no-grid">No session is running.</p>;
  return (
    <div class="grid" style={{ "--columns": Math.ceil(Math.sqrt(found.length)) }}>
      {found.map((session) => (
        <Cell key={session.id} session={session} />
      ))}
    </div>
  );
}

function Cell({ session }: { session: Session }) {
  return (
    <section class={`cell ${session.colour}`} aria-label={session.name} data-session={session.id}>
      <header>
        <Dot session={session} />
        <button
          type="button"
          class="cell-name"
          title={`Open ${session.name}`}
          onClick={() => go({ session: session.id, grid: false })}
        >
          {session.name}
        </button>
        <span class={`label ${session.colour}`} title={labelOf(session)}>
          {session.headline} <Since since={session.since} />
        </span>
      </header>
      <Screen session={session} hasTab={tabs.value.includes(session.id)} />
      {session.section === NEEDS_YOU && (session.detail || requestOf(session)) ? (
        <HeadlineBar session={session} />
      ) : null}
    </section>
  );
}

function Screen({ session, hasTab }: { session: Session; hasTab: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const picture = new Picture(session.id, box.current!);
    return () => picture.close();
  }, [session.id, hasTab]);
  return <div class="picture" ref={box} role="group" aria-label={`Screen of ${session.name}`} />;
}
