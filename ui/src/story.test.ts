import { expect, test } from "vitest";
import { content, evidence, headline } from "./story";

const at = "2026-01-01T00:00:00Z";

test("a report is told in plain words", () => {
  const line = {
    at,
    event: "attention",
    run: 1,
    headline: "Needs permission",
    colour: "orange",
    state: "blocked",
    kind: "permission",
    source: "screen",
    message: "Bash: make",
    request: "9f6c-3",
    options: ["yes", "no"],
  };
  expect([headline(line), content(line), evidence(line)]).toEqual([
    "Needs permission (run 1)",
    "Bash: make",
    "seen on its screen · it takes yes, no",
  ]);
  expect(evidence({ at, event: "attention", state: "clear", headline: "Working" })).toBe("");
  expect(evidence({ at, event: "attention", state: "working", source: "delivered" })).toBe(
    "it was given a prompt or an answer",
  );
});

test("whatever happened begins with a capital letter", () => {
  expect(headline({ at, event: "prompt", run: 2, text: "go" })).toBe("Prompt (run 2)");
  expect(headline({ at, event: "state", from: "starting", to: "running" })).toBe("Starting → running");
  const answered = { at, event: "answered", choice: "yes", question: "May I?", actor: "browser" };
  expect([headline(answered), content(answered), evidence(answered)]).toEqual([
    "Answered",
    "yes: May I?",
    "by browser",
  ]);
});
