export interface Option {
  value: string;
  text: string;
  /** Why it is of no use on the hub's machine; empty when it is of use. */
  missing: string;
}

interface Props {
  name: string;
  label: string;
  options: readonly Option[];
  chosen: string;
  choose: (value: string) => void;
  trouble: string;
  autoFocus?: boolean;
}

/** A labelled choice. What cannot be used is said to be so, and why once it is chosen. */
export function Select({ name, label, options, chosen, choose, trouble, autoFocus = false }: Props) {
  const [id, about] = [`new-${name}`, `${name}-about`];
  const missing = options.find((option) => option.value === chosen)?.missing ?? "";
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        name={name}
        value={chosen}
        autoFocus={autoFocus}
        aria-describedby={about}
        aria-invalid={trouble !== ""}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.missing ? `${option.text} (not installed)` : option.text}
          </option>
        ))}
      </select>
      <small id={about} class={trouble ? "trouble" : "hint"} role={trouble ? "alert" : undefined}>
        {trouble || missing}
      </small>
    </div>
  );
}
