import { X } from "lucide";
import { go, type Panel } from "../router";
import type { Session } from "../shapes";
import { DiffPanel } from "./DiffPanel";
import { ExplainPanel } from "./ExplainPanel";
import { Icon } from "./Icon";
import { Timeline } from "./Timeline";

const TITLES: Record<Panel, string> = { explain: "Why this status", timeline: "Timeline", diff: "Changes" };

/** A drawer over the terminal, which keeps its size: an agent is not resized because somebody looks at something. */
export function SidePanel({ session, which }: { session: Session; which: Panel }) {
  const Body = { explain: ExplainPanel, timeline: Timeline, diff: DiffPanel }[which];
  const close = () => go({ panel: null });
  return (
    <aside
      class="side-panel"
      data-panel={which}
      aria-label={TITLES[which]}
      onKeyDown={(event) => {
        // a dialog that was opened here closes itself
        if (event.key === "Escape" && !(event.target as Element).closest("dialog")) close();
      }}
    >
      <header>
        <h2>{TITLES[which]}</h2>
        <button type="button" class="icon" aria-label="Close the panel" onClick={close}>
          <Icon of={X} />
        </button>
      </header>
      <div class="panel-body">
        <Body key={session.id} session={session} />
      </div>
    </aside>
  );
}
