/** A prompt that goes back into the field that it came from. */

import { signal } from "@preact/signals";
import type { Prompt } from "./chat";

export const handed = signal<{ session: string; prompt: Prompt } | null>(null);

export function handBack(session: string, prompt: Prompt): void {
  handed.value = { session, prompt };
}
