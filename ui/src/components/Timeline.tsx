import { sessionPath } from "../api";
import { useFetched } from "../fetched";
import { replaying } from "../replay";
import { go } from "../router";
import type { Session, StoryLine } from "../shapes";
import { evidence, headline, runOf, said } from "../story";

/** The session's story, the latest first, with the evidence for each change. A click goes back to that moment. */
export function Timeline({ session }: { session: Session }) {
  const { value, trouble } = useFetched<StoryLine[]>(
    sessionPath(session.id, "story"),
    `${session.run} ${session.label} ${session.record}`,
  );
  if (trouble) return <p class="trouble">{trouble}</p>;
  return (
    <ol class="timeline">
      {[...(value ?? [])].reverse().map((line, at) => (
        <li key={(value?.length ?? 0) - at} class={typeof line["to"] === "string" ? `to-${line["to"]}` : ""}>
          <Headline session={session} line={line} />
          {said(line["reason"]) ? <p>{said(line["reason"])}</p> : null}
          <p class="evidence">{evidence(line)}</p>
        </li>
      ))}
    </ol>
  );
}

function Headline({ session, line }: { session: Session; line: StoryLine }) {
  const words = (
    <>
      <strong>{headline(line)}</strong>
      <time dateTime={line.at} title={line.at}>
        {new Date(line.at).toLocaleTimeString()}
      </time>
    </>
  );
  const run = runOf(line);
  if (run === 0) return <div class="moment">{words}</div>;
  const chosen = replaying.value?.session === session.id && replaying.value.at === line.at;
  return (
    <button
      type="button"
      class="moment"
      title="Replay the terminal from here"
      aria-current={chosen ? "true" : undefined}
      onClick={() => replay({ session: session.id, run, at: line.at })}
    >
      {words}
    </button>
  );
}

function replay(moment: { session: string; run: number; at: string }): void {
  replaying.value = moment;
  // there the panel covers what is replayed
  if (matchMedia("(max-width: 1000px)").matches) go({ panel: null });
}
