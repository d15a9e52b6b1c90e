import type { ITheme } from "@xterm/xterm";

const DARK: ITheme = {
  background: "#1f232c",
  foreground: "#e5e9f0",
  cursor: "#e5e9f0",
  cursorAccent: "#1f232c",
  selectionBackground: "#4c566aaa",
  black: "#3b4252",
  red: "#d57780",
  green: "#a3be8c",
  yellow: "#ebcb8b",
  blue: "#81a1c1",
  magenta: "#b48ead",
  cyan: "#88c0d0",
  white: "#e5e9f0",
  brightBlack: "#7b88a1",
  brightRed: "#e5989f",
  brightGreen: "#b9d1a4",
  brightYellow: "#f2dbaa",
  brightBlue: "#9cb9d6",
  brightMagenta: "#c9a8c3",
  brightCyan: "#a3d3e0",
  brightWhite: "#ffffff",
};

const LIGHT: ITheme = {
  background: "#fbfcfe",
  foreground: "#2e3440",
  cursor: "#2e3440",
  cursorAccent: "#fbfcfe",
  selectionBackground: "#b9c8dcaa",
  black: "#2e3440",
  red: "#a83440",
  green: "#4b7032",
  yellow: "#8a6200",
  blue: "#3a6494",
  magenta: "#8a4f82",
  cyan: "#2b7080",
  white: "#d8dee9",
  brightBlack: "#5b6780",
  brightRed: "#bf3f4c",
  brightGreen: "#5b8740",
  brightYellow: "#9b7000",
  brightBlue: "#4a78ac",
  brightMagenta: "#9f6297",
  brightCyan: "#398496",
  brightWhite: "#4c566a",
};

const wide = matchMedia("(prefers-color-scheme: light)");

export const theme = (): ITheme => (wide.matches ? LIGHT : DARK);

/** Returns what ends the telling. */
export function onTheme(tell: () => void): () => void {
  wide.addEventListener("change", tell);
  return () => wide.removeEventListener("change", tell);
}
