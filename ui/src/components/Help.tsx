import { useEffect, useRef } from "preact/hooks";
import { screenReader } from "../settings";
import { SHORTCUTS, helping } from "../shortcuts";

/** The keys, and what can be set. */
export function Help() {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (helping.value) box.current?.showModal();
    else box.current?.close();
  }, [helping.value]);
  return (
    <dialog ref={box} class="help" aria-labelledby="help-title" onClose={() => (helping.value = false)}>
      <h2 id="help-title">Keys and settings</h2>
      <label class="setting">
        <input type="checkbox" checked={screenReader.value} onChange={(event) => (screenReader.value = event.currentTarget.checked)} />
        Terminals speak to a screen reader
      </label>
      {SHORTCUTS.map(([where, keys]) => (
        <section key={where}>
          <h3>{where}</h3>
          <dl>
            {keys.map(([key, deed]) => (
              <div key={key}>
                <dt>
                  {key.split(" ").map((one) => (
                    <kbd key={one}>{one}</kbd>
                  ))}
                </dt>
                <dd>{deed}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
      <div class="buttons">
        <button type="button" onClick={() => (helping.value = false)}>
          Close
        </button>
      </div>
    </dialog>
  );
}
