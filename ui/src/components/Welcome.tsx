import { count, creating, known, owner } from "../store";

export function Welcome() {
  if (!known.value) return <div class="welcome" />;
  return (
    <div class="welcome">
      <p>{count.value > 0 ? "Choose a session to see its terminal." : "There are no sessions yet."}</p>
      {owner.value ? (
        <button type="button" class="primary" onClick={() => (creating.value = true)}>
          New session
        </button>
      ) : null}
    </div>
  );
}
