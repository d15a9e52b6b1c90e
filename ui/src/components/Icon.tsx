import type { IconNode } from "lucide";
import { h } from "preact";

/** A drawing of lucide's. What it means is said by whoever shows it. */
export function Icon({ of, size = 16 }: { of: IconNode; size?: number }) {
  return (
    <svg
      class="lucide"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.75"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      {of.map(([tag, attributes], at) => h(tag, { key: at, ...attributes }))}
    </svg>
  );
}
