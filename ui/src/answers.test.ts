import { beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "./request";
import { session } from "./sample";
import type { Session } from "./shapes";

vi.stubGlobal("location", { search: "" }); // Node has no address bar
const { answer, answered, requestOf } = await import("./answers");
const { notices } = await import("./store");
const ask = vi.fn();

const asking = (fields: Partial<NonNullable<Session["report"]>> = {}): Session =>
  session({
    report: {
      state: "blocked",
      kind: "permission",
      message: "Bash: touch a",
      request: "7",
      options: ["yes", "no"],
      takes_text: false,
      background: 0,
      until: null,
      ends_at: null,
      source: "hooks",
      at: "2026-05-04T12:00:00Z",
      ...fields,
    },
  });

beforeEach(() => {
  ask.mockReset();
  answered.value = new Map();
  notices.value = [];
});

test("only what is asked now, and takes an answer, can be answered", () => {
  expect(requestOf(asking())).toMatchObject({ request: "7", options: ["yes", "no"] });
  for (const other of [{ request: null }, { options: [] }, { state: "working" }])
    expect(requestOf(asking(other))).toBe(null);
  expect(requestOf(asking({ options: [], takes_text: true }))).toMatchObject({ options: [], takesText: true });
  expect(requestOf({ ...asking(), live: false })).toBe(null);
  expect(requestOf(session({}))).toBe(null);
});

test("the request that was shown is answered, and once", async () => {
  const shown = asking();
  const asked = requestOf(shown)!;
  await answer(shown, asked, "no", "not that one", ask);
  await answer(shown, asked, "yes", "", ask);
  const body = { choice: "no", request: "7", message: "not that one" };
  expect(ask.mock.calls).toEqual([["POST", `/api/sessions/${shown.id}/answer`, body]]);
  const next = requestOf(asking({ at: "2026-05-04T12:01:00Z" }))!;
  expect(answered.value.get(shown.id)).not.toBe(next.key);
});

test("that somebody else was faster is told, and it stays answered", async () => {
  const shown = asking();
  ask.mockRejectedValue(new ApiError(409, "refused", "not answered: nothing is asked", ""));
  await answer(shown, requestOf(shown)!, "yes", "", ask);
  expect(notices.value.map((notice) => notice.text)).toEqual(["dev: already answered."]);
  expect(answered.value.get(shown.id)).toBe(requestOf(shown)!.key);
});

test("an answer that did not reach the hub can be given again", async () => {
  const shown = asking();
  ask.mockRejectedValue(new ApiError(0, "no_hub", "the hub does not answer", ""));
  await answer(shown, requestOf(shown)!, "yes", "", ask);
  expect(notices.value.map((notice) => notice.text)).toEqual(["the hub does not answer"]);
  expect(answered.value.get(shown.id)).toBe("");
});
