import { requestOf } from "../answers";
import { change } from "../draft";
import { offersOf } from "../offers";
import { needYou, projects, usual, working } from "../rail";
import { byState, FINISHED, inOrder, NEEDS_YOU } from "../sections";
import type { Session } from "../shapes";
import { count, creating, hasPods, known, mayBegin, mayChange, open } from "../store";
import { isAddress, MOST_PROJECTS } from "../wish";
import { whereabouts } from "../words";
import { Answers } from "./Answers";
import { Dot } from "./Dot";
import { Detail, Since } from "./SessionRow";
import { Size } from "./Size";

const MOST_CARDS = 6;
const MOST_FINISHED = 5;

/** What a person comes for, when no session is open: who needs them, what is done, and where to go on. */
export function Home() {
  if (!known.value) return <div class="home" />;
  if (count.value === 0) return <Empty />;
  return (
    <div class="home">
      <div class="home-page">
        <Needing />
        <Finished />
        <Projects />
      </div>
    </div>
  );
}

function Empty() {
  return (
    <div class="home empty">
      <p>There are no sessions yet.</p>
      {mayBegin.value ? (
        <button type="button" class="primary" onClick={() => (creating.value = true)}>
          New session
        </button>
      ) : null}
    </div>
  );
}

function Needing() {
  const part = byState(needYou.value)[0];
  const all = part?.key === NEEDS_YOU ? part.rows : [];
  const rest = needYou.value.length - Math.min(all.length, MOST_CARDS);
  return (
    <section aria-labelledby="home-needs">
      <h2 id="home-needs">{all.length > 0 ? "Needs you" : "Nothing needs you"}</h2>
      {all.length === 0 ? (
        <p class="quiet">{working.value > 0 ? `${working.value} working.` : "Nobody is working."}</p>
      ) : (
        <ul class="cards">
          {all.slice(0, MOST_CARDS).map((session) => (
            <Card key={session.id} session={session} />
          ))}
        </ul>
      )}
      {rest > 0 ? <p class="quiet">{rest} more in the list.</p> : null}
    </section>
  );
}

function Card({ session }: { session: Session }) {
  const first = mayChange.value ? offersOf(session)[0] : undefined;
  return (
    <li class={`card ${session.colour}`} data-session={session.id}>
      <header>
        <Dot session={session} sign />
        <button type="button" class="card-name" onClick={() => open(session.id)}>
          {session.name}
        </button>
        <Since since={session.since} />
      </header>
      <p class="asks">
        <span class={`word ${session.colour}`}>{session.headline}</span>
        <Detail session={session} />
      </p>
      <footer>
        <span class="where" title={session.workspace.path}>
          {whereabouts(session)} <Size session={session} />
        </span>
        <Answers session={session} />
        {requestOf(session) && mayChange.value ? null : (
          <button type="button" onClick={first?.deed ?? (() => open(session.id))}>
            {first?.word ?? "Open"}
          </button>
        )}
      </footer>
    </li>
  );
}

function Finished() {
  const all = inOrder(usual.value.filter((session) => session.section === FINISHED));
  if (all.length === 0) return null;
  return (
    <section aria-labelledby="home-finished">
      <h2 id="home-finished">Finished</h2>
      <ul class="lines">
        {all.slice(0, MOST_FINISHED).map((session) => {
          const first = mayChange.value ? offersOf(session)[0] : undefined;
          return (
            <li key={session.id}>
              <Dot session={session} sign />
              <button type="button" class="card-name" onClick={() => open(session.id)}>
                {session.name}
              </button>
              <Detail session={session} />
              <span class="where">
                {whereabouts(session)} <Size session={session} />
              </span>
              <Since since={session.since} />
              {first?.name === "review" ? (
                <button type="button" onClick={first.deed}>
                  {first.word}
                </button>
              ) : null}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function Projects() {
  const all = projects.value.filter(({ path }) => isAddress(path) === hasPods.value).slice(0, MOST_PROJECTS);
  if (!mayBegin.value) return null;
  const begin = (path?: string) => {
    if (path) change(hasPods.value ? { repo: path } : { folder: path });
    creating.value = true;
  };
  return (
    <section aria-labelledby="home-new">
      <h2 id="home-new">Start something</h2>
      <ul class="starts">
        {all.map(({ path, name }) => (
          <li key={path}>
            <button type="button" title={path} onClick={() => begin(path)}>
              New in {name}
            </button>
          </li>
        ))}
        <li>
          <button type="button" onClick={() => begin()}>
            New session…
          </button>
        </li>
      </ul>
    </section>
  );
}
