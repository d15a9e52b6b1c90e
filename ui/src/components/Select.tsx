import { Labelled } from "./Field";

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
  hint?: string;
}

/** A labelled choice. What cannot be used is said to be so, and why once it is chosen. */
export function Select({ name, label, options, chosen, choose, trouble, hint = "" }: Props) {
  const missing = options.find((option) => option.value === chosen)?.missing ?? "";
  return (
    <Labelled name={name} label={label} trouble={trouble} hint={missing || hint}>
      {(shared) => (
        <select {...shared} value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.missing ? `${option.text} (not installed)` : option.text}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
}
