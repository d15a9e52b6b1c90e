import { useState } from "preact/hooks";
import { replaying } from "../replay";
import type { Session } from "../shapes";
import { owner } from "../store";
import { EndBar } from "./EndBar";
import { HeadlineBar } from "./Headline";
import { KeyBar } from "./KeyBar";
import { PlayerBox } from "./PlayerBox";
import { PromptBox } from "./PromptBox";
import { SearchBar } from "./SearchBar";
import { TerminalBox } from "./TerminalBox";
import { Toolbar } from "./Toolbar";

export function SessionPane({ session }: { session: Session }) {
  const [searching, setSearching] = useState(false);
  const onKeyDown = (event: KeyboardEvent) => {
    if (!event.ctrlKey || !event.shiftKey || event.code !== "KeyF") return;
    event.preventDefault();
    setSearching(true);
  };
  const moment = replaying.value?.session === session.id ? replaying.value : null;
  return (
    <section class="pane" aria-label={session.name} onKeyDown={onKeyDown}>
      <Toolbar session={session} onSearch={() => setSearching(!searching)} />
      {moment ? (
        <PlayerBox session={session} moment={moment} />
      ) : (
        <Present session={session} searching={searching} onFound={() => setSearching(false)} />
      )}
    </section>
  );
}

function Present({ session, searching, onFound }: { session: Session; searching: boolean; onFound: () => void }) {
  return (
    <>
      {searching ? <SearchBar id={session.id} onClose={onFound} /> : null}
      <HeadlineBar session={session} remark />
      <TerminalBox id={session.id} name={session.name} focus />
      <EndBar session={session} />
      <KeyBar session={session} />
      {owner.value ? <PromptBox session={session} /> : null}
    </>
  );
}
