import "../style/timeline.css";
import { sessionPath } from "../api";
import { useFetched } from "../fetched";
import { type Moment, replaying } from "../replay";
import { go } from "../router";
import type { Session, StoryLine } from "../shapes";
import { type RunSpan, type Sign, signsOf, spansOf } from "../spans";
import { now } from "../store";
import { content, endsRun, evidence, headline, runOf } from "../story";
import { duration } from "../words";
import { SessionUsage } from "./SessionUsage";

/**
 * The session's story: a bar over time in the colours of what it was, which plays from where it is clicked; below it every
 * change, the latest first, with the evidence. A click on one goes back to that moment.
 */
export function Timeline({ session }: { session: Session }) {
  const { value, trouble } = useFetched<StoryLine[]>(
    sessionPath(session.id, "story"),
    `${session.run} ${session.headline} ${session.since} ${session.record}`,
  );
  return (
    <>
      {trouble ? <p class="trouble">{trouble}</p> : null}
      <SessionUsage session={session} />
      <Bar session={session} story={value ?? []} />
      <ol class="timeline">
        {[...(value ?? [])].reverse().map((line, at) => (
          <li key={(value?.length ?? 0) - at} class={typeof line["to"] === "string" ? `to-${line["to"]}` : ""}>
            <Headline session={session} line={line} />
            {content(line) ? <p>{content(line)}</p> : null}
            <p class="evidence">{evidence(line)}</p>
          </li>
        ))}
      </ol>
    </>
  );
}

function Bar({ session, story }: { session: Session; story: readonly StoryLine[] }) {
  const spans = spansOf(story, session.live ? now.value : 0);
  if (spans.length === 0) return null;
  const signs = signsOf(spans);
  return (
    <div class="spans">
      {/* hidden from readers: the list below says and does the same */}
      <div class="bar" aria-hidden="true">
        {spans.map((span) => (
          <Run key={span.run} session={session} span={span} signs={signs} />
        ))}
      </div>
      <div class="ends" aria-hidden="true">
        <time>{clock(spans[0]!.from)}</time>
        <time>{session.live ? "now" : clock(spans.at(-1)!.to)}</time>
      </div>
      <ul class="legend" aria-label="Colours">
        {[...signs].map(([word, sign]) => (
          <li key={word}>
            <i class={look(sign)} /> {word}
          </li>
        ))}
      </ul>
    </div>
  );
}

const look = ({ colour, pattern }: Sign): string => (pattern > 0 ? `${colour} pattern-${pattern}` : colour);

interface RunProps {
  session: Session;
  span: RunSpan;
  signs: ReadonlyMap<string, Sign>;
}

function Run({ session, span, signs }: RunProps) {
  const length = span.to - span.from;
  const percent = (at: number) => `${(100 * (at - span.from)) / length}%`;
  const play = (at: number) =>
    replay({ session: session.id, run: span.run, at: new Date(at).toISOString(), play: true });
  const onClick = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    play(span.from + (length * Math.min(Math.max(event.clientX - box.left, 0), box.width)) / box.width);
  };
  return (
    // biome-ignore lint/a11y: hidden from readers, and the list below does the same with keys
    <div class="run" style={{ flexGrow: length }} onClick={onClick}>
      <div class="stretches">
        {span.stretches.map(({ from, to, words, colour }) => (
          <i
            key={from}
            class={look({ colour, pattern: signs.get(words)?.pattern ?? 0 })}
            style={{ left: percent(from), width: percent(span.from + to - from) }}
            title={`${words} · ${duration((to - from) / 1000)} from ${clock(from)}`}
          />
        ))}
      </div>
      {span.pins.map(({ at, kind, text }) => (
        // biome-ignore lint/a11y: as above
        <b
          key={`${kind} ${at}`}
          class={`pin ${kind}`}
          style={{ left: percent(at) }}
          title={`${kind === "prompt" ? "Prompt" : "Answer"} at ${clock(at)}: ${text}`}
          onClick={(event) => {
            event.stopPropagation();
            play(at);
          }}
        />
      ))}
    </div>
  );
}

const clock = (at: number): string => new Date(at).toLocaleTimeString();

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
      onClick={() => replay({ session: session.id, run, at: line.at, isEnd: endsRun(line) })}
    >
      {words}
    </button>
  );
}

function replay(moment: Moment): void {
  replaying.value = moment;
  // there the panel covers what is replayed
  if (matchMedia("(max-width: 1000px)").matches) go({ panel: null });
}
