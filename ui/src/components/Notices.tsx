import { dismiss, notices } from "../store";

export function Notices() {
  return (
    <div class="notices" role="log" aria-live="polite" aria-label="Notices">
      {notices.value.map((notice) => (
        <div key={notice.id} class={`notice ${notice.kind}`}>
          <span>{notice.text}</span>
          <button type="button" aria-label="Dismiss" onClick={() => dismiss(notice.id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
