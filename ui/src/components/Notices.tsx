import { dismiss, notices } from "../store";

export function Notices() {
  return (
    <div class="notices" role="log" aria-live="polite" aria-label="Notices">
      {notices.value.map((one) => (
        <div key={one.id} class={`notice ${one.kind}`}>
          <span>{one.text}</span>
          <button type="button" aria-label="Dismiss" onClick={() => dismiss(one.id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
