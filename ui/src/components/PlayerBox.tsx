import { useLater } from "../later";
import { type Moment, replaying } from "../replay";
import type { Session } from "../shapes";

type Props = { session: Session; moment: Moment };

export function PlayerBox(props: Props) {
  const load = () => import("./Player").then((found) => found.Player);
  const Player = useLater<Props>(true, "The player", load, () => (replaying.value = null));
  return Player ? <Player key={props.moment.run} {...props} /> : null;
}
