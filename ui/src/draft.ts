/** The new session that is being described. It outlives its dialog, so that Escape and Back lose nothing. */

import { signal } from "@preact/signals";

export interface Draft {
  prompt: string;
  folder: string;
  /** The address of a repository, for a session in a pod. */
  repo: string;
  /** Empty until a person chooses one, of those that pods can have. */
  profile: string;
  /** Null until a person says so: then it is as the last time in this project. */
  worktree: boolean | null;
  /** Null while it is named from the prompt. */
  branch: string | null;
  /** Empty until a person chooses one. */
  agent: string;
  command: string;
  runtime: string;
  name: string;
  image: string;
  model: string;
  permission_mode: string;
  /** Empty: as the settings say. */
  when_limit: "" | "stop" | "wait";
}

export type FieldName = keyof Draft;
export type Change = (change: Partial<Draft>) => void;

const EMPTY: Draft = {
  prompt: "",
  folder: "",
  repo: "",
  profile: "",
  worktree: null,
  branch: null,
  agent: "",
  command: "",
  runtime: "",
  name: "",
  image: "",
  model: "",
  permission_mode: "",
  when_limit: "",
};

export const draft = signal(EMPTY);
export const change: Change = (change) => (draft.value = { ...draft.value, ...change });
export const forget = () => (draft.value = EMPTY);
