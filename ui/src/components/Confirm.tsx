import { useEffect, useRef } from "preact/hooks";
import { question } from "../actions";

export function Confirm() {
  const box = useRef<HTMLDialogElement>(null);
  const asked = question.value;
  useEffect(() => {
    if (asked && !box.current?.open) box.current?.showModal();
    if (!asked) box.current?.close();
  }, [asked]);
  const leave = () => (question.value = null);
  return (
    <dialog ref={box} class="confirm" aria-labelledby="confirm-title" onClose={leave}>
      <h2 id="confirm-title">{asked?.title}</h2>
      <p>{asked?.text}</p>
      <div class="buttons">
        <button type="button" onClick={leave}>
          No, keep it
        </button>
        <button
          type="button"
          class="danger"
          onClick={() => {
            leave();
            asked?.deed();
          }}
        >
          {asked?.yes}
        </button>
      </div>
    </dialog>
  );
}
