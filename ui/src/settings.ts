/** What a person has set in this browser. */

import { effect, signal } from "@preact/signals";

const SCREEN_READER = "screen reader";

/** Whether terminals also tell in words what they show: it costs time, so it is not always on. */
export const screenReader = signal(localStorage.getItem(SCREEN_READER) === "on");

effect(() => {
  if (screenReader.value) localStorage.setItem(SCREEN_READER, "on");
  else localStorage.removeItem(SCREEN_READER);
});
