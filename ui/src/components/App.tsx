import { current, grid, known, link, role, shown, tabs } from "../store";
import { BottomBar } from "./BottomBar";
import { Confirm } from "./Confirm";
import { Grid } from "./Grid";
import { NewSession } from "./NewSession";
import { Notices } from "./Notices";
import { Rename } from "./Rename";
import { SessionList } from "./SessionList";
import { SessionPane } from "./SessionPane";
import { Settings } from "./Settings";
import { SignIn } from "./SignIn";
import { Tabs } from "./Tabs";
import { Welcome } from "./Welcome";

export function App() {
  if (role.value === null) return <SignIn />;
  const session = shown.value;
  const inGrid = grid.value && tabs.value.length > 0;
  return (
    <div class="app" data-at={current.value === null && !inGrid ? "list" : "session"}>
      <LostLink />
      <SessionList />
      <main class="stage">
        <Tabs />
        {inGrid ? <Grid /> : session ? <SessionPane key={session.id} session={session} /> : <Welcome />}
      </main>
      <BottomBar />
      <NewSession />
      <Confirm />
      <Rename />
      <Settings />
      <Notices />
    </div>
  );
}

const LINK_TEXTS: Record<string, string> = {
  lost: "Connection to the hub lost. Reconnecting; your sessions keep running.",
  stranger:
    "The server at this address has not proved that it is your hub, so this page has sent it nothing. " +
    "Run `hitch up` and open the link that it prints; your sessions keep running.",
  refused: "You are signed out. Run `hitch up` for a new link; your sessions keep running.",
};

const NO_HUB = "Cannot reach the hub. Retrying; hitch up starts it. Your sessions keep running.";

function LostLink() {
  const text = link.value === "lost" && !known.value ? NO_HUB : (LINK_TEXTS[link.value] ?? "");
  return (
    <div class="lost-link" role="status" hidden={!text}>
      {text}
    </div>
  );
}
