/** The chat of a session, read as it goes on. */

import { useEffect, useRef, useState } from "preact/hooks";
import { ask, sessionPath } from "./api";
import { Chat } from "./chat";
import type { Chat as ChatPart, Session } from "./shapes";
import { onOutput, viewOf } from "./views";

export interface Following {
  chat: Chat;
  trouble: string;
}

/**
 * The session's own output tells when there is more to read: nothing is asked for again and again. Of a session without a
 * chat nothing is asked at all, and while nobody `looks` only what there is by now.
 */
export function useChat(session: Session, looks: boolean): Following {
  const state = useRef({ chat: new Chat(), next: 0 });
  const [, draw] = useState(0);
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    if (!session.chat) return;
    const mine = state.current;
    let [busy, stale, over] = [false, false, false];
    const read = async () => {
      stale = true;
      if (busy) return;
      busy = true;
      while (stale && !over) {
        stale = false;
        try {
          const found = await ask<ChatPart>("GET", `${sessionPath(session.id, "chat")}?start=${mine.next}`);
          if (over) break;
          stale ||= found.next > mine.next;
          mine.next = found.next;
          mine.chat.add(found.lines);
          setTrouble("");
          draw((count) => count + 1);
        } catch (error) {
          if (!over) setTrouble((error as Error).message);
        }
      }
      busy = false;
    };
    if (looks) viewOf(session.id).attach();
    const quiet = looks ? onOutput(session.id, () => void read()) : () => undefined;
    void read();
    return () => {
      over = true;
      quiet();
    };
  }, [session.id, session.chat, session.run, session.state, looks]);
  return { chat: state.current.chat, trouble };
}
