import type { FunctionComponent } from "preact";
import { useEffect } from "preact/hooks";
import type { Part } from "../later";

/** A part that may have to be loaded first; why it is not there, where that fails. */
export function Later<P extends object>({ part, of }: { part: Part<FunctionComponent<P>>; of: P }) {
  useEffect(() => void part.load(), [part]);
  const Found = part.found.value;
  if (Found) return <Found {...of} />;
  if (!part.isMissing.value) return null;
  return (
    <p class="trouble" role="alert">
      This part of the page could not be loaded. It is tried again when the hub can be reached; if the hub was upgraded
      since, reload the page.
    </p>
  );
}
