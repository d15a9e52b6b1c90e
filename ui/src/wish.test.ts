import { expect, test } from "vitest";
import { session } from "./sample";
import type { Folders } from "./shapes";
import { completed, habitsOf, inWords, isAbout, offered, projectsOf, shortened, slug, withHabit } from "./wish";

test.each([
  ["Fix the login test", "fix-the-login-test"],
  ["  Don't   panic!  ", "dont-panic"],
  ["Überprüfe die Größe (v2.0)", "uberprufe-die-große-v2-0"],
  ["ログインを直す", "ログインを直す"],
  ["\n\n# Title: a/b..c~d\nsecond line", "title-a-b-c-d"],
  ["one two three four five six seven eight nine ten", "one-two-three-four-five-six-seven-eight"],
  ["x".repeat(60), "x".repeat(40)],
  ["--force", "force"],
  ["?!", ""],
  ["", ""],
])("a branch is named from the prompt: %j", (prompt, name) => {
  expect(slug(prompt)).toBe(name);
});

const at = (path: string, created_at: string, repository: string | null = null) =>
  session({ id: path + created_at, created_at, workspace: { id: null, path, branch: null, repository } });

test("projects are where sessions worked last, and a worktree counts as its repository", () => {
  const found = projectsOf([
    at("/src/old", "2026-01-01T00:00:00Z"),
    at("/state/workspaces/1/shop", "2026-01-03T00:00:00Z", "/src/shop"),
    at("/src/shop", "2026-01-02T00:00:00Z", "/src/shop"),
    at("", "2026-01-04T00:00:00Z"),
  ]);
  expect(found).toEqual([
    { path: "/src/shop", name: "shop", live: 2 },
    { path: "/src/old", name: "old", live: 1 },
  ]);
});

test("projects of one name are told apart", () => {
  const found = projectsOf([at("/a/shop", "2026-01-02T00:00:00Z"), at("/b/shop", "2026-01-01T00:00:00Z")]);
  expect(found.map(({ name }) => name)).toEqual(["a/shop", "b/shop"]);
});

test("a path below the home folder is short", () => {
  expect(shortened("/home/me/shop", "/home/me")).toBe("~/shop");
  expect(shortened("/home/me", "/home/me")).toBe("~");
  expect(shortened("/home/meadow", "/home/me")).toBe("/home/meadow");
  expect(shortened("/etc", "/")).toBe("/etc");
});

const FOUND: Folders = {
  path: "/home/me/sh",
  home: "/home/me",
  is_folder: false,
  repository: null,
  branch: null,
  folders: [
    { path: "/home/me/shelf", repository: false },
    { path: "/home/me/shop", repository: true },
  ],
  cut: false,
};

test("an answer that is about something else offers nothing", () => {
  expect(isAbout(FOUND, "~/sh")).toBe(true);
  expect(isAbout(FOUND, "/home/me/sh/")).toBe(true);
  expect(isAbout(FOUND, "~/sho")).toBe(false);
  expect(isAbout({ ...FOUND, path: "/home/me/" }, "~")).toBe(true);
  expect(offered(FOUND, "~/sh")).toHaveLength(2);
  expect(offered(FOUND, "~/sho")).toEqual([]);
  expect(offered(undefined, "~/sh")).toEqual([]);
});

test("a path that is whole offers only longer ones", () => {
  const whole = { ...FOUND, path: "/home/me/shop", folders: [{ path: "/home/me/shop", repository: true }] };
  expect(offered(whole, "~/shop")).toEqual([]);
  const more = { ...whole, folders: [...whole.folders, { path: "/home/me/shop-old", repository: false }] };
  expect(offered(more, "~/shop")).toHaveLength(2);
});

test("a folder that was taken is written as the rest was, and goes on", () => {
  expect(completed("/home/me/shop", FOUND, "~/sh")).toBe("~/shop/");
  expect(completed("/home/me/shop", FOUND, "/home/me/sh")).toBe("/home/me/shop/");
});

test("habits outlive nonsense, and the oldest is forgotten", () => {
  expect(habitsOf("{nonsense").size).toBe(0);
  expect(habitsOf(null).size).toBe(0);
  expect(habitsOf('{"/a":{}}').get("/a")).toEqual({ agent: "", worktree: true });
  let kept = "{}";
  for (let n = 0; n < 60; n++) kept = withHabit(habitsOf(kept), `/src/${n}`, { agent: "bash", worktree: false });
  kept = withHabit(habitsOf(kept), "/src/20", { agent: "claude", worktree: true });
  const habits = habitsOf(kept);
  expect(habits.size).toBe(50);
  expect([...habits.keys()].at(-1)).toBe("/src/20");
  expect(habits.get("/src/20")).toEqual({ agent: "claude", worktree: true });
  expect(habits.get("/src/59")).toEqual({ agent: "bash", worktree: false });
});

test("errors are sentences of the page, without commands to type", () => {
  expect(inWords({ code: "name_taken", message: "session k3v9 is already named 'dev'" })).toBe(
    "Another session has this name. Choose another one.",
  );
  expect(inWords({ message: "branch main is checked out in /src", hint: "choose another branch, or work there" })).toBe(
    "Branch main is checked out in /src. Choose another branch, or work there.",
  );
  expect(inWords({ message: "dev ended at once", hint: "hitch logs dev shows what it printed" })).toBe(
    "Dev ended at once.",
  );
  expect(inWords({ field: "name", message: "name: String should have at most 128 characters" })).toBe(
    "It should have at most 128 characters.",
  );
});
