import { useLayoutEffect, useRef } from "preact/hooks";
import type { PatchLine } from "../patch";
import { commentsOf, placeOf, setComment } from "../review";
import type { Session } from "../shapes";

/** A remark about a line of the difference. It is kept with the others until all are sent. */
export function CommentBox({ session, line, onClose }: { session: Session; line: PatchLine; onClose: () => void }) {
  const field = useRef<HTMLTextAreaElement>(null);
  const before = commentsOf(session.id).find((comment) => placeOf(comment.line) === placeOf(line))?.text ?? "";
  // before anybody can type: what comes later would delete it
  useLayoutEffect(() => {
    if (field.current) field.current.value = before;
    field.current?.focus();
  }, [line]);
  const keep = () => {
    setComment(session.id, line, field.current?.value ?? "");
    onClose();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      onClose();
    }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target === field.current) {
      event.preventDefault();
      keep();
    }
  };
  return (
    <form
      class="comment-box"
      aria-label="Comment"
      onKeyDown={onKeyDown}
      onSubmit={(event) => {
        event.preventDefault();
        keep();
      }}
    >
      <p>
        <code>
          {line.path}:{line.line}
        </code>
      </p>
      <pre class={line.kind}>{line.text}</pre>
      <textarea
        ref={field}
        rows={2}
        aria-label={`Comment on ${line.path} line ${line.line}`}
        placeholder="Comment for the agent; it is sent together with the others"
      />
      <div class="buttons">
        <button type="button" onClick={onClose}>
          Close
        </button>
        <button type="submit" class="primary">
          {before ? "Change" : "Add"}
        </button>
      </div>
    </form>
  );
}
