import { question } from "../actions";
import { useModal } from "../modal";

export function Confirm() {
  const asked = question.value;
  const leave = () => (question.value = null);
  return (
    <dialog {...useModal(asked !== null, leave)} class="confirm" aria-labelledby="confirm-title">
      <h2 id="confirm-title">{asked?.title}</h2>
      <p>{asked?.text}</p>
      <div class="buttons">
        <button type="button" onClick={leave}>
          {asked?.no ?? "No, keep it"}
        </button>
        <button
          type="button"
          class="danger"
          onClick={() => {
            if (question.peek() !== asked) return; // a second click
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
