/** The lines of a patch, each with its kind. */

export interface PatchLine {
  kind: "file" | "hunk" | "added" | "deleted" | "same";
  text: string;
}

export function hunksOf(patch: string, most: number): { lines: PatchLine[]; left: number } {
  const all = patch.replace(/\n$/, "").split("\n");
  const lines: PatchLine[] = [];
  let inHunk = false;
  for (const text of all) {
    if (text.startsWith("diff --git ")) {
      inHunk = false;
      lines.push({ kind: "file", text });
    } else if (text.startsWith("@@")) {
      inHunk = true;
      lines.push({ kind: "hunk", text });
    } else if (inHunk) {
      lines.push({ kind: text.startsWith("+") ? "added" : text.startsWith("-") ? "deleted" : "same", text });
    } else if (text.startsWith("Binary")) lines.push({ kind: "same", text });
  }
  return { lines: lines.slice(0, most), left: Math.max(0, lines.length - most) };
}
