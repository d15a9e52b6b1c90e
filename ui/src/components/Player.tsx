import "../style/player.css";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { sessionPath } from "../api";
import { useFetched } from "../fetched";
import { Player as Playing, SPEEDS } from "../player";
import { type Moment, replaying } from "../replay";
import type { Session, StoryLine } from "../shapes";
import { headline, runOf } from "../story";
import { viewOf } from "../views";

const STEP_S = 5;

/** A run as it was seen, from a moment on. Space plays, arrow keys go five seconds, Escape leads back to the present. */
export function Player({ session, moment }: { session: Session; moment: Moment }) {
  const player = useMemo(() => new Playing(session.id, moment.run), []);
  const place = useRef<HTMLDivElement>(null);
  const all = useRef<HTMLElement>(null);
  useEffect(() => {
    player.show(place.current!);
    all.current?.focus();
    return () => player.close();
  }, []);
  useEffect(() => void player.open(moment.isEnd ? Infinity : Date.parse(moment.at), moment.play), [moment]);
  const leave = () => {
    replaying.value = null;
    if (matchMedia("(hover: hover)").matches) viewOf(session.id).terminal.term.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const [key, target] = [event.key, event.target as HTMLElement];
    if (target instanceof HTMLSelectElement && key !== "Escape") return;
    if (key === " " && target instanceof HTMLButtonElement) return;
    const deed = {
      " ": () => player.toggle(),
      ArrowLeft: () => player.seek(player.position.value - STEP_S),
      ArrowRight: () => player.seek(player.position.value + STEP_S),
      Home: () => player.seek(0),
      End: () => player.seek(player.scale.value.length),
      Escape: leave,
    }[key];
    if (!deed) return;
    event.preventDefault();
    event.stopPropagation();
    deed();
  };
  return (
    <section
      class="player"
      ref={all}
      tabIndex={-1}
      aria-label={`Replay of ${session.name}, run ${moment.run}`}
      data-settled={player.settled.value}
      onKeyDownCapture={onKeyDown}
    >
      <header>
        <strong>Replay</strong>
        <span class="quiet">run {moment.run}</span>
        <Clock player={player} />
        <button type="button" class="primary" onClick={leave}>
          Back to now
        </button>
      </header>
      <div class="terminal-box" ref={place} role="group" aria-label={`Terminal of ${session.name} as it was`} />
      {player.trouble.value ? (
        <p class="trouble" role="alert">
          {player.trouble.value}
        </p>
      ) : null}
      <Controls player={player} session={session} run={moment.run} />
    </section>
  );
}

function Clock({ player }: { player: Playing }) {
  const at = new Date(player.moment.value);
  const isToday = at.toDateString() === new Date().toDateString();
  if (!player.outline.value?.began_at) return <span class="quiet">nothing was recorded</span>;
  return (
    <time class="clock" dateTime={at.toISOString()}>
      {isToday ? "" : at.toLocaleDateString(undefined, { day: "numeric", month: "short" })}{" "}
      <b>{at.toLocaleTimeString()}</b>
    </time>
  );
}

function Controls({ player, session, run }: { player: Playing; session: Session; run: number }) {
  const { value: story } = useFetched<StoryLine[]>(sessionPath(session.id, "story"), session.label);
  const length = player.scale.value.length;
  const ticks = (story ?? []).filter((line) => runOf(line) === run && length > 0);
  const place = (line: StoryLine) => {
    const at = Math.min(Math.max((Date.parse(line.at) - player.began) / 1000, 0), player.outline.value?.length_s ?? 0);
    return (100 * player.scale.value.played(at)) / length;
  };
  return (
    <div class="controls">
      <button
        type="button"
        class="play"
        aria-label={player.playing.value ? "Pause" : "Play"}
        onClick={() => player.toggle()}
      >
        {player.playing.value ? "❚❚" : "▶"}
      </button>
      <div class="track">
        <input
          type="range"
          aria-label="Moment"
          aria-valuetext={new Date(player.moment.value).toLocaleTimeString()}
          min={0}
          max={length}
          step="any"
          value={player.position.value}
          onInput={(event) => player.seek(event.currentTarget.valueAsNumber)}
        />
        <div class="ticks" aria-hidden="true">
          {ticks.map((line, at) => (
            // biome-ignore lint/a11y: hidden from readers, and the slider does the same with keys
            <i
              key={at}
              class={typeof line["to"] === "string" ? `to-${line["to"]}` : ""}
              style={{ left: `${place(line)}%` }}
              title={`${new Date(line.at).toLocaleTimeString()} ${headline(line)}`}
              onClick={() => player.seek((place(line) * length) / 100)}
            />
          ))}
        </div>
      </div>
      <span class="passed" title="Idle stretches are shortened">
        {minutes(player.position.value)} / {minutes(length)}
      </span>
      <select
        aria-label="Speed"
        value={player.speed.value}
        onChange={(event) => (player.speed.value = Number(event.currentTarget.value))}
      >
        {SPEEDS.map((speed) => (
          <option key={speed} value={speed}>
            {speed}×
          </option>
        ))}
      </select>
    </div>
  );
}

function minutes(seconds: number): string {
  const whole = Math.floor(seconds);
  const [hours, rest] = [Math.floor(whole / 3600), whole % 3600];
  const tail = String(rest % 60).padStart(2, "0");
  return hours > 0
    ? `${hours}:${String(Math.floor(rest / 60)).padStart(2, "0")}:${tail}`
    : `${Math.floor(rest / 60)}:${tail}`;
}
