import { useState } from "preact/hooks";
import type { Session } from "../shapes";
import { EndBar } from "./EndBar";
import { KeyBar } from "./KeyBar";
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
  return (
    <section class="pane" aria-label={session.name} onKeyDown={onKeyDown}>
      <Toolbar session={session} onSearch={() => setSearching(!searching)} />
      {searching ? <SearchBar id={session.id} onClose={() => setSearching(false)} /> : null}
      <TerminalBox id={session.id} name={session.name} focus />
      <EndBar session={session} />
      <KeyBar session={session} />
      <PromptBox session={session} />
    </section>
  );
}
