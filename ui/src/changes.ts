/** Which sessions' files somebody looks at: the hub tells when they change. */

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { ask, sessionPath } from "./api";
import type { Difference } from "./shapes";

export type WatchWish = { type: "workspace.watch" | "workspace.unwatch"; sessionId: string };
export type WorkspaceChanged = { type: "workspace.changed"; sessionId: string };

/** A folder that is too large to be watched, or a hub that is away, is asked this often. */
const AGAIN_MS = 30_000;

let send: (wish: WatchWish) => boolean = () => false;
const watched = new Set<string>();
/** How often each session's files were told to have changed. */
const told = signal<ReadonlyMap<string, number>>(new Map());

export function connectChanges(sender: (wish: WatchWish) => boolean): void {
  send = sender;
}

/** The connection is new: the hub does not know any more what is looked at. */
export function watchAgain(): void {
  for (const id of watched) send({ type: "workspace.watch", sessionId: id });
}

export function onChanged({ sessionId }: WorkspaceChanged): void {
  told.value = new Map(told.value).set(sessionId, (told.value.get(sessionId) ?? 0) + 1);
}

/** A session's difference, as new as it can be. One is asked for at a time, however often it changes. */
export function useDifference(id: string, stamp: string): { value: Difference | undefined; trouble: string } {
  const [found, setFound] = useState<{ value: Difference | undefined; trouble: string }>({ value: undefined, trouble: "" });
  const [asking] = useState(() => new Asking<Difference>(sessionPath(id, "diff"), (value, trouble) => setFound({ value, trouble })));
  useEffect(() => {
    watched.add(id);
    send({ type: "workspace.watch", sessionId: id });
    const timer = setInterval(() => document.visibilityState === "visible" && asking.again(), AGAIN_MS);
    return () => {
      clearInterval(timer);
      asking.end();
      watched.delete(id);
      send({ type: "workspace.unwatch", sessionId: id });
    };
  }, [id]);
  useEffect(() => asking.again(), [stamp, told.value.get(id)]);
  return found;
}

class Asking<T> {
  private busy = false;
  private stale = false;
  private over = false;

  constructor(
    private readonly path: string,
    private readonly tell: (value: T | undefined, trouble: string) => void,
  ) {}

  again(): void {
    this.stale = true;
    if (!this.busy) void this.ask();
  }

  end(): void {
    this.over = true;
  }

  private async ask(): Promise<void> {
    this.busy = true;
    while (this.stale && !this.over) {
      this.stale = false;
      const [value, trouble] = await ask<T>("GET", this.path).then(
        (answer): [T | undefined, string] => [answer, ""],
        (error: Error): [T | undefined, string] => [undefined, error.message],
      );
      if (!this.over) this.tell(value, trouble);
    }
    this.busy = false;
  }
}
