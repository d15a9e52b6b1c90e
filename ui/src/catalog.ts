/** What a session can be made of, as options of a form. */

import type { Option } from "./components/Select";
import type { Catalog, CatalogAgent, Session } from "./shapes";
import { isListed } from "./words";

/** Stands for a command of the person's own, among the agents; no agent can have that name. */
export const COMMAND = "/";

const POD = "pod";

/** No agent that a task could be given to, unless somebody wants it. */
const SHELL = "bash";

export interface Tile extends Option {
  /** What is run: the program's name. */
  about: string;
}

/** The agents, the one that was used last first, then those of the hub's machine; then a command of one's own; then what is
 * not installed. */
export function tilesOf(catalog: Catalog, last: string | null, inPods = false): Tile[] {
  const agents = catalog.agents.map(
    (agent): Tile => ({
      value: agent.name,
      text: agent.title,
      about: agent.argv[0]?.split("/").at(-1) ?? "",
      // what is in the image of pods, nobody can tell here
      missing: agent.broken || (agent.path === null && !inPods ? agent.install || "its program is not found" : ""),
    }),
  );
  const isHere = ({ value }: Tile) => catalog.agents.some(({ name, path }) => name === value && path !== null);
  const usable = agents.filter((agent) => !agent.missing).sort((a, b) => Number(isHere(b)) - Number(isHere(a)));
  return [
    ...usable.filter((agent) => agent.value === last),
    ...usable.filter((agent) => agent.value !== last && agent.value !== SHELL),
    ...usable.filter((agent) => agent.value !== last && agent.value === SHELL),
    { value: COMMAND, text: "Command", about: "anything else", missing: "" },
    ...agents.filter((agent) => agent.missing),
  ];
}

/** The tiles, those that were there before at their places. */
export function inPlace(tiles: readonly Tile[], before: readonly string[]): Tile[] {
  const at = ({ value }: Tile): number => (before.includes(value) ? before.indexOf(value) : before.length);
  return tiles.toSorted((one, other) => at(one) - at(other));
}

export const runtimeOptions = (catalog: Catalog): Option[] =>
  catalog.runtimes
    .map((runtime) => ({ value: runtime.name, text: runtime.name, missing: runtime.available ? "" : runtime.missing }))
    .sort((a, b) => Number(a.missing !== "") - Number(b.missing !== ""));

/** Whether sessions run in pods: there a repository is cloned, and nothing else of the hub's machine is offered. Their
 * cluster may be away. */
export const runsPods = (catalog: Catalog): boolean => catalog.runtimes.some(({ name }) => name === POD);

/** Whether one can be started in a pod now. */
export const startsPods = (catalog: Catalog): boolean =>
  catalog.runtimes.some(({ name, available }) => name === POD && available);

export const profileOptions = (catalog: Catalog): Option[] =>
  catalog.profiles.map(({ name }) => ({ value: name, text: name, missing: "" }));

export const amountsOf = (catalog: Catalog, profile: string): string => {
  const found = catalog.profiles.find(({ name }) => name === profile);
  return found ? `${found.cpu} CPU, ${found.memory} memory, ${found.storage} storage` : "";
};

/** Whether a session may choose that of the agent: `model` or `permission_mode`. */
export const takes = (catalog: Catalog, agent: string, option: string): boolean =>
  catalog.agents.some(({ name, options }) => name === agent && options.includes(option));

/** What a usage limit may do. */
export const LIMITS: Option[] = [
  { value: "", text: "As the settings say", missing: "" },
  { value: "stop", text: "Stop", missing: "" },
  { value: "wait", text: "Wait for its end, and go on", missing: "" },
];

/** Whether it would be known that the agent is at a usage limit. */
export const meetsLimits = (agents: readonly CatalogAgent[], agent: string): boolean =>
  agents.some(({ name, watched }) => name === agent && watched);

/** The agents that could go on with the session: installed here, and with the same conversations. */
export function heirsOf(session: Session, agents: readonly CatalogAgent[]): CatalogAgent[] {
  const own = agents.find(({ name }) => name === session.agent);
  if (!own || !session.supports_resume || session.runtime === "docker" || !isListed(session)) return [];
  return agents.filter(
    ({ name, conversations, path, broken }) =>
      name !== own.name && conversations === own.conversations && path !== null && !broken,
  );
}

/** What a person chose; else the first of what was used before that can be used; else the first that can be. */
export function chosenOf(options: readonly Option[], chosen: string, ...before: (string | null | undefined)[]): string {
  if (chosen) return chosen;
  const usable = options.filter((option) => !option.missing).map((option) => option.value);
  return before.find((name): name is string => !!name && usable.includes(name)) ?? usable[0] ?? "";
}
