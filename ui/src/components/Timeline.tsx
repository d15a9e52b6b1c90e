import { sessionPath } from "../api";
import { useFetched } from "../fetched";
import type { Session, StoryLine } from "../shapes";

/** Told elsewhere, or more than anybody wants to read here. */
const TOLD = new Set(["at", "event", "run", "from", "to", "reason", "actor", "by", "schema", "record", "pid"]);

/** The session's story, the latest first, with the evidence for each change. */
export function Timeline({ session }: { session: Session }) {
  const { value, trouble } = useFetched<StoryLine[]>(sessionPath(session.id, "story"), `${session.run} ${session.label} ${session.record}`);
  if (trouble) return <p class="trouble">{trouble}</p>;
  return (
    <ol class="timeline">
      {[...(value ?? [])].reverse().map((line, at) => (
        <li key={(value?.length ?? 0) - at} class={typeof line["to"] === "string" ? `to-${line["to"]}` : ""}>
          <time dateTime={line.at} title={line.at}>
            {new Date(line.at).toLocaleTimeString()}
          </time>
          <strong>{headline(line)}</strong>
          {said(line["reason"]) ? <p>{said(line["reason"])}</p> : null}
          <p class="evidence">{evidence(line)}</p>
        </li>
      ))}
    </ol>
  );
}

function headline(line: StoryLine): string {
  const change = line["to"] ? (line["from"] ? `${said(line["from"])} → ${said(line["to"])}` : said(line["to"])) : line.event;
  return line["run"] ? `${change} (run ${said(line["run"])})` : change;
}

function evidence(line: StoryLine): string {
  const who = line["actor"] ?? line["by"];
  return [...(who ? [`by ${said(who)}`] : []), ...pairs(line)].join(" · ");
}

/** Names and values, those of objects in objects too. */
function pairs(fields: object): string[] {
  return Object.entries(fields).flatMap(([key, item]: [string, unknown]) => {
    if (TOLD.has(key) || item === null || item === "") return [];
    return typeof item === "object" && !Array.isArray(item) ? pairs(item) : [`${key} ${said(item)}`];
  });
}

function said(item: unknown): string {
  return item === null || item === undefined ? "" : typeof item === "object" ? JSON.stringify(item) : String(item);
}
