import { X } from "lucide";
import type { FunctionComponent } from "preact";
import { useLater } from "../later";
import { go, type Panel } from "../router";
import type { Session } from "../shapes";
import { Icon } from "./Icon";

const TITLES: Record<Panel, string> = { explain: "Why this status", timeline: "Timeline", diff: "Changes" };

type Props = { session: Session };
const LOADS: Record<Panel, () => Promise<FunctionComponent<Props>>> = {
  explain: () => import("./ExplainPanel").then((found) => found.ExplainPanel),
  timeline: () => import("./Timeline").then((found) => found.Timeline),
  diff: () => import("./DiffPanel").then((found) => found.DiffPanel),
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
        <Body key={`${which} ${session.id}`} session={session} which={which} />
      </div>
    </aside>
  );
}

function Body({ session, which }: Props & { which: Panel }) {
  const Found = useLater<Props>(true, TITLES[which], LOADS[which]);
  return Found ? <Found session={session} /> : null;
}
