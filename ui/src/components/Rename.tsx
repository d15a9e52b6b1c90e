import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { renaming } from "../actions";
import { ApiError, ask, reasonOf, sessionPath } from "../api";
import { useModal } from "../modal";
import type { Session } from "../shapes";
import { notify } from "../store";
import { inWords } from "../wish";
import { About } from "./Field";

export function Rename() {
  const field = useRef<HTMLInputElement>(null);
  const [trouble, setTrouble] = useState("");
  const session = renaming.value;
  const leave = () => (renaming.value = null);
  const modal = useModal(session !== null, leave);
  const rename = async (session: Session, name: string) => {
    let wrong = "";
    try {
      await ask("PATCH", sessionPath(session.id), { name });
    } catch (error) {
      wrong = error instanceof ApiError ? inWords(error) : reasonOf(error);
    }
    // the dialog may be closed by now, or another session's
    if (renaming.value !== session) {
      if (wrong) notify(`${session.name}: ${wrong}`);
    } else if (wrong) setTrouble(wrong);
    else leave();
  };
  // before anybody can type: what is typed at once would be replaced by the old name
  useLayoutEffect(() => {
    setTrouble("");
    if (!session || !field.current) return;
    field.current.value = session.name;
    field.current.select();
  }, [session]);
  return (
    <dialog {...modal} class="rename" aria-labelledby="rename-title">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const name = field.current!.value.trim();
          if (!session || !name) return;
          if (name === session.name) leave();
          else void rename(session, name);
        }}
      >
        <h2 id="rename-title">Rename {session?.name}</h2>
        <input
          ref={field}
          aria-label="Name"
          aria-describedby="rename-about"
          aria-invalid={trouble !== ""}
          maxLength={128}
          spellcheck={false}
          autoComplete="off"
          onInput={() => setTrouble("")}
        />
        <About name="rename" trouble={trouble} />
        <div class="buttons">
          <button type="button" onClick={leave}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Rename
          </button>
        </div>
      </form>
    </dialog>
  );
}
