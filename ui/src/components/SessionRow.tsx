import type { Session } from "../shapes";
import { current, labelOf, now, open } from "../store";
import { duration, secondsSince, whereabouts } from "../words";
import { Answers } from "./Answers";
import { Dot } from "./Dot";
import { Headline } from "./Headline";

export function SessionRow({ session }: { session: Session }) {
  const chosen = current.value === session.id;
  return (
    <li class={chosen ? "row chosen" : "row"} data-session={session.id} data-record={session.record}>
      <Dot session={session} />
      <button
        type="button"
        class="open-session"
        aria-current={chosen ? "true" : undefined}
        onClick={() => open(session.id)}
      >
        <span class="name" title={session.description || session.name}>
          {session.name}
        </span>
        <span class="where" title={session.workspace.path}>
          {whereabouts(session)}
        </span>
        <Since session={session} />
        <span class={`label ${session.colour}`} title={labelOf(session)}>
          {labelOf(session)}
        </span>
        <Headline session={session} />
      </button>
      <Answers session={session} />
    </li>
  );
}

function Since({ session }: { session: Session }) {
  return (
    <span class="since" title="time in this status">
      {session.state_changed_at ? duration(secondsSince(session.state_changed_at, now.value)) : ""}
    </span>
  );
}
