import { useEffect } from "preact/hooks";
import { Part } from "../later";
import { type Moment, replaying } from "../replay";
import type { Session } from "../shapes";
import { notify } from "../store";

const PLAYER = new Part(() => import("./Player").then((found) => found.Player));

/** In place of the terminal, which comes back when there is no player. */
export function PlayerBox(props: { session: Session; moment: Moment }) {
  useEffect(() => {
    void PLAYER.load().then((isThere) => {
      if (isThere) return;
      replaying.value = null;
      notify("The player could not be loaded. Try again when the hub can be reached.");
    });
  }, []);
  const Player = PLAYER.found.value;
  return Player ? <Player key={props.moment.run} {...props} /> : null;
}
