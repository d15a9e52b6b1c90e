import "../style/usage.css";
import { useState } from "preact/hooks";
import { useFetched } from "../fetched";
import { go, goFromDialog, USAGE_BY, type UsageBy } from "../router";
import type { Usage, UsageLimit, UsageSum } from "../shapes";
import { costOf, inputOf, short } from "../usage";
import { projectName } from "../words";

const WORDS: Record<UsageBy, string> = { day: "Day", agent: "Agent", project: "Project" };
const DAYS: [number, string][] = [
  [6, "7 days"],
  [29, "30 days"],
  [364, "A year"],
];

/** What agents have used, by day, agent or project, and who is at a limit. */
export function UsageSums({ by }: { by: UsageBy }) {
  const [days, setDays] = useState(29);
  const { value, trouble } = useFetched<Usage>(`/api/usage?by=${by}&days=${days}`, "", 30_000);
  const isCurrent = value?.by === by;
  return (
    <>
      <div class="choices">
        <fieldset class="setting segments">
          <legend class="unseen">Sum by</legend>
          {USAGE_BY.map((word) => (
            <label key={word}>
              <input
                type="radio"
                name="usage-by"
                checked={by === word}
                onChange={() => go({ usage: word }, "replace")}
              />
              {WORDS[word]}
            </label>
          ))}
        </fieldset>
        <fieldset class="setting segments">
          <legend class="unseen">Since</legend>
          {DAYS.map(([count, word]) => (
            <label key={count}>
              <input type="radio" name="usage-days" checked={days === count} onChange={() => setDays(count)} />
              {word}
            </label>
          ))}
        </fieldset>
      </div>
      {trouble ? <p class="trouble">{trouble}</p> : null}
      {value && isCurrent ? <Table by={by} usage={value} /> : null}
      {value && value.limits.length > 0 ? <Limits limits={value.limits} /> : null}
    </>
  );
}

/** Who can do nothing now, and until when. */
function Limits({ limits }: { limits: readonly UsageLimit[] }) {
  return (
    <section class="limits" aria-labelledby="usage-limits">
      <h3 id="usage-limits">At a usage limit now</h3>
      <ul>
        {limits.map(({ session, name, agent, detail }) => (
          <li key={session}>
            <button type="button" onClick={() => goFromDialog({ session, grid: false })}>
              {name}
            </button>
            <span class="agent">{agent}</span> <span class="detail">{detail}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Table({ by, usage }: { by: UsageBy; usage: Usage }) {
  if (usage.sums.length === 0) {
    return <p class="quiet">No agent has told of anything that it used in this time.</p>;
  }
  const most = Math.max(...usage.sums.map(({ total }) => total), 1);
  const costs = usage.total.cost_usd !== null;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: who has no mouse scrolls it with keys
    <div class="sums" tabIndex={0} role="group" aria-label={`Tokens by ${by}`}>
      <table>
        <thead>
          <tr>
            <th scope="col">{WORDS[by]}</th>
            <th scope="col">Turns</th>
            <th scope="col" title="Tokens that were read anew">
              Input
            </th>
            <th scope="col" title="Tokens from the provider's cache">
              Cached
            </th>
            <th scope="col">Output</th>
            {costs ? <th scope="col">Cost</th> : null}
          </tr>
        </thead>
        <tbody>
          {usage.sums.map((sum) => (
            <tr key={sum.key}>
              <th scope="row" title={sum.key} style={{ "--share": `${(100 * sum.total) / most}%` }}>
                {nameOf(by, sum)}
              </th>
              <Counts sum={sum} costs={costs} />
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">Total</th>
            <Counts sum={usage.total} costs={costs} />
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

function Counts({ sum, costs }: { sum: UsageSum; costs: boolean }) {
  return (
    <>
      <td>{sum.turns}</td>
      {[inputOf(sum), sum.cached, sum.output].map((count, at) => (
        <td key={at} title={count.toLocaleString()}>
          {short(count)}
        </td>
      ))}
      {costs ? <td>{costOf(sum)}</td> : null}
    </>
  );
}

const nameOf = (by: UsageBy, { key }: UsageSum): string => (by === "project" ? projectName(key) : key) || "unknown";
