import { useLayoutEffect, useRef } from "preact/hooks";
import { renaming } from "../actions";
import { set } from "../deeds";
import { useModal } from "../modal";

export function Rename() {
  const field = useRef<HTMLInputElement>(null);
  const session = renaming.value;
  const leave = () => (renaming.value = null);
  const modal = useModal(session !== null, leave);
  // before anybody can type: what is typed at once would be replaced by the old name
  useLayoutEffect(() => {
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
          else void set(session, { name }).then((done) => done && leave());
        }}
      >
        <h2 id="rename-title">Rename {session?.name}</h2>
        <input ref={field} aria-label="Name" maxLength={128} spellcheck={false} autoComplete="off" />
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
