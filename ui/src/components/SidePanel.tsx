import { X } from "lucide";
import type { FunctionComponent } from "preact";
import { Part } from "../later";
import { go, type Panel } from "../router";
import type { Session } from "../shapes";
import { Icon } from "./Icon";
import { Later } from "./Later";

const TITLES: Record<Panel, string> = { explain: "Why this status", timeline: "Timeline", diff: "Changes" };

type Props = { session: Session };
const PARTS: Record<Panel, Part<FunctionComponent<Props>>> = {
  explain: new Part(() => import("./ExplainPanel").then((found) => found.ExplainPanel)),
  timeline: new Part(() => import("./Timeline").then((found) => found.Timeline)),
  diff: new Part(() => import("./DiffPanel").then((found) => found.DiffPanel)),
};

/** A drawer over the terminal, which keeps its size: an agent is not resized because somebody looks at something. */
export function SidePanel({ session, which }: { session: Session; which: Panel }) {
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
        <Later key={`${which} ${session.id}`} part={PARTS[which]} of={{ session }} />
      </div>
    </aside>
  );
}
