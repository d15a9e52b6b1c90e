import { useEffect, useRef } from "preact/hooks";
import { go, route } from "../router";
import { screenReader } from "../settings";
import { SHORTCUTS } from "../shortcuts";
import { NotificationSettings } from "./NotificationSettings";

/** The keys, and what can be set. */
export function Help() {
  const box = useRef<HTMLDialogElement>(null);
  const open = route.value.settings;
  useEffect(() => {
    if (open) box.current?.showModal();
    else box.current?.close();
  }, [open]);
  return (
    <dialog ref={box} class="help" aria-labelledby="help-title" onClose={() => go({ settings: false }, "replace")}>
      <h2 id="help-title">Keys and settings</h2>
      <label class="setting">
        <input
          type="checkbox"
          checked={screenReader.value}
          onChange={(event) => (screenReader.value = event.currentTarget.checked)}
        />
        Terminals speak to a screen reader
      </label>
      {open ? <NotificationSettings /> : null}
      {SHORTCUTS.map(([where, keys]) => (
        <section key={where}>
          <h3>{where}</h3>
          <dl>
            {keys.map(([key, deed]) => (
              <div key={key}>
                <dt>
                  {key.split(" ").map((part) => (
                    <kbd key={part}>{part}</kbd>
                  ))}
                </dt>
                <dd>{deed}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
      <div class="buttons">
        <button type="button" onClick={() => go({ settings: false }, "replace")}>
          Close
        </button>
      </div>
    </dialog>
  );
}
