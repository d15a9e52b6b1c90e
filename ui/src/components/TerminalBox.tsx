import { useEffect, useRef } from "preact/hooks";
import { viewOf } from "../views";

/** The place where a session's terminal is shown. */
export function TerminalBox({ id, name, focus }: { id: string; name: string; focus: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const view = viewOf(id);
    view.show(place.current!);
    if (focus && matchMedia("(hover: hover)").matches) view.terminal.term.focus();
    return () => view.hide();
  }, [id]);
  return <div class="terminal-box" ref={place} role="group" aria-label={`Terminal of ${name}`} />;
}
