import { useEffect, useRef, useState } from "preact/hooks";
import { viewOf } from "../views";

export function SearchBar({ id, onClose }: { id: string; onClose: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  const [found, setFound] = useState(true);
  useEffect(() => {
    field.current?.focus();
    return () => viewOf(id).terminal.stopFinding();
  }, [id]);
  const find = (back: boolean) =>
    setFound(!field.current?.value || viewOf(id).terminal.find(field.current.value, back));
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") find(event.shiftKey);
    if (event.key === "Escape") {
      onClose();
      viewOf(id).terminal.term.focus();
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
      <span role="status">{found ? "" : "not found"}</span>
      <button type="button" aria-label="Previous" onClick={() => find(true)}>
        ↑
      </button>
      <button type="button" aria-label="Next" onClick={() => find(false)}>
        ↓
      </button>
      <button type="button" aria-label="Close the search" onClick={onClose}>
        ×
      </button>
    </search>
  );
}
