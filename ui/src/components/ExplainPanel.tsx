import { sessionPath } from "../api";
import { useFetched } from "../fetched";
import type { Explanation, Session } from "../shapes";
import { labelOf, now } from "../store";
import { duration, secondsSince } from "../words";

/** The facts, where each is from and how old it is, and the rule that made the status of them. */
export function ExplainPanel({ session }: { session: Session }) {
  const { value, trouble } = useFetched<Explanation>(
    sessionPath(session.id, "explain"),
    `${session.run} ${session.status} ${session.record}`,
    5000,
  );
  if (!value) return trouble ? <p class="trouble">{trouble}</p> : null;
  return (
    <>
      {trouble ? <p class="trouble">{trouble}</p> : null}
      <p class="because">
        <strong>{labelOf(session)}</strong> because {value.rule}
      </p>
      <dl class="facts">
        {value.facts.map((fact) => (
          <div key={fact.fact}>
            <dt>{fact.fact}</dt>
            <dd>
              {fact.value}
              <small>
                {fact.source}
                {fact.at ? ` · ${duration(secondsSince(fact.at, now.value))} ago` : ""}
              </small>
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}
