/** Which sessions' files somebody looks at: the hub tells when they change. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask, sessionPath } from "./api";
import { type Fetched, useFetched } from "./fetched";
import type { Difference, Session, Watch, WorkspaceChanged } from "./shapes";

/** A folder that is too large to be watched, or a hub that is away, is asked this often. */
const AGAIN_MS = 30_000;

let send: (wish: Watch) => boolean = () => false;
const watched = new Set<string>();
/** How often each session's files were told to have changed. */
const told = signal<ReadonlyMap<string, number>>(new Map());

export function connectChanges(sender: (wish: Watch) => boolean): void {
  send = sender;
}

/** The connection is new: the hub does not know any more what is looked at. */
export function watchAgain(): void {
  for (const id of watched) send({ type: "workspace.watch", sessionId: id });
}

export function onChanged({ sessionId }: WorkspaceChanged): void {
  told.value = new Map(told.value).set(sessionId, (told.value.get(sessionId) ?? 0) + 1);
}

/** Have the changes of a session counted that nobody has counted yet: the hub then tells it to everybody. */
export function useCounted({ id, changes, workspace, actions }: Session): void {
  const asks = changes === null && workspace.id !== null && actions.includes("review");
  useEffect(() => {
    if (asks) ask("GET", sessionPath(id, "diff")).catch(() => undefined);
  }, [id, asks]);
}

/** A session's difference, as new as it can be. */
export function useDifference(id: string, stamp: string): Fetched<Difference> {
  useEffect(() => {
    watched.add(id);
    send({ type: "workspace.watch", sessionId: id });
    return () => {
      watched.delete(id);
      send({ type: "workspace.unwatch", sessionId: id });
    };
  }, [id]);
  return useFetched<Difference>(sessionPath(id, "diff"), `${stamp} ${told.value.get(id) ?? 0}`, AGAIN_MS);
}
