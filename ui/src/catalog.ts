/** What a session can be made of, as options of a form. */

import type { Option } from "./components/Select";
import type { Catalog } from "./shapes";

export const agentOptions = (catalog: Catalog): Option[] =>
  usableFirst(
    catalog.agents.map((agent) => ({
      value: agent.name,
      text: agent.title,
      missing: agent.broken || (agent.path === null ? agent.install || "its program is not found" : ""),
    })),
  );

export const runtimeOptions = (catalog: Catalog): Option[] =>
  usableFirst(
    catalog.runtimes.map((runtime) => ({
      value: runtime.name,
      text: runtime.name,
      missing: runtime.available ? "" : runtime.missing,
    })),
  );

function usableFirst(options: Option[]): Option[] {
  return [...options.filter((option) => !option.missing), ...options.filter((option) => option.missing)];
}

/** What a person chose; else what was used last, if it still can be; else the first that can be used. */
export function chosenOf(options: readonly Option[], chosen: string, last: string | null): string {
  if (chosen) return chosen;
  const usable = options.filter((option) => !option.missing);
  return (usable.find((option) => option.value === last) ?? usable[0])?.value ?? "";
}
