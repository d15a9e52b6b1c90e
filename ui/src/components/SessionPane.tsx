import { useState } from "preact/hooks";
import { useChat } from "../following";
import { replaying } from "../replay";
import type { Session } from "../shapes";
import { inTerminal, mayChange, panel } from "../store";
import { ChatView } from "./ChatView";
import { EndBar } from "./EndBar";
import { HeadlineBar } from "./Headline";
import { KeyBar } from "./KeyBar";
import { PlayerBox } from "./PlayerBox";
import { PromptBox } from "./PromptBox";
import { SearchBar } from "./SearchBar";
import { SidePanel } from "./SidePanel";
import { SizeNote } from "./SizeNote";
import { TerminalBox } from "./TerminalBox";
import { Toolbar } from "./Toolbar";

/** What comes and goes lies over the terminal, and what stays lies beside it: the terminal keeps its size. */
export function SessionPane({ session }: { session: Session }) {
  const [searching, setSearching] = useState(false);
  const onKeyDown = (event: KeyboardEvent) => {
    if (!event.ctrlKey || !event.shiftKey || event.code !== "KeyF") return;
    event.preventDefault();
    setSearching(true);
  };
  const moment = replaying.value?.session === session.id ? replaying.value : null;
  const inChat = session.chat && !inTerminal.value.has(session.id);
  const followed = useChat(session);
  return (
    <section class="pane" aria-label={session.name} onKeyDown={onKeyDown}>
      <Toolbar session={session} onSearch={() => setSearching(!searching)} />
      {moment ? null : <HeadlineBar session={session} remark />}
      <div class="screen">
        {moment ? (
          <PlayerBox session={session} moment={moment} />
        ) : inChat ? (
          <ChatView session={session} followed={followed} />
        ) : (
          <>
            <TerminalBox id={session.id} name={session.name} focus />
            <SizeNote session={session} />
            {searching ? <SearchBar id={session.id} onClose={() => setSearching(false)} /> : null}
          </>
        )}
        {panel.value ? <SidePanel session={session} which={panel.value} /> : null}
      </div>
      {moment ? null : (
        <>
          <EndBar session={session} />
          {inChat ? null : <KeyBar session={session} />}
          {mayChange.value ? (
            <PromptBox session={session} images={session.chat ? followed.images.value : false} />
          ) : null}
        </>
      )}
    </section>
  );
}
