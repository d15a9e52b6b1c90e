import {
  ChevronLeft,
  CircleQuestionMark,
  CircleStop,
  Clock,
  Ellipsis,
  FileDiff,
  type IconNode,
  MessageSquare,
  SquareTerminal,
} from "lucide";
import { act, downloadRecording, renaming } from "../actions";
import { requestOf } from "../answers";
import { useCounted } from "../changes";
import { choicesOf, learnAgents } from "../handover";
import { offersOf } from "../offers";
import { go, type Panel } from "../router";
import { QUIET, WORKING } from "../sections";
import type { Session } from "../shapes";
import { inTerminal, labelOf, mayChange, now, panel, toggleTerminal } from "../store";
import { duration, secondsSince, whereabouts } from "../words";
import { Glyph, WORKS } from "./Dot";
import { Icon } from "./Icon";
import { Menu } from "./Menu";
import { Size } from "./Size";

const PANELS: [Panel, string, IconNode][] = [
  ["diff", "Diff", FileDiff],
  ["timeline", "Timeline", Clock],
  ["explain", "Why", CircleQuestionMark],
];

/** A session's head: which one it is and what it is to do; how it stands; and what can be done now. */
export function Toolbar({ session, onSearch }: { session: Session; onSearch: () => void }) {
  useCounted(session);
  const offers = mayChange.value ? offersOf(session) : [];
  const first = offers.find((_, at) => at === 0 && isOfNow(session));
  const rest = first ? offers.slice(1) : offers;
  return (
    <header class="toolbar">
      <button
        type="button"
        class="back icon"
        aria-label="Back to the list"
        onClick={() => go({ session: null, grid: false })}
      >
        <Icon of={ChevronLeft} size={20} />
      </button>
      <div class="title">
        <span class={`glyph ${session.colour}${session.glyph === WORKS ? " turning" : ""}`} aria-hidden="true">
          <Glyph of={session.glyph} />
        </span>
        <h2>{session.name}</h2>
        <span class="task" title={session.description}>
          {session.description}
        </span>
      </div>
      <div class="about">
        <span class={`label ${session.colour}`} title={labelOf(session)}>
          {labelOf(session)}
        </span>
        <span class="where" title={session.workspace.path}>
          {whereabouts(session)}
        </span>
        <Size session={session} />
        <Elapsed session={session} />
      </div>
      <div class="tools">
        {first ? (
          <button
            type="button"
            class={first.leads ? "first primary" : "first"}
            title={first.title}
            onClick={first.deed}
            data-action={first.name}
          >
            {first.word}
          </button>
        ) : null}
        {session.chat ? <ChatTools session={session} /> : null}
        {PANELS.map(([which, word, icon]) => (
          <button
            type="button"
            class="icon"
            key={which}
            aria-label={word}
            title={word}
            aria-pressed={panel.value === which}
            onClick={() => go({ panel: panel.value === which ? null : which })}
          >
            <Icon of={icon} size={18} />
          </button>
        ))}
        <Menu
          label={`More for ${session.name}`}
          sign={<Icon of={Ellipsis} size={18} />}
          onOpen={() => void learnAgents()}
        >
          {rest
            .filter(({ name }) => name !== "explain" && name !== "review")
            .map(({ name, word, title, danger, deed }) => (
              <button
                type="button"
                key={name}
                class={danger ? "danger" : ""}
                title={title}
                onClick={deed}
                data-action={name}
              >
                {word}
              </button>
            ))}
          {mayChange.value
            ? choicesOf(session).map(({ word, title, deed }) => (
                <button type="button" key={word} title={title} onClick={deed}>
                  {word}
                </button>
              ))
            : null}
          {mayChange.value ? (
            <button type="button" onClick={() => (renaming.value = session)}>
              Rename…
            </button>
          ) : null}
          {session.chat && !inTerminal.value.has(session.id) ? null : (
            <button type="button" onClick={onSearch}>
              Search the terminal
            </button>
          )}
          <button type="button" onClick={() => void downloadRecording(session)}>
            Download the recording
          </button>
        </Menu>
      </div>
    </header>
  );
}

/** Whether its first action is what a person would do now. One that works is left to it; what is asked has its own buttons. */
const isOfNow = (session: Session): boolean =>
  session.section !== WORKING && session.section !== QUIET && !requestOf(session);

/** How long its run has gone on. */
function Elapsed({ session }: { session: Session }) {
  if (!session.started_at || !session.live) return null;
  return (
    <span class="elapsed" title={`run ${session.run}`}>
      {duration(secondsSince(session.started_at, now.value))}
    </span>
  );
}

/** Of a session that has a chat: interrupt the agent, and look at its terminal instead. */
function ChatTools({ session }: { session: Session }) {
  const terminal = inTerminal.value.has(session.id);
  return (
    <>
      {mayChange.value && session.attention === "working" ? (
        <button
          type="button"
          class="icon"
          aria-label="Interrupt"
          title="Interrupt the agent (Ctrl-C)"
          onClick={() => void act(session, "interrupt")}
        >
          <Icon of={CircleStop} size={18} />
        </button>
      ) : null}
      <button
        type="button"
        class="icon"
        aria-label={terminal ? "Chat" : "Terminal"}
        title={terminal ? "Chat" : "Terminal"}
        onClick={() => toggleTerminal(session.id)}
      >
        <Icon of={terminal ? MessageSquare : SquareTerminal} size={18} />
      </button>
    </>
  );
}
