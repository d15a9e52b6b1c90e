interface Props {
  name: string;
  label: string;
  trouble: string;
  value?: string;
  hint?: string;
  list?: readonly string[];
  long?: boolean;
  required?: boolean;
  autoFocus?: boolean;
}

/** A labelled field with its hint, or what is wrong with it. */
export function Field({
  name,
  label,
  trouble,
  value = "",
  hint = "",
  list,
  long = false,
  required = false,
  autoFocus = false,
}: Props) {
  const [id, about] = [`new-${name}`, `${name}-about`];
  const shared = {
    id,
    name,
    required,
    autoFocus,
    "aria-describedby": about,
    "aria-invalid": trouble !== "",
    autoComplete: "off",
  } as const;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {long ? (
        <textarea {...shared} rows={3} defaultValue={value} />
      ) : (
        <input {...shared} defaultValue={value} spellcheck={false} list={list ? `${name}-list` : undefined} />
      )}
      {list ? (
        <datalist id={`${name}-list`}>
          {list.map((choice) => (
            <option key={choice} value={choice} />
          ))}
        </datalist>
      ) : null}
      <small id={about} class={trouble ? "trouble" : "hint"} role={trouble ? "alert" : undefined}>
        {trouble || hint}
      </small>
    </div>
  );
}
