import { go, type Panel } from "../router";
import type { Session } from "../shapes";
import { DiffPanel } from "./DiffPanel";
import { ExplainPanel } from "./ExplainPanel";
import { Timeline } from "./Timeline";

const TITLES: Record<Panel, string> = { explain: "Why this status", timeline: "Timeline", diff: "Changes" };

export function SidePanel({ session, which }: { session: Session; which: Panel }) {
  const Body = { explain: ExplainPanel, timeline: Timeline, diff: DiffPanel }[which];
  return (
    <aside class="side-panel" aria-label={TITLES[which]}>
      <header>
        <h2>{TITLES[which]}</h2>
        <button type="button" aria-label="Close the panel" onClick={() => go({ panel: null })}>
          ×
        </button>
      </header>
      <div class="panel-body">
        <Body key={session.id} session={session} />
      </div>
    </aside>
  );
}
