import { expect, test } from "vitest";
import { session } from "./sample";
import type { Session } from "./shapes";
import { argv, byName, canBegin, duration, elapsed, ending, label, matches, receipt, whereabouts } from "./words";

const ended = (fields: Partial<Session>, exit: Partial<NonNullable<Session["exit"]>>): Session =>
  session({
    ...fields,
    exit: {
      code: null,
      signal: null,
      core_dumped: false,
      intent: null,
      ended_at: null,
      ended_at_known: false,
      ...exit,
    },
  });

test("an end is told with its code or signal", () => {
  expect(ending(ended({ state: "failed", status: "failed" }, { code: 1 }))).toBe("Process exited with code 1.");
  expect(ending(ended({ state: "failed", status: "failed" }, { signal: "SIGSEGV" }))).toBe(
    "Process killed by SIGSEGV.",
  );
  expect(ending(ended({ state: "completed", status: "completed" }, { code: 0 }))).toBe("Process exited with code 0.");
  expect(ending(ended({ state: "stopped", status: "stopped" }, { code: 143 }))).toBe("Process stopped.");
  expect(ending(ended({ state: "failed", status: "stopped" }, { code: 1 }))).toBe("Process stopped.");
  expect(ending(session({ state: "failed", status: "failed", label: "failed: keeper lost" }))).toBe(
    "Process failed: keeper lost.",
  );
});

test("of a session that cannot be read nothing is offered, and nothing said that nobody knows", () => {
  const newer = session({
    state: "unknown",
    status: "unknown",
    live: false,
    agent: "",
    workspace: { id: null, path: "", branch: null, repository: null },
  });
  expect(whereabouts(newer)).toBe("");
  const root = session({
    state: "failed",
    status: "failed",
    live: false,
    agent: "sh",
    workspace: { id: null, path: "/", branch: null, repository: null },
  });
  expect(whereabouts(root)).toBe("sh · /");
});

test("a next run begins where the hub says so, whatever the status is", () => {
  const failed = session({ state: "failed", status: "failed", live: false, actions: ["archive", "delete"] });
  expect(canBegin(failed)).toBe(false);
  expect(canBegin({ ...failed, actions: ["resume", "archive"] })).toBe(true);
  expect(canBegin({ ...failed, actions: ["restart", "archive"] })).toBe(true);
});

test("durations read as on the command line", () => {
  expect([0, 45, 185, 3600, 7800, 90000].map(duration)).toEqual(["0s", "45s", "3m 5s", "1h 0m", "2h 10m", "1d 1h"]);
});

test("a list counts no seconds after the first minute", () => {
  expect([-1, 0, 59, 60, 3599, 3600, 86399, 86400].map(elapsed)).toEqual([
    "0s",
    "0s",
    "59s",
    "1m",
    "59m",
    "1h",
    "23h",
    "1d",
  ]);
});

test("a session is placed by its repository, wherever its worktree is", () => {
  const workspace = { id: "w", path: "/home/.hitch/w/fix", branch: "fix-auth", repository: "/src/shop" };
  expect(whereabouts(session({ workspace }))).toBe("claude · shop ⎇ fix-auth");
  expect(["shop", "fix-auth", "/src/shop"].every((text) => matches(session({ workspace }), text))).toBe(true);
});

test("a command line becomes words without a shell", () => {
  expect(argv(`sh -c 'echo "a b"' x\\ y "" $HOME`)).toEqual(["sh", "-c", 'echo "a b"', "x y", "", "$HOME"]);
  expect(argv("  ")).toEqual([]);
});

test("the filter wants every word, anywhere", () => {
  const shown = session({ name: "fix-auth", label: "failed: command exited with code 1", status: "failed" });
  expect(["", "AUTH", "fix failed", "shop", "claude"].every((text) => matches(shown, text))).toBe(true);
  expect(matches(shown, "auth codex")).toBe(false);
});

test("characters that are shown as escapes are found as they are shown, and as they are", () => {
  const hidden = session({ name: "de\u202ev" });
  expect(["de\\u202ev", "\\U202E", "de\u202ev"].every((text) => matches(hidden, text))).toBe(true);
  expect(matches(hidden, "\\u200b")).toBe(false);
  expect(matches(session({ name: "a\\b" }), "a\\b")).toBe(true);
  expect(byName([session({ name: "other" }), hidden], "de\\u202ev").map(({ name }) => name)).toEqual([
    "de\u202ev",
    "other",
  ]);
});

test("a receipt says what proved the delivery, or that nothing did", () => {
  const answer = { delivered: true, offset: 0, started: false, waits: false, since: "", session: session({}) };
  expect(receipt({ ...answer, proof: "UserPromptSubmit" })).toBe("Delivered (UserPromptSubmit)");
  expect(receipt({ ...answer, proof: "" })).toBe("Typed, not confirmed");
  expect(receipt({ ...answer, proof: "", started: true })).toBe("Typed, not confirmed, to a new run");
  expect(receipt({ ...answer, proof: "", waits: true })).toBe("Queued: the agent gets it when it is done");
});

test("a label counts on by itself, from the moment that the hub names", () => {
  const quiet = { quiet_since: "2026-05-04T12:00:00Z", label: "running (idle 30s)" };
  const now = Date.parse("2026-05-04T12:02:15Z");
  expect(label(session(quiet), now)).toBe("running (idle 2m 15s)");
  const problem = { ...quiet, label: "running (idle 1m 0s) (unreadable file, see hitch doctor)" };
  expect(label(session(problem), now)).toBe("running (idle 2m 15s) (unreadable file, see hitch doctor)");
  expect(label(session({ label: "failed: left 3s)" }), now)).toBe("failed: left 3s)");
});

test("a name that is typed finds its session first, and the order stays where no name has it", () => {
  const all = ["cacp", "claude-2", "my-cl", "cl", "other"].map((name) => ({ name }));
  expect(byName(all, "CL").map(({ name }) => name)).toEqual(["cl", "claude-2", "my-cl", "cacp", "other"]);
  expect(byName(all, "")).toEqual(all);
});
