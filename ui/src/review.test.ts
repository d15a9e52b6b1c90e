import { expect, test } from "vitest";
import { filesOf, hunksOf, type PatchLine } from "./patch";
import { commentsOf, dropComments, reviewText, setComment, viewKey } from "./review";

const line: PatchLine = { kind: "added", path: "a.py", line: 7, was: 0, is: 7, text: "+x = 1" };

test("comments are gathered, replaced and taken back, and sent as one text", () => {
  setComment("s", line, " rename this ");
  setComment("s", { ...line, kind: "deleted", text: "-y", was: 7, is: 0 }, "why?");
  setComment("s", line, "name it count");
  expect(reviewText(commentsOf("s"))).toBe(
    "Comment on a.py:7 (deleted)\n> -y\nwhy?\n\nComment on a.py:7\n> +x = 1\nname it count",
  );
  setComment("s", line, "  ");
  expect(commentsOf("s").length).toBe(1);
  expect(commentsOf("other")).toEqual([]);
  const sent = commentsOf("s");
  setComment("s", { ...line, line: 9 }, "written while they were sent");
  dropComments("s", sent);
  expect(commentsOf("s").map((comment) => comment.text)).toEqual(["written while they were sent"]);
  dropComments("s", commentsOf("s"));
  expect(commentsOf("s")).toEqual([]);
});

test("a file that has changed again is not viewed any more", () => {
  const patch = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n";
  const [file, other] = [patch, patch.replace("+2", "+3")].map((text) => filesOf(hunksOf(text, 100).lines)[0]!);
  expect(viewKey("s", file!)).toBe(viewKey("s", file!));
  expect(viewKey("s", file!)).not.toBe(viewKey("s", other!));
});
