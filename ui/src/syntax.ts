/** Colours of code, by prismjs, which is loaded when the first changes are shown. Until then, code is plain. */

import type Prism from "prismjs";
import { Part } from "./later";

export interface Piece {
  text: string;
  /** Empty for plain text. */
  kind: string;
}

const LANGUAGES: Record<string, string> = {
  bash: "bash",
  c: "c",
  cc: "cpp",
  cpp: "cpp",
  css: "css",
  go: "go",
  h: "c",
  hpp: "cpp",
  html: "markup",
  java: "java",
  js: "javascript",
  json: "json",
  jsx: "jsx",
  kt: "kotlin",
  md: "markdown",
  mjs: "javascript",
  py: "python",
  rb: "ruby",
  rs: "rust",
  sh: "bash",
  sql: "sql",
  svg: "markup",
  swift: "swift",
  toml: "toml",
  ts: "typescript",
  tsx: "tsx",
  xml: "markup",
  yaml: "yaml",
  yml: "yaml",
};
/** A longer line is data. */
const LONGEST_LINE = 500;

const prism = new Part(() => import("./prism").then((loaded) => loaded.Prism));

export const loadSyntax = (): void => void prism.load();

/** A line of a file in pieces, each with what it is. Lines are read one by one, so a long string may look like code. */
export function piecesOf(path: string, text: string): Piece[] {
  const language = LANGUAGES[/\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? ""];
  const grammar = language ? prism.found.value?.languages[language] : undefined;
  if (!prism.found.value || !grammar || text.length > LONGEST_LINE) return [{ text, kind: "" }];
  return prism.found.value.tokenize(text, grammar).map((token) => ({
    text: flat(token),
    kind: typeof token === "string" ? "" : token.type,
  }));
}

function flat(token: string | Prism.Token | readonly (string | Prism.Token)[]): string {
  if (typeof token === "string") return token;
  if (Array.isArray(token)) return token.map(flat).join("");
  return flat((token as Prism.Token).content as string | Prism.Token);
}
