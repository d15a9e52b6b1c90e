import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, ask, sessionPath } from "../api";
import { commentOn, type PatchLine } from "../patch";
import type { PromptAnswer, Session } from "../shapes";
import { receipt } from "../words";

type Sent = { state: "writing" | "sending" | "sent" | "refused"; text: string };
const WRITING: Sent = { state: "writing", text: "" };

/** A remark about a line of the difference, sent to the agent as a prompt. */
export function CommentBox({ session, line, onClose }: { session: Session; line: PatchLine; onClose: () => void }) {
  const [sent, setSent] = useState<Sent>(WRITING);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    setSent(WRITING);
    field.current?.focus();
  }, [line]);
  const enabled = session.takes_prompt;
  const send = async () => {
    const comment = field.current?.value ?? "";
    if (!comment.trim() || sent.state === "sending" || !enabled) return;
    setSent({ state: "sending", text: "" });
    try {
      const answer = await ask<PromptAnswer>("POST", sessionPath(session.id, "prompt"), {
        text: commentOn(line, comment),
      });
      if (field.current) field.current.value = "";
      setSent({ state: "sent", text: receipt(answer) });
    } catch (error) {
      const hint = error instanceof ApiError && error.hint ? `; ${error.hint}` : "";
      setSent({ state: "refused", text: `${(error as Error).message}${hint}` });
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      onClose();
    }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target === field.current) {
      event.preventDefault();
      void send();
    }
  };
  return (
    <form
      class="comment-box"
      aria-label="Comment"
      onKeyDown={onKeyDown}
      onSubmit={(event) => {
        event.preventDefault();
        void send();
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
        placeholder={enabled ? "Comment for the agent" : "Cannot take a prompt right now"}
        disabled={!enabled}
      />
      <p role="status" class={sent.state === "refused" ? "trouble" : "done"}>
        {sent.text}
      </p>
      <div class="buttons">
        <button type="button" onClick={onClose}>
          Close
        </button>
        <button type="submit" class="primary" disabled={!enabled || sent.state === "sending"}>
          Send
        </button>
      </div>
    </form>
  );
}
