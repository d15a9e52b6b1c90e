import { createElement } from "preact";
import { expect, test } from "vitest";
import { showHidden, visible } from "./visible";

test.each([
  ["plain text, Grüße, 日本語, שלום, ❤️", "plain text, Grüße, 日本語, שלום, ❤️"],
  ["two\nlines\tand a tab\r\n", "two\nlines\tand a tab\r\n"],
  ["user\u202etxt.exe", "user\\u202etxt.exe"],
  ["\u202a\u202b\u202c\u202d\u202e", "\\u202a\\u202b\\u202c\\u202d\\u202e"],
  ["\u2066\u2067\u2068\u2069", "\\u2066\\u2067\\u2068\\u2069"],
  ["\u200e\u200f\u061c", "\\u200e\\u200f\\u061c"],
  ["ma\u200bin\u200c\u200d\u2060\ufeff\u00ad", "ma\\u200bin\\u200c\\u200d\\u2060\\ufeff\\xad"],
  ["\u2028\u2029\u3164\u115f\u{e0041}", "\\u2028\\u2029\\u3164\\u115f\\U000e0041"],
  ["\x1b[31m\x07\x7f\x9b", "\\x1b[31m\\x07\\x7f\\x9b"],
])("what cannot be seen in %j is shown", (text, shown) => {
  expect(visible(text)).toBe(shown);
});

test("what the page draws is shown so, and what it keeps is not changed", () => {
  showHidden();
  const props = { title: "a\u202eb", "aria-label": "a\u200bb", value: "a\u202eb", children: "a\u202eb" };
  const made = createElement("input", props);
  expect(made.props).toMatchObject({ title: "a\\u202eb", "aria-label": "a\\u200bb", value: "a\u202eb" });
  expect(props.title).toBe("a\u202eb");
});
