import { COMMAND, type Tile } from "../catalog";
import type { Change } from "../draft";
import { About, Field } from "./Field";

interface Props {
  tiles: readonly Tile[];
  chosen: string;
  command: string;
  change: Change;
  agentTrouble: string;
  commandTrouble: string;
}

/** Who works. What is not installed can be chosen, to see how to get it. */
export function NewSessionAgents({ tiles, chosen, command, change, agentTrouble, commandTrouble }: Props) {
  const missing = tiles.find(({ value }) => value === chosen)?.missing ?? "";
  return (
    <>
      <fieldset class="field agents" aria-describedby="agent-about">
        <legend>Agent</legend>
        <div class="tiles">
          {tiles.map((tile) => (
            <label key={tile.value} class={tile.missing ? "tile missing" : "tile"} title={tile.missing || undefined}>
              <input
                type="radio"
                name="agent"
                value={tile.value}
                checked={tile.value === chosen}
                onChange={() => change({ agent: tile.value })}
              />
              <span class="tile-name">{tile.text}</span>
              <span class="tile-about">{tile.missing ? "not installed" : tile.about}</span>
            </label>
          ))}
        </div>
        <About name="agent" trouble={agentTrouble}>
          {missing ? "Not installed on the hub's machine. To get it:" : null}
        </About>
        {missing ? <code class="install">{missing}</code> : null}
      </fieldset>
      {chosen === COMMAND ? (
        <Field
          name="command"
          label="Command"
          value={command}
          change={(command) => change({ command })}
          trouble={commandTrouble}
          hint="Quoted as in a shell, but run without one"
        />
      ) : null}
    </>
  );
}
