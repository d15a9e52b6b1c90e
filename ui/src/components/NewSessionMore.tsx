import { LIMITS } from "../catalog";
import type { Change, Draft, FieldName } from "../draft";
import { Field } from "./Field";
import { type Option, Select } from "./Select";

interface Props {
  draft: Draft;
  change: Change;
  isOpen: boolean;
  toggle: (isOpen: boolean) => void;
  runtimes: readonly Option[];
  runtime: string;
  /** Whether the agent takes one. */
  model: boolean;
  permissionMode: boolean;
  /** Whether a usage limit would be known. */
  limits: boolean;
  troubles: Partial<Record<FieldName | "top", string>>;
}

/** What is seldom said. Folded, it tells what was. */
export function NewSessionMore(of: Props) {
  const { draft, change, troubles } = of;
  const hasChoice = of.runtimes.length > 1;
  const isBoxed = of.runtime === "docker";
  const said = [
    hasChoice && of.runtime,
    draft.name,
    isBoxed && draft.image,
    of.model && draft.model,
    of.permissionMode && draft.permission_mode,
    of.limits && draft.when_limit === "wait" && "waits out usage limits",
    of.limits && draft.when_limit === "stop" && "stops at usage limits",
  ].filter(Boolean);
  const field = (name: "name" | "image" | "model" | "permission_mode", label: string, hint: string) => (
    <Field
      key={name}
      name={name}
      label={label}
      value={draft[name]}
      change={(value) => change({ [name]: value })}
      trouble={troubles[name] ?? ""}
      hint={hint}
    />
  );
  return (
    <details
      class="more"
      open={of.isOpen}
      onToggle={(event) => {
        of.toggle(event.currentTarget.open);
        if (event.currentTarget.open) event.currentTarget.scrollIntoView({ block: "nearest" });
      }}
    >
      <summary>
        More <span class="said">{said.join(" · ")}</span>
      </summary>
      <div class="two">
        {field("name", "Name", "Made from agent and branch if empty")}
        {hasChoice ? (
          <Select
            key="runtime"
            name="runtime"
            label="Runtime"
            options={of.runtimes}
            chosen={of.runtime}
            choose={(runtime) => change({ runtime })}
            trouble={troubles.runtime ?? ""}
          />
        ) : null}
        {isBoxed ? field("image", "Image", "Needs tmux and the agent in it") : null}
        {of.model ? field("model", "Model", "In the agent's own words") : null}
        {of.permissionMode ? field("permission_mode", "Permission mode", "In the agent's own words") : null}
        {of.limits ? (
          <Select
            key="when_limit"
            name="when_limit"
            label="At a usage limit"
            options={LIMITS}
            chosen={draft.when_limit}
            choose={(chosen) => change({ when_limit: chosen as typeof draft.when_limit })}
            trouble={troubles.when_limit ?? ""}
          />
        ) : null}
      </div>
    </details>
  );
}
