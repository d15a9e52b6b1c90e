/** What a person has set in this browser. */

import { effect, type Signal, signal } from "@preact/signals";

/** A setting of a few words: the first one unless another was kept. */
function setting<T extends string>(name: string, words: readonly T[]): Signal<T> {
  const kept = signal(words.find((word) => word === localStorage.getItem(name)) ?? words[0]!);
  effect(() => {
    if (kept.value === words[0]) localStorage.removeItem(name);
    else localStorage.setItem(name, kept.value);
  });
  return kept;
}

export const THEMES = ["system", "dark", "light"] as const;
export const DENSITIES = ["comfortable", "compact"] as const;
export const FONTS = ["JetBrains Mono", "system"] as const;
export const SMALLEST_FONT = 8;
export const LARGEST_FONT = 24;

export const theme = setting("theme", THEMES);
export const density = setting("density", DENSITIES);
export const font = setting("font", FONTS);
/** Whether terminals also tell in words what they show: it costs time, so it is not always on. */
export const screenReader = setting("screen reader", ["off", "on"]);

const FONT_SIZE = "font size";
export const usualFontSize = (): number => (matchMedia("(max-width: 700px)").matches ? 12 : 13);
/** Of terminals, in pixels; null for the usual one. */
export const fontSize = signal(sizeOf(Number(localStorage.getItem(FONT_SIZE))));

effect(() => {
  if (fontSize.value === null) localStorage.removeItem(FONT_SIZE);
  else localStorage.setItem(FONT_SIZE, String(fontSize.value));
});

function sizeOf(kept: number): number | null {
  return kept >= SMALLEST_FONT && kept <= LARGEST_FONT ? kept : null;
}

export function setFontSize(pixels: number): void {
  fontSize.value = Math.min(Math.max(Math.round(pixels), SMALLEST_FONT), LARGEST_FONT);
}

/** The page looks as it was set, and the browser's own bar with it. */
export function followSettings(): void {
  const root = document.documentElement;
  const bars = [...document.querySelectorAll<HTMLMetaElement>("meta[name=theme-color]")];
  const usual = bars.map((bar) => bar.content);
  effect(() => {
    root.dataset["density"] = density.value;
    if (theme.value === "system") delete root.dataset["theme"];
    else root.dataset["theme"] = theme.value;
    const chosen = bars.find((bar) => bar.media.includes(theme.value));
    for (const [at, bar] of bars.entries()) bar.content = chosen ? usual[bars.indexOf(chosen)]! : usual[at]!;
  });
}
