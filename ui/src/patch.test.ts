import { expect, test } from "vitest";
import { commentOn, filesOf, hunksOf, type PatchLine } from "./patch";

const PATCH = `diff --git a/src/a.py b/src/a.py
index 1..2 100644
--- a/src/a.py
+++ b/src/a.py
@@ -10,3 +10,3 @@ def f():
 same
-old
+new
\\ No newline at end of file
@@ -40 +41,2 @@
+++ not a name
+two
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-was here
diff --git "a/odd\\t\\"name" "b/odd\\t\\"name"
--- /dev/null
+++ "b/odd\\t\\"name"
@@ -0,0 +1 @@
+odd
diff --git a/x.png b/x.png
Binary files a/x.png and b/x.png differ
`;

const places = (lines: PatchLine[]) =>
  lines.filter((line) => line.line > 0).map((line) => [line.kind, line.path, line.line, line.text]);

test("each line has its place in its file", () => {
  const { lines, left } = hunksOf(PATCH, 100);
  expect(left).toBe(0);
  expect(places(lines)).toEqual([
    ["same", "src/a.py", 10, " same"],
    ["deleted", "src/a.py", 11, "-old"],
    ["added", "src/a.py", 11, "+new"],
    ["added", "src/a.py", 41, "+++ not a name"],
    ["added", "src/a.py", 42, "+two"],
    ["deleted", "gone.txt", 1, "-was here"],
    ["added", 'odd\t"name', 1, "+odd"],
  ]);
  expect(hunksOf(PATCH, 3).left).toBe(lines.length - 3);
});

test("a comment quotes its line and presses no keys", () => {
  const line: PatchLine = { kind: "added", path: "a\x1b[2J.py", line: 7, was: 0, is: 7, text: "+x = 1\r" };
  expect(commentOn(line, " rename\r\nthis\x03 ")).toBe("Comment on a\ufffd[2J.py:7\n> +x = 1\n\nrename\nthis\ufffd");
  expect(commentOn({ ...line, kind: "deleted", path: "a.py", text: "-y" }, "why?")).toBe(
    "Comment on a.py:7 (deleted)\n> -y\nwhy?",
  );
});

test("lines are numbered as they were and as they are, file by file", () => {
  const files = filesOf(hunksOf(PATCH, 100).lines);
  expect(files.map((file) => file.path)).toEqual(["src/a.py", "gone.txt", 'odd\t"name', "x.png"]);
  const numbers = files[0]!.lines.filter((line) => line.line > 0).map((line) => [line.was, line.is]);
  expect(numbers).toEqual([
    [10, 10],
    [11, 0],
    [0, 11],
    [0, 41],
    [0, 42],
  ]);
  expect(files[3]!.lines.map((line) => line.kind)).toEqual(["note"]);
});
