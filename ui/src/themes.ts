import { effect, signal } from "@preact/signals";
import type { ITheme } from "@xterm/xterm";
import { theme } from "./settings";

const DARK: ITheme = {
  background: "#0f1115",
  foreground: "#e6e8eb",
  cursor: "#e6e8eb",
  cursorAccent: "#0f1115",
  selectionBackground: "#3d4a78aa",
  black: "#2a2f38",
  red: "#e5717c",
  green: "#7cc48f",
  yellow: "#e0c067",
  blue: "#74a7f2",
  magenta: "#bf94ea",
  cyan: "#6fc3d4",
  white: "#d5d9e0",
  brightBlack: "#7c8696",
  brightRed: "#f29aa2",
  brightGreen: "#9bd8aa",
  brightYellow: "#efd68e",
  brightBlue: "#9cc2fa",
  brightMagenta: "#d4b4f4",
  brightCyan: "#96d9e6",
  brightWhite: "#ffffff",
};

const LIGHT: ITheme = {
  background: "#ffffff",
  foreground: "#14171c",
  cursor: "#14171c",
  cursorAccent: "#ffffff",
  selectionBackground: "#b7c2f0aa",
  black: "#14171c",
  red: "#b3303d",
  green: "#22743c",
  yellow: "#7f5f00",
  blue: "#1c5fb8",
  magenta: "#7a45b8",
  cyan: "#11707f",
  white: "#d5d9e0",
  brightBlack: "#5d6775",
  brightRed: "#c43d4a",
  brightGreen: "#2c8a4a",
  brightYellow: "#8f6c00",
  brightBlue: "#2a6fcc",
  brightMagenta: "#8a55c8",
  brightCyan: "#1b8192",
  brightWhite: "#454d5a",
};

const media = matchMedia("(prefers-color-scheme: light)");
const systemIsLight = signal(media.matches);
media.addEventListener("change", () => (systemIsLight.value = media.matches));

/** Of terminals. */
export const terminalTheme = (): ITheme =>
  (theme.value === "system" ? systemIsLight.value : theme.value === "light") ? LIGHT : DARK;

/** Returns what ends the telling. */
export function onTheme(tell: () => void): () => void {
  return effect(() => {
    terminalTheme();
    tell();
  });
}
