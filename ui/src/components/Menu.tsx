import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface Props {
  label: string;
  /** Open until somebody is done with it: it has settings, not deeds. */
  stays?: boolean;
  sign?: ComponentChildren;
  /** Called when it is opened. */
  onOpen?: () => void;
  children: ComponentChildren;
}

/** A button with further deeds behind it; it closes when one is chosen, on Escape, and on a click elsewhere. */
export function Menu({ label, stays = false, sign = "⋯", onOpen, children }: Props) {
  const box = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const onClick = (event: MouseEvent) => {
      if (box.current && !box.current.contains(event.target as Node)) box.current.open = false;
    };
    document.addEventListener("click", onClick);
    return () => document.removeEventListener("click", onClick);
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !box.current?.open) return;
    box.current.open = false;
    box.current.querySelector("summary")?.focus();
  };
  const close = () => {
    if (box.current && !stays) box.current.open = false;
  };
  return (
    <details
      class="menu"
      ref={box}
      onKeyDown={onKeyDown}
      onToggle={(event) => {
        if (event.currentTarget.open) onOpen?.();
      }}
    >
      <summary class="icon" aria-label={label}>
        {sign}
      </summary>
      {/* biome-ignore lint/a11y: a click on any of its buttons, by mouse or key, comes here */}
      <div class="menu-items" onClick={close}>
        {children}
      </div>
    </details>
  );
}
