/** What a session can be made of, as options of a form. */

import type { Option } from "./components/Select";
import type { Catalog } from "./shapes";

export const agentOptions = (catalog: Catalog): Option[] =>
  usableFirst(
    catalog.agents.map((one) => ({ value: one.name, text: one.title, missing: one.path === null ? one.install : "" })),
  );

export const runtimeOptions = (catalog: Catalog): Option[] =>
  usableFirst(
    catalog.runtimes.map((one) => ({ value: one.name, text: one.name, missing: one.available ? "" : one.missing })),
  );

function usableFirst(options: Option[]): Option[] {
  return [...options.filter((one) => !one.missing), ...options.filter((one) => one.missing)];
}

/** What a person chose; else what was used last, if it still can be; else the first that can be used. */
export function chosenOf(options: readonly Option[], chosen: string, last: string | null): string {
  if (chosen) return chosen;
  const usable = options.filter((one) => !one.missing);
  return (usable.find((one) => one.value === last) ?? usable[0])?.value ?? "";
}
