/** Text of agents and people as it is: what cannot be seen, or turns others around, is shown as the command line does. */

import { options, type VNode } from "preact";

/** Controls, bidirectional and other format characters, fillers. A line end, a tab and how an emoji is drawn are none. */
// biome-ignore lint/suspicious/noMisleadingCharacterClass: each of these characters is meant by itself
const HIDDEN = /(?![\t\n\r\ufe0e\ufe0f])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const ATTRIBUTES = ["title", "aria-label", "aria-description", "alt", "placeholder"];

export const visible = (text: string): string => text.replace(HIDDEN, escaped);

function escaped(letter: string): string {
  const code = letter.codePointAt(0)!.toString(16);
  if (code.length <= 2) return `\\x${code.padStart(2, "0")}`;
  return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
}

/** From now on, for every text that the page draws. What is typed, sent and kept is left as it is. */
export function showHidden(): void {
  const before = options.vnode;
  options.vnode = (node: VNode) => {
    const { type, props } = node as { type: unknown; props: unknown };
    if (type == null && typeof props === "string") (node as { props: unknown }).props = visible(props);
    else if (typeof type === "string") markAttributes(props as Record<string, unknown>);
    before?.(node);
  };
}

function markAttributes(props: Record<string, unknown>): void {
  for (const name of ATTRIBUTES) {
    const text = props[name];
    if (typeof text === "string") props[name] = visible(text);
  }
}
