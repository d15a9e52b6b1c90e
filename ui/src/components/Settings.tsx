import type { Signal } from "@preact/signals";
import { Minus, Plus, X } from "lucide";
import { Fragment } from "preact";
import { useFetched } from "../fetched";
import { Part } from "../later";
import { useModal } from "../modal";
import { leaveDialog, route } from "../router";
import {
  DENSITIES,
  density,
  FONTS,
  font,
  fontSize,
  screenReader,
  setFontSize,
  THEMES,
  theme,
  usualFontSize,
} from "../settings";
import type { Catalog } from "../shapes";
import { SHORTCUTS } from "../shortcuts";
import { Icon } from "./Icon";
import { Later } from "./Later";

const NOTIFICATIONS = new Part(() => import("./NotificationSettings").then((found) => found.NotificationSettings));

/** What can be set in this browser, and the keys. */
export function Settings() {
  const open = route.value.settings;
  const leave = () => leaveDialog("settings");
  return (
    <dialog {...useModal(open, leave)} class="settings" aria-labelledby="settings-title">
      <header>
        <h2 id="settings-title">Settings and keys</h2>
        <button type="button" class="icon" aria-label="Close the settings" onClick={leave}>
          <Icon of={X} />
        </button>
      </header>
      {open ? (
        <>
          <section>
            <h3>Look</h3>
            <Choice name="theme" label="Theme" words={THEMES} chosen={theme} />
            <Choice name="density" label="Density" words={DENSITIES} chosen={density} />
          </section>
          <section>
            <h3>Terminal</h3>
            <Choice name="font" label="Font" words={FONTS} chosen={font} />
            <FontSize />
            <label class="setting">
              <input
                type="checkbox"
                checked={screenReader.value === "on"}
                onChange={(event) => (screenReader.value = event.currentTarget.checked ? "on" : "off")}
              />
              Terminals speak to a screen reader
            </label>
            <DetachKey />
          </section>
          <Later part={NOTIFICATIONS} of={{}} />
          <Keys />
        </>
      ) : null}
    </dialog>
  );
}

interface ChoiceProps<T extends string> {
  name: string;
  label: string;
  words: readonly T[];
  chosen: Signal<T>;
}

function Choice<T extends string>({ name, label, words, chosen }: ChoiceProps<T>) {
  return (
    <fieldset class="setting segments">
      <legend>{label}</legend>
      {words.map((word) => (
        <label key={word}>
          <input type="radio" name={name} checked={chosen.value === word} onChange={() => (chosen.value = word)} />
          {word.charAt(0).toUpperCase() + word.slice(1)}
        </label>
      ))}
    </fieldset>
  );
}

/** Nothing as long as nobody knows: another key would be typed into the agent. */
function DetachKey() {
  const { value } = useFetched<Catalog>("/api/catalog", "");
  if (!value) return null;
  const { detach_key: set } = value;
  return (
    <p class="setting quiet">
      <span>
        <code>hitch attach</code> is left with <Keystrokes of={set || USUAL_KEY} />
        {set ? null : (
          <>
            , inside tmux with <Keystrokes of={KEY_IN_TMUX} />
          </>
        )}
        .
      </span>
    </p>
  );
}

const USUAL_KEY = "ctrl-b d";
const KEY_IN_TMUX = "ctrl-\\ ctrl-\\";

/** As the settings write them: `ctrl-b d`. */
function Keystrokes({ of }: { of: string }) {
  const keys = of.split(/\s+/).flatMap((word) => (/^ctrl-./i.test(word) ? ["Ctrl", word.slice(5)] : [word]));
  return keys.map((key, at) => (
    <Fragment key={at}>
      {at > 0 ? " " : ""}
      <kbd>{key === "Ctrl" ? key : key.toUpperCase()}</kbd>
    </Fragment>
  ));
}

function FontSize() {
  const size = fontSize.value ?? usualFontSize();
  return (
    <div class="setting" role="group" aria-label="Font size">
      <span class="legend">Font size</span>
      <button type="button" class="icon" aria-label="Smaller" onClick={() => setFontSize(size - 1)}>
        <Icon of={Minus} />
      </button>
      <output>{size} px</output>
      <button type="button" class="icon" aria-label="Larger" onClick={() => setFontSize(size + 1)}>
        <Icon of={Plus} />
      </button>
      <button type="button" disabled={fontSize.value === null} onClick={() => (fontSize.value = null)}>
        Reset
      </button>
    </div>
  );
}

function Keys() {
  return (
    <>
      {SHORTCUTS.map(([where, keys]) => (
        <section key={where} class="help">
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
    </>
  );
}
