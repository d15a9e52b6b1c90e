/** The lines of a patch, each with its kind and its place. */

export interface PatchLine {
  kind: "file" | "hunk" | "added" | "deleted" | "same" | "note";
  text: string;
  path: string;
  /** In the file as it is; for a deleted line, as it was. 0 where there is none. */
  line: number;
  /** The numbers of the line as it was and as it is; 0 where it was not, or is not. */
  was: number;
  is: number;
}

/** The changes of one file. */
export interface PatchFile {
  path: string;
  lines: PatchLine[];
}

/** The lines, file by file; what is said of a file before its first hunk is left out. */
export function filesOf(lines: readonly PatchLine[]): PatchFile[] {
  const files: PatchFile[] = [];
  for (const line of lines) {
    if (line.kind === "file") files.push({ path: line.path, lines: [] });
    else files.at(-1)?.lines.push(line);
  }
  return files;
}

export function hunksOf(patch: string, most: number): { lines: PatchLine[]; left: number } {
  const lines: PatchLine[] = [];
  let [path, inHunk, was, is] = ["", false, 0, 0];
  for (const text of patch.replace(/\n$/, "").split("\n")) {
    if (text.startsWith("diff --git ")) {
      inHunk = false;
      path = /^diff --git (?:"a\/.*" |a\/.* )("b\/.*"|b\/.*)$/.exec(text)?.[1] ?? "";
      path = path && nameOf(path);
      lines.push({ kind: "file", text, path, line: 0, was: 0, is: 0 });
    } else if (text.startsWith("@@")) {
      inHunk = true;
      const numbers = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(text);
      [was, is] = [Number(numbers?.[1] ?? 0), Number(numbers?.[2] ?? 0)];
      lines.push({ kind: "hunk", text, path, line: 0, was: 0, is: 0 });
    } else if (!inHunk) {
      const named = /^(?:---|\+\+\+) (.+)$/.exec(text)?.[1];
      if (named && named !== "/dev/null") {
        path = nameOf(named);
        const file = lines.findLast((line) => line.kind === "file");
        if (file) file.path = path;
      }
      if (text.startsWith("Binary")) lines.push({ kind: "note", text, path: "", line: 0, was: 0, is: 0 });
    } else if (text.startsWith("+")) lines.push({ kind: "added", text, path, line: is, was: 0, is: is++ });
    else if (text.startsWith("-")) lines.push({ kind: "deleted", text, path, line: was, was: was++, is: 0 });
    else if (text.startsWith("\\")) lines.push({ kind: "note", text, path: "", line: 0, was: 0, is: 0 });
    else {
      lines.push({ kind: "same", text, path, line: is, was: was++, is: is++ });
    }
  }
  return { lines: lines.slice(0, most), left: Math.max(0, lines.length - most) };
}

const ESCAPES: Record<string, string> = { t: "\t", n: "\n", r: "\r", a: "\x07", b: "\b", f: "\f", v: "\v" };

/** A file's name as git writes it behind `+++`: after `b/`, in quotes when it has odd characters. */
function nameOf(text: string): string {
  // git ends a name with spaces in it by a tab
  const name = text.replace(/\t$/, "");
  if (!name.startsWith('"')) return name.slice(2);
  return name
    .slice(1, -1)
    .replace(/\\(\d{3}|.)/g, (_, code: string) =>
      code.length === 3 ? String.fromCharCode(parseInt(code, 8)) : (ESCAPES[code] ?? code),
    )
    .slice(2);
}

const LONGEST_QUOTE = 300;

/** What an agent reads about a line. Nothing in it can be taken for a key: a terminal gets it. */
export function commentOn({ path, line, kind, text }: PatchLine, comment: string): string {
  const quote = text.length > LONGEST_QUOTE ? `${text.slice(0, LONGEST_QUOTE)}…` : text;
  const where = kind === "deleted" ? `${path}:${line} (deleted)` : `${path}:${line}`;
  return [`Comment on ${where}`, `> ${quote}`, comment.trim()].map(printable).join("\n");
}

const printable = (text: string): string => text.replace(/\r\n?/g, "\n").replace(/[\x00-\x08\x0b-\x1f\x7f]/g, "\ufffd");
