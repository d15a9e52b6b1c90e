import { go } from "../router";
import { labelOf, sessions, tabs } from "../store";
import { Dot } from "./Dot";
import { EndBar } from "./EndBar";
import { TerminalBox } from "./TerminalBox";

/** Every open terminal at once. */
export function Grid() {
  const found = tabs.value.flatMap((id) => sessions.value.get(id) ?? []);
  const columns = Math.ceil(Math.sqrt(found.length));
  return (
    <div class="grid" style={{ "--columns": columns }}>
      {found.map((one) => (
        <section key={one.id} class="cell" aria-label={one.name} data-session={one.id}>
          <header>
            <Dot session={one} />
            <button type="button" class="cell-name" onClick={() => go({ session: one.id, grid: false })}>
              {one.name}
            </button>
            <span class={`label ${one.colour}`}>{labelOf(one)}</span>
          </header>
          <TerminalBox id={one.id} name={one.name} focus={false} />
          <EndBar session={one} />
        </section>
      ))}
    </div>
  );
}
