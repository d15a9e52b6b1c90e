import { X } from "lucide";
import { dismiss, notices } from "../store";
import { Icon } from "./Icon";

export function Notices() {
  return (
    <div class="notices" role="log" aria-live="polite" aria-label="Notices">
      {notices.value.map(({ id, kind, text, undo }) => (
        <div key={id} class={`notice ${kind}`}>
          <span>{text}</span>
          {undo ? (
            <button
              type="button"
              class="undo"
              onClick={() => {
                dismiss(id);
                undo.deed();
              }}
            >
              {undo.word}
            </button>
          ) : null}
          <button type="button" class="icon" aria-label="Dismiss" onClick={() => dismiss(id)}>
            <Icon of={X} />
          </button>
        </div>
      ))}
    </div>
  );
}
