import { ArrowDown, ArrowUp, X } from "lucide";
import { useEffect, useRef } from "preact/hooks";
import { viewOf } from "../views";
import { Icon } from "./Icon";

/** Over a corner of the terminal, which keeps its size. */
export function SearchBar({ id, onClose }: { id: string; onClose: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  const { terminal } = viewOf(id);
  useEffect(() => {
    field.current?.focus();
    return () => viewOf(id).terminal.stopFinding();
  }, [id]);
  const find = (back: boolean) => terminal.find(field.current?.value ?? "", back);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") find(event.shiftKey);
    if (event.key === "Escape") {
      onClose();
      terminal.term.focus();
    }
  };
  return (
    <search class="search-bar">
      <input
        ref={field}
        type="search"
        aria-label="Search the terminal"
        placeholder="Search"
        onInput={() => find(false)}
        onKeyDown={onKeyDown}
      />
      <span role="status" class={terminal.found.value?.count === 0 ? "trouble" : "quiet"}>
        {said(terminal.found.value)}
      </span>
      <button type="button" class="icon" aria-label="Previous" onClick={() => find(true)}>
        <Icon of={ArrowUp} />
      </button>
      <button type="button" class="icon" aria-label="Next" onClick={() => find(false)}>
        <Icon of={ArrowDown} />
      </button>
      <button type="button" class="icon" aria-label="Close the search" onClick={onClose}>
        <Icon of={X} />
      </button>
    </search>
  );
}

function said(found: { at: number; count: number } | null): string {
  if (!found) return "";
  if (found.count === 0) return "not found";
  return found.at > 0 ? `${found.at} of ${found.count}` : `${found.count} or more`;
}
