/** Parts of the page whose code comes only when somebody wants to see them. */

import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { notify } from "./store";

/** The component, as soon as it is there. It stays once it was wanted. */
export function useLater<P>(
  isWanted: boolean,
  what: string,
  load: () => Promise<FunctionComponent<P>>,
  giveUp?: () => void,
): FunctionComponent<P> | undefined {
  const [found, setFound] = useState<{ of: FunctionComponent<P> }>();
  useEffect(() => {
    if (!isWanted || found) return;
    load().then(
      (of) => setFound({ of }),
      () => {
        notify(`${what} could not be loaded; if the hub was upgraded, reload this page.`);
        giveUp?.();
      },
    );
  }, [isWanted]);
  return found?.of;
}
