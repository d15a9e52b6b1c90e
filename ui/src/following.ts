/** The chats of the sessions that are open: their lines come over the connection, as they are written. */

import { effect, type Signal, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Chat } from "./chat";
import type { ChatLines, FollowChat, LeaveChat, Session } from "./shapes";
import { tabs } from "./store";

export class Followed {
  readonly chat = new Chat();
  /** How often something came: what shows the chat is drawn again then. */
  readonly told: Signal<number> = signal(0);
  /** Whether the agent takes images; undefined as long as it has not said so. */
  readonly images: Signal<boolean | undefined> = signal(undefined);
  /** The offset of the first byte that is not here yet. */
  private next = 0;
  private readers = 0;

  constructor(private readonly id: string) {}

  /** Ask for what is not here yet, if anybody looks. */
  ask(): void {
    if (this.readers > 0) send({ type: "chat.follow", sessionId: this.id, from: this.next });
  }

  join(): () => void {
    if (++this.readers === 1) this.ask();
    return () => {
      if (--this.readers === 0) send({ type: "chat.leave", sessionId: this.id });
    };
  }

  /** What was asked for before something else came is here already. */
  take({ from, lines, next }: ChatLines): void {
    if (from !== this.next) return;
    this.next = next;
    this.chat.add(lines);
    this.images.value = this.chat.images;
    this.told.value++;
  }
}

let send: (wish: FollowChat | LeaveChat) => boolean = () => false;
const all = new Map<string, Followed>();

export function connectChats(sender: (wish: FollowChat | LeaveChat) => boolean): void {
  send = sender;
  effect(() => {
    for (const id of all.keys()) if (!tabs.value.includes(id)) all.delete(id);
  });
}

/** The connection is new: the hub does not know any more what is looked at. */
export function followAgain(): void {
  for (const followed of all.values()) followed.ask();
}

export const onChatLines = (told: ChatLines): void => all.get(told.sessionId)?.take(told);

/** The chat of a session, if it has one. A chat that was read before is there at once, and only the rest is asked for. */
export function useChat(session: Session): Followed {
  let followed = all.get(session.id);
  if (!followed) {
    followed = new Followed(session.id);
    all.set(session.id, followed);
  }
  const mine = followed;
  useEffect(() => (session.chat ? mine.join() : undefined), [mine, session.chat, session.run]);
  return mine;
}
