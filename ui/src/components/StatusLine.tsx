import { signOut } from "../actions";
import { useFetched } from "../fetched";
import { needYou, working } from "../rail";
import { go } from "../router";
import type { Health } from "../shapes";
import { link } from "../store";

const LINK_WORDS = {
  connecting: "connecting",
  open: "connected",
  lost: "connection lost",
  refused: "signed out",
  stranger: "the server has not proved that it is your hub",
};

/** At the bottom of the page: whether the hub is there, which one, and how much there is to do. */
export function StatusLine() {
  const [need, busy] = [needYou.value.length, working.value];
  return (
    <footer class="status-line">
      <span class={`link ${link.value}`} aria-hidden="true" />
      <span>{LINK_WORDS[link.value]}</span>
      <span class="host">{location.host}</span>
      {link.value === "open" ? <Version /> : null}
      <span class="tally">
        <span class={need > 0 ? "needs" : ""}>{need === 1 ? "1 needs you" : `${need} need you`}</span>, {busy} working
      </span>
      <button
        type="button"
        aria-label="Settings and keys"
        title="Settings and keys (?)"
        onClick={() => go({ settings: true })}
      >
        ?
      </button>
      <button type="button" class="sign-out" onClick={() => void signOut()}>
        Sign out
      </button>
    </footer>
  );
}

function Version() {
  const { value } = useFetched<Health>("/api/health", "");
  return value ? <span class="version">{value.version}</span> : null;
}
