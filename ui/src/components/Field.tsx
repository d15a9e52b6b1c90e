import type { ComponentChildren } from "preact";

interface Props {
  name: string;
  label: string;
  value: string;
  change: (value: string) => void;
  trouble: string;
  hint?: string;
  placeholder?: string;
}

/** A labelled field with its hint, or what is wrong with it. */
export function Field({ name, label, value, change, trouble, hint = "", placeholder = "" }: Props) {
  return (
    <Labelled name={name} label={label} trouble={trouble} hint={hint}>
      {(shared) => (
        <input
          {...shared}
          value={value}
          placeholder={placeholder}
          onInput={(event) => change(event.currentTarget.value)}
        />
      )}
    </Labelled>
  );
}

interface Shared {
  id: string;
  name: string;
  "aria-describedby": string;
  "aria-invalid": boolean;
  autoComplete: "off";
  autoCapitalize: "off";
  spellcheck: boolean;
}

/** What is said of a field stands under it, and is what a screen reader says with it. */
export function Labelled(of: {
  name: string;
  label: string;
  trouble: string;
  hint?: ComponentChildren;
  children: (shared: Shared) => ComponentChildren;
}) {
  const [id, about] = [`new-${of.name}`, `${of.name}-about`];
  const shared: Shared = {
    id,
    name: of.name,
    "aria-describedby": about,
    "aria-invalid": of.trouble !== "",
    autoComplete: "off",
    autoCapitalize: "off",
    spellcheck: false,
  };
  return (
    <div class="field">
      <label for={id}>{of.label}</label>
      {of.children(shared)}
      <About name={of.name} trouble={of.trouble}>
        {of.hint}
      </About>
    </div>
  );
}

export function About({ name, trouble, children }: { name: string; trouble: string; children?: ComponentChildren }) {
  return (
    <small id={`${name}-about`} class={trouble ? "trouble" : "hint"} role={trouble ? "alert" : undefined}>
      {trouble || children}
    </small>
  );
}
