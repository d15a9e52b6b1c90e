import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, reasonOf } from "../api";
import { allow, canPush, permission, pushed, subscribe, unsubscribe } from "../notifications";
import type { NotificationChoices, NotificationOutcome, Notifications } from "../shapes";
import { mayManage } from "../store";
import "../style/notifications.css";

type Kind = Notifications["kinds"][number];
type Channel = Notifications["channels"][number];

const PATH = "/api/notifications";
const KINDS: Record<Kind, string> = {
  permission: "Needs permission",
  "your-turn": "Your turn, or a question",
  error: "Usage limit or API error",
  failed: "Failed",
  finished: "Finished",
  hub: "Hub trouble",
};
const CHANNELS: Record<Channel["name"], string> = {
  browser: "Open pages",
  push: "Web Push",
  ntfy: "ntfy",
  webhook: "Webhook",
  command: "Command",
  desktop: "Desktop",
  terminal: "Terminals",
};
const BLOCKED = "Blocked. Allow notifications for this address in the browser's settings.";
const UNAVAILABLE = "This browser shows no notifications at this address.";

/** What to be told of, when, and by which ways, with a button that tries them. */
export function NotificationSettings() {
  const [found, setFound] = useState<Notifications>();
  const [trouble, setTrouble] = useState("");
  const [outcomes, setOutcomes] = useState<readonly NotificationOutcome[]>([]);
  const [busy, setBusy] = useState(false);

  async function attempt(deed: () => Promise<unknown>): Promise<void> {
    setBusy(true);
    setTrouble("");
    try {
      await deed();
    } catch (error) {
      setTrouble(reasonOf(error));
    }
    setBusy(false);
  }
  const load = () => attempt(async () => setFound(await ask<Notifications>("GET", PATH)));
  /** Shown at once; if the hub refuses, what holds is shown again. */
  const choose = (change: NotificationChoices) =>
    attempt(async () => {
      setFound(found && applied(found, change));
      try {
        setFound(await ask<Notifications>("PUT", PATH, change));
      } catch (error) {
        setFound(found);
        throw error;
      }
    });
  const test = (channel = "") =>
    attempt(async () => setOutcomes(await ask<NotificationOutcome[]>("POST", `${PATH}/test`, { channel })));
  const setPush = async (on: boolean) => {
    await (on ? subscribe(found!.push_key) : unsubscribe());
    setFound(await ask<Notifications>("GET", PATH));
  };
  useEffect(() => void load(), []);

  if (!found) return <Trouble text={trouble} />;
  const disabled = !mayManage.value;
  const off = found.channels.filter((channel) => !channel.on).map(({ name }) => name);
  const ways = found.channels.filter(({ ready }) => ready);
  const others = found.channels.filter(({ name, ready }) => !ready && name !== "push");
  const [begin = "", end = ""] = found.quiet_hours.split("-");
  return (
    <section class="told" aria-label="Notifications">
      <Part title="This browser">
        <p class="told-line">
          <span>{stateOfBrowser()}</span>
          {permission.value === "default" ? (
            <button type="button" class="primary" onClick={() => void attempt(allow)}>
              Allow notifications
            </button>
          ) : null}
        </p>
        {permission.value === "granted" && canPush() ? (
          <Switch
            label="Also when this page is closed"
            on={pushed.value}
            disabled={disabled}
            toggle={(on) => void attempt(() => setPush(on))}
          />
        ) : null}
      </Part>
      <Part title="Tell me of">
        <div class="told-kinds">
          {found.every_kind.map((kind) => (
            <Switch
              key={kind}
              label={KINDS[kind]}
              on={found.kinds.includes(kind)}
              disabled={disabled}
              toggle={(on) =>
                void choose({
                  kinds: found.every_kind.filter((one) => (one === kind ? on : found.kinds.includes(one))),
                })
              }
            />
          ))}
        </div>
      </Part>
      <Part title="Quiet hours">
        <form
          class="told-line"
          key={found.quiet_hours}
          onSubmit={(event) => {
            event.preventDefault();
            const hours = new FormData(event.currentTarget);
            void choose({ quiet_hours: `${hours.get("begin")}-${hours.get("end")}` });
          }}
        >
          <span class="told-hours">
            <input type="time" name="begin" aria-label="Quiet from" defaultValue={begin} required disabled={disabled} />
            to
            <input type="time" name="end" aria-label="Quiet until" defaultValue={end} required disabled={disabled} />
          </span>
          <span>
            <button type="submit" disabled={disabled}>
              Set
            </button>{" "}
            {found.quiet_hours ? (
              <button type="button" disabled={disabled} onClick={() => void choose({ quiet_hours: "" })}>
                Clear
              </button>
            ) : null}
          </span>
        </form>
      </Part>
      <Part title="Ways">
        <ul class="told-ways">
          {ways.map(({ name, on, where }) => (
            <li key={name}>
              <Switch
                label={CHANNELS[name]}
                on={on}
                disabled={disabled}
                toggle={(wanted) => void choose({ off: wanted ? off.filter((one) => one !== name) : [...off, name] })}
              />
              <small>{where}</small>
              <button
                type="button"
                disabled={disabled || busy}
                aria-label={`Test ${CHANNELS[name]}`}
                onClick={() => void test(name)}
              >
                Test
              </button>
            </li>
          ))}
        </ul>
        {others.length > 0 ? (
          <p class="told-others">
            {others.map(({ name }) => CHANNELS[name]).join(", ")} can be set up in <code>config.toml</code>.
          </p>
        ) : null}
        <p class="told-line">
          <output class="told-outcomes">
            {outcomes.map(({ channel, outcome, why }) => (
              <span key={channel} class={outcome}>
                {nameOf(channel)}: {outcome} ({why})
              </span>
            ))}
          </output>
          <button type="button" disabled={disabled || busy} onClick={() => void test()}>
            Send a test
          </button>
        </p>
      </Part>
      <Trouble text={trouble} />
    </section>
  );
}

function applied(found: Notifications, { kinds, quiet_hours, off }: NotificationChoices): Notifications {
  return {
    ...found,
    kinds: kinds ?? found.kinds,
    quiet_hours: quiet_hours ?? found.quiet_hours,
    channels: found.channels.map((channel) => (off ? { ...channel, on: !off.includes(channel.name) } : channel)),
  };
}

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

interface SwitchProps {
  label: string;
  on: boolean;
  disabled: boolean;
  toggle: (on: boolean) => void;
}

function Switch({ label, on, disabled, toggle }: SwitchProps) {
  return (
    <label class="setting">
      <input
        type="checkbox"
        checked={on}
        disabled={disabled}
        onChange={(event) => toggle(event.currentTarget.checked)}
      />
      {label}
    </label>
  );
}

const Trouble = ({ text }: { text: string }) => (
  <p class="trouble" role="alert" hidden={!text}>
    {text}
  </p>
);

function stateOfBrowser(): string {
  if (permission.value === "granted") return "Shows notifications while a page is open.";
  if (permission.value === "denied") return BLOCKED;
  return permission.value === "unavailable" ? UNAVAILABLE : "Notifications are not allowed yet.";
}

const nameOf = (channel: string): string => CHANNELS[channel.split(":")[0] as Channel["name"]] ?? channel;
