import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Moment, replaying } from "../replay";
import type { Session } from "../shapes";
import { notify } from "../store";

type Props = { session: Session; moment: Moment };

/** The player, whose code comes only when somebody wants to see it. */
export function PlayerBox(props: Props) {
  const [Player, setPlayer] = useState<{ of: FunctionComponent<Props> }>();
  useEffect(() => {
    import("./Player").then(
      (found) => setPlayer({ of: found.Player }),
      () => {
        notify("The player could not be loaded; if the hub was upgraded, reload this page.");
        replaying.value = null;
      },
    );
  }, []);
  return Player ? <Player.of key={props.moment.run} {...props} /> : null;
}
