"""``hitch top``: every session at a glance in a terminal, those that need you first, with the screen of one of them.

It works with a hub and without one, and draws only what has changed.
"""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import Resize
from textual.notifications import SeverityLevel
from textual.reactive import reactive
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import Worker, WorkerError

from hitchpost.errors import FAILURES, HitchpostError
from hitchpost.model.headline import ENDED, NEEDS_YOU
from hitchpost.ops.views.session_types import Session
from hitchpost.text import visible
from hitchpost.tui import deeds, rows, source
from hitchpost.tui.dialogs import Confirm, Keys, Line, NewSession
from hitchpost.tui.preview import Preview

TICK_S = 1.0
SETTLE_S = 0.15
"""Who walks through the list wants to see the screen of where they stop."""
SNOOZE_S = 3600.0
SWITCH_S = 0.001
"""A look at the files goes on beside the keys: it waits for them, and not they for it."""
AIM_S = 0.4
"""Who presses a key sooner has aimed at what was asked before."""
EMPTY = "No sessions yet. n starts one in this folder."
FOOT = ("? keys", "Enter attach", "r reply", "1-9 answer", "n new", "s stop", "R resume")
KEYS = """\
Enter   attach: enter its terminal    r   reply: send a prompt
1-9     answer what it asks           a   answer in words
s       stop                          R   resume, or start again
d       what it changed               l   what it printed
p       pin                           z   quiet for an hour
x       mark as seen                  A   archive
g       next that needs you           f   show all ended ones
n       new session                   /   filter
j k     down, up                      q   quit
"""


class Foot(Static):
    """How it stands, who says so, and as many keys as there is room for."""

    stands, told_by = "", ""

    def say(self, stands: str, told_by: str) -> None:
        if (stands, told_by) != (self.stands, self.told_by):
            self.stands, self.told_by = stands, told_by
            self.refresh()

    def render(self) -> Text:
        text = Text.assemble(
            (f"{self.stands}  ", "bold"), (f"{self.told_by} ", "dim"), no_wrap=True, overflow="ellipsis"
        )
        for key in FOOT:
            if text.cell_len + 2 + cell_len(key) > self.content_size.width:
                break
            text.append(f"  {key}", "dim")
        return text


class Rows(OptionList):
    """Each has one line, so what changes in one moves no other, and only that one is drawn again."""

    highlighted: reactive[int | None] = reactive(None, repaint=False)

    def watch_highlighted(self, old: int | None, new: int | None) -> None:  # type: ignore[override]
        for at in (old, new):
            if at is not None:
                self.refresh_line(at)
        super().watch_highlighted(new)

    def in_sight(self) -> list[str]:
        """The keys of the rows that can be seen."""
        top = self.scroll_offset.y
        return [option.id or "" for option in self.options[top : top + self.size.height]]

    def replace_lines(self, lines: Mapping[str, Text]) -> None:
        """The list's own way measures every row anew."""
        changed = set()
        for key, line in lines.items():
            at = self.get_option_index(key)
            option = self.get_option_at_index(at)
            option._set_prompt(line)
            changed.add(option)
            if 0 <= at - self.scroll_offset.y < self.size.height:
                self.refresh_line(at)
        for drawn in [*self._option_render_cache.keys()]:
            if drawn[0] in changed:
                self._option_render_cache.discard(drawn)


class Dashboard(App[None]):
    TITLE = "Hitchpost"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { background: #0f1115; color: #e6e8eb; }
    #list { width: 42%; min-width: 34; background: #0f1115; border: none; scrollbar-size-vertical: 1;
        text-wrap: nowrap; text-overflow: ellipsis; }
    #list > .option-list--option-highlighted { background: #262b33; }
    #list:focus > .option-list--option-highlighted { background: #2d3440; }
    #right { border-left: solid #262b33; }
    #head { height: 1; padding: 0 1; background: #161a20; }
    #asks { height: auto; max-height: 4; padding: 0 1; background: #161a20; color: #e0a458; display: none; }
    #screen { scrollbar-size: 1 1; }
    #picture { width: auto; padding: 0 1; }
    #filter { display: none; height: 1; border: none; background: #161a20; }
    #foot { height: 1; background: #161a20; color: #9aa4b2; padding: 0 1; }
    Screen.narrow #right { display: none; }
    Screen.narrow #list { width: 100%; }
    ModalScreen { align: center middle; background: #0f1115 60%; }
    .dialog { width: 76; max-width: 90%; height: auto; padding: 1 2; background: #161a20; border: solid #262b33; }
    .dialog .title { text-style: bold; }
    .dialog .hint { color: #9aa4b2; }
    .dialog Input { border: none; background: #262b33; height: 1; margin-bottom: 1; }
    """
    BINDINGS: ClassVar = [
        Binding("q,ctrl+c", "quit", "Quit"),
        Binding("j", "move(1)"),
        Binding("k", "move(-1)"),
        Binding("g", "next_in_need"),
        Binding("r", "reply"),
        Binding("a", "answer_in_words"),
        Binding("s", "stop"),
        Binding("R", "start_again"),
        Binding("d", "show('diff')"),
        Binding("l", "show('logs')"),
        Binding("p", "pin"),
        Binding("z", "snooze"),
        Binding("x", "see"),
        Binding("A", "archive"),
        Binding("f", "unfold"),
        Binding("n", "new"),
        Binding("slash", "filter"),
        Binding("question_mark", "keys"),
        *(Binding(str(number), f"answer({number})") for number in range(1, 10)),
    ]

    def __init__(self, home: str) -> None:
        super().__init__()
        self.home = home
        self.sessions: Mapping[str, Session] = {}
        self.told_by = "…"
        self.unfolded = False
        self.wanted = ""
        self.preview = Preview(home, self._show_picture)
        self._following: Worker[None] | None = None
        self._followed: tuple[str, int, bool] | None = None
        self._asked = ""
        self._asked_at = 0.0
        self._shown: dict[str, Text] = {}
        self._ages: dict[str, str] = {}
        self._order: list[str] = []
        # kept, because what is still under way when the app is left finds none of them on the screen
        self.list = Rows(id="list", markup=False)
        self._head, self._asks, self._picture = Static(id="head"), Static(id="asks"), Static(id="picture")
        self._screen = VerticalScroll(self._picture, id="screen", can_focus=False)
        self._filter = Input(placeholder="filter", id="filter")
        self._foot = Foot(id="foot")

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield self.list
            yield Vertical(self._head, self._asks, self._screen, id="right")
        yield self._filter
        yield self._foot

    def on_mount(self) -> None:
        self.list.focus()
        self._say("")
        self.run_worker(self._listen(), name="sessions")
        self.set_interval(TICK_S, self._tick)
        self.watch(self.list, "scroll_y", self._tick, init=False)

    def on_resize(self, event: Resize) -> None:
        """The app's own size is still the one before."""
        self.screen_stack[0].set_class(event.size.width < NARROW, "narrow")

    async def on_unmount(self) -> None:
        if self._following is not None:
            self._following.cancel()
            with suppress(WorkerError):
                await self._following.wait()
        await asyncio.to_thread(self.preview.close)

    @property
    def chosen(self) -> Session | None:
        option = self.list.highlighted_option if self.list.option_count else None
        return self.sessions.get(option.id or "") if option is not None else None

    # what is known ------------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        async for told_by, known in source.sessions(self.home):
            is_first = not self.sessions
            self.told_by, self.sessions = told_by, known
            self._draw()
            if is_first:
                gc.freeze()  # what is there by now stays: to go through all of it now and then would hold up a key

    def _tick(self) -> None:
        """What is out of sight grows older when it is scrolled to. Only the first minute counts seconds."""
        now = datetime.now(UTC)
        older: dict[str, Text] = {}
        for key in self.list.in_sight():
            session = self.sessions.get(key)
            if session is not None and (age := rows.age(session["since"], now)) != self._ages.get(key):
                older[key], self._ages[key] = rows.row(session, now), age
        self._shown |= older
        self.list.replace_lines(older)

    def _draw(self) -> None:
        found = rows.sections(self.sessions.values(), self.wanted)
        now = datetime.now(UTC)
        lines: dict[str, Text] = {}
        for section, part in found.items():
            shown = part if section != ENDED or self.unfolded or self.wanted else part[: rows.FOLDED]
            if part:
                lines[f"section:{section}"] = rows.title(section, len(part), len(part) - len(shown))
                lines |= {session["id"]: rows.row(session, now) for session in shown}
        if list(lines) != self._order:
            self._relist(lines)
        else:
            self.list.replace_lines({key: line for key, line in lines.items() if self._shown[key] != line})
        self._shown = lines
        self._ages = {key: rows.age(self.sessions[key]["since"], now) for key in lines if key in self.sessions}
        self._say(rows.counts(rows.sections(self.sessions.values()) if self.wanted else found))
        self._describe()

    def _relist(self, lines: dict[str, Text]) -> None:
        """Whoever has chosen a session keeps it, wherever it goes."""
        chosen = self.chosen
        self._order = list(lines)
        with self.prevent(OptionList.OptionHighlighted):
            self.list.set_options(
                [Option(line, id=key, disabled=key.startswith("section:")) for key, line in lines.items()]
            )
            if chosen is not None and chosen["id"] in lines:
                self.list.highlighted = self._order.index(chosen["id"])
            elif len(lines) > 1:
                self.list.highlighted = 1

    def _say(self, counts: str) -> None:
        self._foot.say(counts if self.sessions else EMPTY, visible(self.told_by))

    # the one that is chosen ---------------------------------------------------------------------------------------

    def on_option_list_option_highlighted(self) -> None:
        self._describe()

    def _describe(self) -> None:
        session = self.chosen
        asks = self._asks
        self._put(self._head, Text() if session is None else rows.head(session), layout=False)
        text = "" if session is None else _question(session)
        self._put(asks, Text(text))
        if (asked := _request(session)) != self._asked:
            self._asked, self._asked_at = asked, time.monotonic()
        if asks.display != bool(text):
            asks.display = bool(text)
        followed = None if session is None else (session["id"], session["run"], session["live"])
        if followed != self._followed:
            self._followed = followed
            if self._following is not None:
                self._following.cancel()
            self._show_picture(Text())
            if session is not None:
                self._following = self.run_worker(self._follow(session), name="preview")

    async def _follow(self, session: Session) -> None:
        await asyncio.sleep(SETTLE_S)
        try:
            await self.preview.follow(session)
        except FAILURES as error:
            self._show_picture(Text(visible(str(error)), "dim"))

    @staticmethod
    def _put(place: Static, text: Text, *, layout: bool = True) -> bool:
        """Whether it is another text than before: to arrange the screen takes longer than all the rest."""
        if place.content == text:
            return False
        place.update(text, layout=layout)
        return True

    def _show_picture(self, picture: Text) -> None:
        if self._put(self._picture, picture) and picture:
            self._screen.scroll_end(animate=False)

    # keys ---------------------------------------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        self.list.action_cursor_down() if by > 0 else self.list.action_cursor_up()

    def action_next_in_need(self) -> None:
        needing = [session["id"] for session in rows.sections(self.sessions.values(), self.wanted)[NEEDS_YOU]]
        needing = [key for key in needing if key in self._order]
        if not needing:
            self._tell("Nobody needs you.")
            return
        here = needing.index(self.chosen["id"]) if self.chosen and self.chosen["id"] in needing else -1
        self.list.highlighted = self._order.index(needing[(here + 1) % len(needing)])

    def on_option_list_option_selected(self) -> None:
        if self.chosen is not None:
            self._outside("attach", self.chosen["id"])

    def action_show(self, command: str) -> None:
        if self.chosen is not None:
            self._outside(command, self.chosen["id"], paged=True)

    def action_answer(self, number: int) -> None:
        session = self.chosen
        options = _options(session)
        if session is None or number > len(options):
            self._tell("It asks nothing that has such an answer.", "warning")
            return
        if time.monotonic() - self._asked_at < AIM_S:
            self._tell("It has just asked this. Look, then answer.", "warning")
            return
        self._do(deeds.answer, session, options[number - 1])

    def action_answer_in_words(self) -> None:
        session = self.chosen
        if session is None or not _request(session):
            self._tell("It asks nothing.", "warning")
            return
        self._ask_line(f"Answer {session['name']}", _question(session), deeds.answer, session)

    def action_reply(self) -> None:
        session = self.chosen
        if session is None:
            return
        if not session["takes_prompt"] or session["refusal"]:
            why = session["refusal"] or f"it is {session['label']}"
            self._tell(f"{session['name']} takes no prompt now: {why}", "warning")
            return
        self._ask_line(f"Prompt for {session['name']}", session["detail"], deeds.reply, session)

    def action_stop(self) -> None:
        self._confirm("Stop {}? It gets 10 s to quit, then it is killed.", deeds.stop)

    def action_start_again(self) -> None:
        if self.chosen is None:
            return
        if deeds.goes_on(self.chosen):
            self._confirm("Resume {}, with its conversation?", deeds.start_again)
        elif self.chosen["live"]:
            self._confirm("Stop {}, and start it again from scratch?", deeds.start_again)
        else:
            self._confirm("Start {} again, from scratch?", deeds.start_again)

    def action_archive(self) -> None:
        self._confirm("Archive {}? It stays readable.", deeds.archive)

    def action_pin(self) -> None:
        if self.chosen is not None:
            self._do(deeds.pin, self.chosen)

    def action_snooze(self) -> None:
        if self.chosen is not None:
            self._do(deeds.snooze, self.chosen, 0.0 if rows.is_snoozed(self.chosen) else SNOOZE_S)

    def action_see(self) -> None:
        if self.chosen is not None:
            self._do(deeds.see, self.chosen)

    def action_unfold(self) -> None:
        self.unfolded = not self.unfolded
        self._draw()

    def action_keys(self) -> None:
        self.push_screen(Keys(KEYS))

    def action_new(self) -> None:
        def given(fields: dict[str, str] | None) -> None:
            if fields:
                self._carry_out(partial(deeds.new, self.home, **fields))

        self.push_screen(NewSession(deeds.usual_agent(self.sessions.values())), given)

    def action_filter(self) -> None:
        line = self._filter
        line.styles.display = "block"
        line.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "filter":
            self.wanted = event.value
            self._draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "filter":
            event.input.styles.display = "block" if event.value else "none"
            self.list.focus()

    def on_key(self, event: Any) -> None:
        line = self._filter
        if event.key == "escape" and (line.has_focus or line.value):
            line.value = ""
            line.styles.display = "none"
            self.list.focus()

    # doing --------------------------------------------------------------------------------------------------------

    def _confirm(self, question: str, deed: Callable[..., str]) -> None:
        session = self.chosen
        if session is not None:
            asked = question.format(session["name"])
            self.push_screen(Confirm(asked), lambda yes: self._do(deed, session) if yes else None)

    def _ask_line(self, question: str, detail: str, deed: Callable[..., str], session: Session) -> None:
        self.push_screen(Line(question, detail), lambda text: self._do(deed, session, text) if text else None)

    def _do(self, deed: Callable[..., str], session: Session, *more: object) -> None:
        self._carry_out(partial(deed, self.home, session, *more))

    def _carry_out(self, deed: Callable[[], str]) -> None:
        self.run_worker(self._told(deed), name="deed")

    async def _told(self, deed: Callable[[], str]) -> None:
        try:
            self._tell(await asyncio.to_thread(deed))
        except (*FAILURES, ValueError) as error:
            hint = f"; {error.hint}" if isinstance(error, HitchpostError) and error.hint else ""
            self._tell(f"{error}{hint}", "error")

    def _tell(self, text: str, severity: SeverityLevel = "information") -> None:
        self.notify(visible(text), severity=severity, markup=False)

    def _outside(self, *words: str, paged: bool = False) -> None:
        """Another command of ours has the terminal meanwhile."""
        command = [sys.executable, "-m", "hitchpost", *words]
        pager = shutil.which("less")
        if paged and pager is None:
            self._tell(f"less is not installed; hitch {' '.join(words)} prints it", "warning")
            return
        with self.suspend():
            if pager is None or not paged:
                code = subprocess.run(command).returncode
            else:
                made = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                code = subprocess.run([pager, "-R", *PAGED.get(words[0], ())], stdin=made.stdout).returncode
                made.kill()
                made.wait()
        self.refresh()
        if code and not paged:
            self._tell(f"hitch {' '.join(words)} ended with code {code}", "warning")


PAGED = {"logs": ("+G",)}
"""How less shows what a command prints, where that is not from its beginning."""
NARROW = 90
"""Below so many columns the list has the terminal for itself."""


def _request(session: Session | None) -> str:
    """Names what can be answered now; empty where nothing can."""
    report = session["report"] if session is not None else None
    return (report["request"] or "") if report is not None else ""


def _options(session: Session | None) -> list[str]:
    report = session["report"] if session is not None else None
    return list(report["options"]) if report is not None and report["request"] else []


def _question(session: Session) -> str:
    """What it asks, and the keys that answer it; empty where it asks nothing."""
    keys = "   ".join(f"{number} {visible(option)}" for number, option in enumerate(_options(session), 1))
    if session["section"] != NEEDS_YOU or not (session["detail"] or keys):
        return ""
    return "\n".join(filter(None, (visible(session["detail"]), keys)))


def run(home: str) -> None:
    sys.setswitchinterval(SWITCH_S)
    for stale in ("COLUMNS", "LINES"):  # the terminal itself knows its size
        os.environ.pop(stale, None)
    Dashboard(home).run()
