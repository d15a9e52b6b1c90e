import { useState } from "preact/hooks";
import { prompt } from "../actions";
import type { PatchLine } from "../patch";
import { commentsOf, dropComments, placeOf, reviewText } from "../review";
import type { Session } from "../shapes";
import { notify } from "../store";
import { receipt } from "../words";

/** The comments that were gathered, and the way to send them as one prompt. */
export function ReviewBar({ session, onOpen }: { session: Session; onOpen: (line: PatchLine) => void }) {
  const [sending, setSending] = useState(false);
  const all = commentsOf(session.id);
  const words = all.length === 1 ? "1 comment" : `${all.length} comments`;
  const why = session.takes_prompt ? session.refusal : `it is ${session.label}`;
  const send = async () => {
    setSending(true);
    const sent = await prompt(session, reviewText(all));
    if (sent) {
      dropComments(session.id, all);
      notify(`${words}: ${receipt(sent)}`, "note");
    }
    setSending(false);
  };
  return (
    <div class="comment-box review-bar" role="group" aria-label="Comments">
      <ul>
        {all.map((comment) => (
          <li key={placeOf(comment.line)}>
            <button type="button" class="jump" onClick={() => onOpen(comment.line)}>
              {comment.line.path}:{comment.line.line}
            </button>{" "}
            {comment.text}
          </li>
        ))}
      </ul>
      <p role="status" class="trouble">
        {why ? `It takes no prompt now: ${why}` : ""}
      </p>
      <div class="buttons">
        <button type="button" onClick={() => dropComments(session.id, all)}>
          Discard
        </button>
        <button type="button" class="primary" disabled={sending || !!why} onClick={() => void send()}>
          Send {words}
        </button>
      </div>
    </div>
  );
}
