import { sessionPath } from "../api";
import { useFetched } from "../fetched";
import { hunksOf } from "../patch";
import type { Difference, Session } from "../shapes";

const REFRESH_MS = 4000;
const MOST_LINES = 3000;

/** What the session changed since it began: committed, uncommitted and untracked. */
export function DiffPanel({ session }: { session: Session }) {
  const { value, trouble } = useFetched<Difference>(sessionPath(session.id, "diff"), session.state, REFRESH_MS);
  if (trouble) return <p class="quiet">{trouble}</p>;
  if (!value) return null;
  if (value.files.length === 0) return <p class="quiet">Nothing changed.</p>;
  const { lines, left } = hunksOf(value.patch, MOST_LINES);
  return (
    <>
      <ul class="changed-files">
        {value.files.map((one) => (
          <li key={one.path}>
            <code>{one.path}</code>
            <span class="counts">
              {one.untracked ? "new " : ""}
              <ins>+{one.added ?? "?"}</ins> <del>−{one.deleted ?? "?"}</del>
            </span>
          </li>
        ))}
      </ul>
      <pre class="patch" tabIndex={0} aria-label="Patch">
        {lines.map((line, at) => (
          <span key={at} class={line.kind}>
            {line.text}
            {"\n"}
          </span>
        ))}
      </pre>
      {left > 0 ? <p class="quiet">{left} more lines; hitch diff shows them all.</p> : null}
    </>
  );
}
