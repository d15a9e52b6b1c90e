import { signOut } from "../actions";
import { go } from "../router";
import { count, creating, filter, known, link, listed, owner, record, showArchived } from "../store";
import { SessionRow } from "./SessionRow";

export function SessionList() {
  const found = listed.value;
  return (
    <aside class="list" aria-label="Sessions">
      <header class="list-head">
        <h1>Hitchpost</h1>
        <span
          class="badge"
          role="img"
          title="active and suspended sessions"
          aria-label={`${count.value} active and suspended sessions`}
        >
          {count.value}
        </span>
        <span class={`link ${link.value}`} title={LINK_WORDS[link.value]} aria-hidden="true" />
        {owner.value ? (
          <button type="button" class="primary" onClick={() => (creating.value = true)}>
            New
          </button>
        ) : null}
      </header>
      <div class="filters">
        <select
          aria-label="Records"
          title="Which records to list; current means active or suspended"
          value={record.value}
          onChange={(event) => (record.value = event.currentTarget.value)}
        >
          <option value="">current</option>
          {RECORDS.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <input
          class="filter"
          type="search"
          placeholder="Filter"
          aria-label="Filter sessions"
          value={filter.value}
          onInput={(event) => (filter.value = event.currentTarget.value)}
        />
      </div>
      <ul class="rows" onKeyDown={walk}>
        {found.map((session) => (
          <SessionRow key={session.id} session={session} />
        ))}
      </ul>
      {known.value && found.length === 0 ? (
        <p class="nothing">{filter.value || record.value ? "No matches." : "No sessions."}</p>
      ) : null}
      <footer class="list-foot">
        <label class="archived-toggle">
          <input
            type="checkbox"
            checked={showArchived.value}
            onChange={(event) => (showArchived.value = event.currentTarget.checked)}
          />
          Show archived
        </label>
        <button
          type="button"
          aria-label="Keys and settings"
          title="Keys and settings (?)"
          onClick={() => go({ settings: true })}
        >
          ?
        </button>
        <button type="button" class="sign-out" onClick={() => void signOut()}>
          Sign out
        </button>
      </footer>
    </aside>
  );
}

const RECORDS = ["active", "suspended", "archived", "error"];
const LINK_WORDS = {
  connecting: "connecting",
  open: "connected",
  lost: "connection lost",
  refused: "signed out",
  stranger: "the server has not proved that it is your hub",
};

/** Arrow keys, Home and End go through the rows. */
function walk(event: KeyboardEvent & { currentTarget: HTMLUListElement }): void {
  const rows = [...event.currentTarget.querySelectorAll<HTMLElement>(".open-session")];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
  if (to === undefined || !rows[to]) return;
  event.preventDefault();
  rows[to].focus();
}
