import { current, grid, known, link, role, shown } from "../store";
import { BottomBar } from "./BottomBar";
import { Confirm } from "./Confirm";
import { Grid } from "./Grid";
import { Home } from "./Home";
import { NewSession } from "./NewSession";
import { Notices } from "./Notices";
import { Palette } from "./Palette";
import { Rename } from "./Rename";
import { SessionList } from "./SessionList";
import { SessionPane } from "./SessionPane";
import { Settings } from "./Settings";
import { SignIn } from "./SignIn";
import { StatusLine } from "./StatusLine";
import { Tabs } from "./Tabs";
import { UsageView } from "./UsageView";

export function App() {
  if (role.value === null) return <SignIn />;
  const session = shown.value;
  const inGrid = grid.value;
  return (
    <div class="app" data-at={current.value === null && !inGrid ? "list" : "session"}>
      <LostLink />
      <SessionList />
      <main class="stage">
        <Tabs />
        {inGrid ? <Grid /> : session ? <SessionPane key={session.id} session={session} /> : <Home />}
      </main>
      <StatusLine />
      <BottomBar />
      <NewSession />
      <Palette />
      <Confirm />
      <Rename />
      <Settings />
      <UsageView />
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
