/** What the rail lists, and how a person has set it. */

import { computed, effect, type Signal, signal } from "@preact/signals";
import { byProject, byState, ENDED, inPlace, isSameOrder, NEEDS_YOU, type Part, WORKING } from "./sections";
import { density } from "./settings";
import type { Session } from "./shapes";
import { sessions } from "./store";
import { projectsOf } from "./wish";
import { isListed, matches, project } from "./words";

/** So many rows of a part are drawn, and as many more each time their end comes into sight. */
export const STEP = 60;
const REST_MS = 30_000;

export const filter = signal("");
export const showArchived = signal(false);
/** The record that alone is listed; empty for the usual ones. */
export const record = signal("");
/** The part that alone is listed; empty for all. */
export const only = signal("");

// what this browser remembers
export const onlyProject = kept("project", "");
export const grouping = kept<"state" | "project">("grouping", "state");
export const folded = kept<readonly string[]>("folded", [ENDED]);

/** One line for each session: the page's density. */
export const compact = {
  get value(): boolean {
    return density.value === "compact";
  },
  set value(is: boolean) {
    density.value = is ? "compact" : "comfortable";
  },
};

/** Lines such as "62 more failed" that were clicked. */
export const unfolded = signal<ReadonlySet<string>>(new Set());
export const selected = signal<ReadonlySet<string>>(new Set());
/** The session whose menu is open, and where. */
export const menuOf = signal<{ id: string; x: number; y: number } | null>(null);
/** A pointer is over the list: nothing moves under it. */
export const held = signal(false);

/** Those that are listed when nobody asks for others. */
export const usual = computed(() => [...sessions.value.values()].filter(isListed));
export const needYou = computed(() => usual.value.filter((session) => session.section === NEEDS_YOU));
export const working = computed(() => usual.value.filter((session) => session.section === WORKING).length);

/** So many signs may turn at once: each is a layer of its own, and the browser puts all of them together anew. */
const MOST_TURNING = 12;
export const isCalm = computed(() => working.value > MOST_TURNING);

export const projects = computed(() => projectsOf(usual.value));

export const listed = computed(() => {
  const wanted = filter.value.trim();
  const byName = /\b(error|archived)\b/i.exec(wanted)?.[1]?.toLowerCase();
  const isWanted = (session: Session) =>
    isListed(session) || (showArchived.value && session.record === "archived") || session.record === byName;
  // one that has no session any more hides none
  const within = projects.value.some(({ path }) => path === onlyProject.value) ? onlyProject.value : "";
  return [...sessions.value.values()].filter(
    (session) =>
      (record.value ? session.record === record.value : isWanted(session)) &&
      (!within || project(session) === within) &&
      (!wanted || matches(session, wanted)),
  );
});

const fresh = computed(() => (grouping.value === "state" ? byState(listed.value, isFolded) : byProject(listed.value)));

/** What changes only when a person asks for another list. */
const view = computed(() =>
  JSON.stringify([filter.value, showArchived.value, record.value, onlyProject.value, grouping.value]),
);
let before: { view: string; parts: Part[] } = { view: "", parts: [] };

export const parts = computed(() => {
  const [seen, now] = [view.value, fresh.value];
  const shown = held.value && before.view === seen ? inPlace(before.parts, now) : now;
  before = { view: seen, parts: shown };
  return shown;
});

/** Whether the list would be another one if the pointer were elsewhere. */
export const waits = computed(() => held.value && !isSameOrder(parts.value, fresh.value));

/** Whoever searches, or looks at old records, wants to see what was found. */
export const isFolded = (key: string): boolean =>
  folded.value.includes(key) && only.value !== key && !filter.value.trim() && !record.value && !showArchived.value;

export function fold(key: string): void {
  const others = folded.value.filter((known) => known !== key);
  folded.value = others.length < folded.value.length ? others : [...others, key];
}

export function select(id: string, wanted: boolean): void {
  const next = new Set(selected.value);
  if (wanted) next.add(id);
  else next.delete(id);
  selected.value = next;
}

/** From the one that was selected last to this one. `drawn` are those that a person sees: nobody selects what is folded. */
export function selectTo(id: string, drawn: readonly string[]): void {
  const [last, to] = [drawn.indexOf([...selected.value].at(-1) ?? id), drawn.indexOf(id)];
  const from = last < 0 ? to : last;
  selected.value = new Set([...selected.value, ...drawn.slice(Math.min(from, to), Math.max(from, to) + 1)]);
}

/** Those that are selected and still there. */
export const chosen = computed(() => [...selected.value].flatMap((id) => sessions.value.get(id) ?? []));

let resting: ReturnType<typeof setTimeout> | undefined;

/** While it moves over the list, and as long as it may be about to click. */
export function hold(): void {
  if (!matchMedia("(hover: hover)").matches) return;
  held.value = true;
  clearTimeout(resting);
  resting = setTimeout(letGo, REST_MS);
}

export function letGo(): void {
  clearTimeout(resting);
  held.value = false;
}

function kept<T>(name: string, first: T): Signal<T> {
  const made = signal(remembered(name, first));
  effect(() => localStorage.setItem(name, JSON.stringify(made.value)));
  return made;
}

function remembered<T>(name: string, first: T): T {
  try {
    const found = JSON.parse(localStorage.getItem(name) ?? "null") as T | null;
    return found !== null && typeof found === typeof first && Array.isArray(found) === Array.isArray(first)
      ? found
      : first;
  } catch {
    return first;
  }
}
