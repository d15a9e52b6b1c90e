import { useEffect, useRef } from "preact/hooks";
import { rename, renaming } from "../actions";

export function Rename() {
  const box = useRef<HTMLDialogElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const session = renaming.value;
  useEffect(() => {
    if (!session) return box.current?.close();
    box.current?.showModal();
    field.current!.value = session.name;
    field.current!.select();
  }, [session]);
  const leave = () => (renaming.value = null);
  return (
    <dialog ref={box} class="rename" aria-labelledby="rename-title" onClose={leave}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const name = field.current!.value.trim();
          if (!session || !name) return;
          if (name === session.name) leave();
          else void rename(session, name).then((done) => done && leave());
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
