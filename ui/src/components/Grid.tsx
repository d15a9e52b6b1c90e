import { go } from "../router";
import { labelOf, sessions, tabs } from "../store";
import { Dot } from "./Dot";
import { EndBar } from "./EndBar";
import { HeadlineBar } from "./Headline";
import { TerminalBox } from "./TerminalBox";

/** Every open terminal at once. */
export function Grid() {
  const found = tabs.value.flatMap((id) => sessions.value.get(id) ?? []);
  const columns = Math.ceil(Math.sqrt(found.length));
  return (
    <div class="grid" style={{ "--columns": columns }}>
      {found.map((session) => (
        <section key={session.id} class="cell" aria-label={session.name} data-session={session.id}>
          <header>
            <Dot session={session} />
            <button type="button" class="cell-name" onClick={() => go({ session: session.id, grid: false })}>
              {session.name}
            </button>
            <span class={`label ${session.colour}`}>{labelOf(session)}</span>
          </header>
          <HeadlineBar session={session} />
          <TerminalBox id={session.id} name={session.name} focus={false} />
          <EndBar session={session} />
        </section>
      ))}
    </div>
  );
}
