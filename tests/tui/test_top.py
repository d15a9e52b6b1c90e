"""``hitch top`` in a terminal: what it shows, what its keys do, and what it leaves."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from hitchpost.hub.http.schemas import EXAMPLE
from hitchpost.tui.app import AIM_S, KEYS, Dashboard, Rows
from tests.cli.attaching import Terminals, Tty, terminals
from tests.cli.own_agents import ASKING, ASKS, own_agent
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.support import Hitch, eventually

SAYS = "printf '\\033]7501;state={}\\033\\\\'; echo {}; exec cat"


@pytest.fixture
def open_tty() -> Iterator[Terminals]:
    with terminals() as made:
        yield made


def reporting(ground: Ground, name: str, state: str, prints: str = "hello") -> Truth:
    session = ground.begin_sh(SAYS.format(state, prints), name=name)
    eventually(lambda: ground.ps(session)["report"], what="its report")
    return session


def top(open_tty: Terminals) -> Tty:
    return open_tty("top", cols=120, rows=30)


def quits(tty: Tty) -> None:
    tty.type(b"q")
    assert tty.ends() == 0
    assert tty.is_restored()


def test_sessions_are_in_their_sections_with_the_screen_of_the_chosen_one(ground: Ground, open_tty: Terminals) -> None:
    asks = reporting(ground, "asks", "blocked:kind=permission", "may I remove build")
    works = reporting(ground, "works", "working", "on it")
    assert ground.sh("exit 3", name="crash").ended() == "failed"
    tty = top(open_tty)
    tty.shows("may I remove build")
    tty.shows("Needs you 2")
    lines = tty.lines()
    shown = [next(n for n, line in enumerate(lines) if text in line) for text in ("Needs you", "Needs perm", "Failed")]
    assert shown == sorted(shown)
    assert "2 need you, 1 working" in lines[-1]
    tty.type(b"jj")
    tty.shows("on it")
    quits(tty)
    ground.end(asks)
    ground.end(works)


def test_a_terminal_that_becomes_wide_shows_the_screen_beside_the_list(ground: Ground, open_tty: Terminals) -> None:
    reporting(ground, "asks", "working", "only on its screen; echo the last line")
    tty = open_tty("top", cols=80, rows=30)
    tty.shows("asks")
    assert "only on its screen" not in tty.text()
    tty.resize(140, 30)
    tty.shows("only on its screen")
    quits(tty)


def test_a_change_is_shown_without_a_hub_and_with_one(ground: Ground, hub: HubProcess, open_tty: Terminals) -> None:
    works = reporting(ground, "works", "working")
    tty = top(open_tty)
    tty.shows("1 working  hub ")
    later = reporting(ground, "later", "blocked")
    tty.shows("Needs you 1")
    hub.kill()
    tty.shows("no hub")
    ground.end(later)
    tty.shows("Ended 1")
    quits(tty)
    ground.end(works)


def test_a_prompt_is_typed_into_the_chosen_session(ground: Ground, open_tty: Terminals) -> None:
    waits = reporting(ground, "waits", "idle")
    tty = top(open_tty)
    tty.shows("hello")
    tty.type(b"r")
    tty.shows("Prompt for waits")
    tty.type(b"go on please\r")
    eventually(lambda: b"go on please" in waits.output(), what="the prompt in its output")
    tty.shows("waits")
    quits(tty)
    ground.end(waits)


def test_a_key_answers_what_is_asked(ground: Ground, open_tty: Terminals) -> None:
    own_agent(ground.place, "asker", ASKS, ASKING)
    session = Truth(ground.home, ground.hitch("run", "asker", "--json").json()["id"])
    eventually(lambda: (ground.ps(session)["report"] or {}).get("request"), what="its request")
    tty = top(open_tty)
    tty.shows("Allow to touch it?")  # its screen, which comes later than its question

    def answered() -> bool:
        tty.type(b"1")
        return b"working" in session.output()

    tty.until(answered, "what follows the answer")
    quits(tty)
    ground.end(session)


class Deaf(Dashboard):
    """Knows what it is given, and does nothing but remember."""

    done: list[object]

    async def _listen(self) -> None:
        self.done = []

    def _carry_out(self, deed: Callable[[], str]) -> None:
        assert isinstance(deed, partial)
        self.done.append(deed.args[2])

    def know(self, **changes: object) -> None:
        """One session, as the example is but for ``changes``."""
        self.sessions = {"a": {**EXAMPLE, "id": "a", "conversation": None, **changes}}  # type: ignore[typeddict-item]
        self._draw()

    def all_text(self) -> str:
        return "\n".join("".join(part.text for part in line) for line in self.screen._compositor.render_strips())


async def pressed_at_once_and_later(home: str) -> tuple[list[object], list[object]]:
    report = {"state": "blocked", "request": "r1", "options": ["yes", "no"], "message": "May I?"}
    app = Deaf(home)
    async with app.run_test():
        app.know(report=report)
        app.action_answer(1)
        at_once = list(app.done)
        app._asked_at -= AIM_S
        app.action_answer(2)
        return at_once, app.done


def test_a_key_that_was_aimed_at_something_else_answers_nothing(ground: Ground) -> None:
    assert asyncio.run(pressed_at_once_and_later(str(ground.home))) == ([], ["no"])


async def told_while_left(home: str) -> None:
    app = Deaf(home)
    async with app.run_test():
        app.know(name="auth")
        await app.screen.remove_children()
        app.know(name="auth again")
        app._tick()
        app._show_picture(Text("a picture that comes late"))


def test_what_comes_while_it_is_left_is_no_error(ground: Ground) -> None:
    asyncio.run(told_while_left(str(ground.home)))


async def shown_after(home: str, *keys: str, cols: int = 150, **changes: object) -> str:
    app = Deaf(home)
    async with app.run_test(size=(cols, 40), notifications=True) as pilot:
        app.know(**changes)
        await pilot.press(*keys)
        await pilot.pause()
        return app.all_text()


async def drawn_by_keys(home: str, monkeypatch: pytest.MonkeyPatch) -> tuple[set[int], str]:
    """The lines of the list that one key draws, then what is shown at its end."""
    drawn: set[int] = set()
    render_line = Rows.render_line

    def noted(rows: Rows, y: int) -> Any:
        drawn.add(y)
        return render_line(rows, y)

    monkeypatch.setattr(Rows, "render_line", noted)
    app = Deaf(home)
    async with app.run_test(size=(150, 20)) as pilot:
        since = (datetime.now(UTC) - timedelta(minutes=2, seconds=1)).isoformat()
        names = [f"auth{number:02}" for number in range(40)]
        app.sessions = {
            name: {**EXAMPLE, "id": name, "name": name, "since": since, "detail": ""}  # type: ignore[typeddict-item]
            for name in names
        }
        app._draw()
        await pilot.pause()
        drawn.clear()
        await pilot.press("j")
        await pilot.pause()
        by_key = set(drawn)
        for name in names:
            app.sessions[name]["since"] = (datetime.now(UTC) - timedelta(minutes=10, seconds=1)).isoformat()
        await pilot.press("end")
        await pilot.pause()
        return by_key, app.all_text()


def test_a_key_draws_only_the_rows_that_it_changes_and_a_row_grows_old_out_of_sight(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_key, at_the_end = asyncio.run(drawn_by_keys(str(ground.home), monkeypatch))
    assert by_key == {1, 2}
    assert " · 10m" in at_the_end.partition("auth38")[2].splitlines()[0]


@pytest.mark.parametrize(
    ("actions", "live", "question"),
    [
        (["resume", "restart"], False, "Resume auth, with its conversation?"),
        (["restart"], False, "Start auth again, from scratch?"),
        (["stop", "restart"], True, "Stop auth, and start it again from scratch?"),
    ],
)
def test_starting_again_says_whether_the_conversation_goes_on_and_what_is_stopped(
    ground: Ground, actions: list[str], live: bool, question: str
) -> None:
    shown = asyncio.run(shown_after(str(ground.home), "R", name="auth", actions=actions, live=live))
    assert question in shown


@pytest.mark.parametrize("keys", [(), ("s",), ("a",), ("r",)], ids=["list", "confirm", "answer", "refusal"])
def test_what_an_agent_writes_does_nothing_to_the_terminal(ground: Ground, keys: tuple[str, ...]) -> None:
    evil = "x\x1b]0;evil\x07\x9b2J"
    report = {"state": "blocked", "request": "r1", "options": [evil], "message": evil}
    changes: dict[str, Any] = {"name": evil, "detail": evil, "report": report, "takes_prompt": False, "label": evil}
    shown = asyncio.run(shown_after(str(ground.home), *keys, **changes))
    assert "x\\x1b]0;evil" in shown
    assert [letter for letter in shown if not letter.isprintable() and letter != "\n"] == []


def test_a_question_without_options_is_answered_in_words(ground: Ground) -> None:
    report = {"state": "blocked", "request": "r1", "options": [], "message": "Which port?"}
    shown = asyncio.run(shown_after(str(ground.home), "a", name="auth", report=report))
    assert "Answer auth" in shown


@pytest.mark.parametrize("cols", [60, 80, 100])
def test_the_last_line_has_as_many_keys_as_fit(ground: Ground, cols: int) -> None:
    last = asyncio.run(shown_after(str(ground.home), cols=cols)).splitlines()[-1].rstrip()
    assert last.startswith(" 1 needs you, 0 working  …   ? keys  Enter attach")
    assert last.endswith({60: "r reply", 80: "n new", 100: "R resume"}[cols])


def test_every_key_has_one_line_in_80_columns(ground: Ground) -> None:
    shown = asyncio.run(shown_after(str(ground.home), "question_mark", cols=80))
    lines = [line.split("│")[1].strip() for line in shown.splitlines() if line.count("│") == 2]
    assert [line for line in lines if line] == KEYS.strip().splitlines()


def test_a_filter_does_not_change_how_many_need_somebody(ground: Ground) -> None:
    shown = asyncio.run(shown_after(str(ground.home), "slash", *"nowhere", name="auth"))
    assert "auth" not in shown
    assert "1 needs you" in shown


def test_a_new_session_proposes_the_agent_that_was_started_last_and_is_installed(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = ground.place / "bin"
    programs.mkdir()
    for name in ("codex", "bash"):
        (programs / name).touch(0o755)
    monkeypatch.setenv("PATH", str(programs))

    def proposed(agent: str) -> str:
        return asyncio.run(shown_after(str(ground.home), "n", name="auth", detail="", agent=agent))

    for last, offered in {"claude": "codex", "bash": "bash", "sh": "codex"}.items():
        after = proposed(last).partition("Agent or command")[2].splitlines()
        assert offered in after[1], last


def test_without_less_a_key_says_so(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(ground.place))
    assert "less is not installed" in asyncio.run(shown_after(str(ground.home), "l", name="auth"))


async def snoozed_for(home: str, until: str | None) -> list[object]:
    app = Deaf(home)
    async with app.run_test():
        app.know(snoozed_until=until)
        app.action_snooze()
        return app.done


@pytest.mark.parametrize(
    ("until", "for_s"), [(None, 3600), ("2001-01-01T00:00:00Z", 3600), ("2999-01-01T00:00:00Z", 0)]
)
def test_a_snooze_that_has_passed_is_none(ground: Ground, until: str | None, for_s: float) -> None:
    assert asyncio.run(snoozed_for(str(ground.home), until)) == [for_s]


def test_stop_asks_first(ground: Ground, open_tty: Terminals) -> None:
    works = reporting(ground, "works", "working")
    tty = top(open_tty)
    tty.shows("hello")
    tty.type(b"s")
    tty.shows("Stop works?")
    tty.type(b"n")
    tty.until(lambda: "Stop works?" not in tty.text(), "the end of the question")
    assert works.state == "running"
    tty.type(b"s")
    tty.shows("Stop works?")
    tty.type(b"y")
    assert works.ended() == "stopped"
    tty.shows("works is stopped")
    quits(tty)


def test_enter_attaches_and_leaving_comes_back(ground: Ground, open_tty: Terminals) -> None:
    works = reporting(ground, "works", "working", "inside now")
    tty = top(open_tty)
    tty.shows("inside now")
    tty.type(b"\r")
    tty.until(lambda: "Working 1" not in tty.text() and "inside now" in tty.text(), "its terminal")
    tty.type(b"typed here\r")
    eventually(lambda: b"typed here" in works.output(), what="what was typed")
    tty.type(b"\x02d")
    tty.shows("Working 1")
    quits(tty)
    ground.end(works)


def test_without_a_terminal_it_says_what_to_use_instead(ground: Ground) -> None:
    answer = ground.hitch("top", check=2)
    assert "hitch ps lists sessions" in answer.err


def test_bare_hitch_in_tmux_shows_the_dashboard_and_pins(ground: Ground, tmp_path: Path) -> None:
    works = reporting(ground, "works", "working")
    socket = str(tmp_path / "tmux.sock")

    def tmux(*words: str) -> str:
        argv = ["tmux", "-S", socket, *words]
        return subprocess.run(argv, capture_output=True, text=True, check=True, env=Hitch.environment()).stdout

    tmux("new-session", "-d", "-s", "t", "-x", "100", "-y", "30", *Hitch().command)
    try:
        eventually(lambda: "hello" in tmux("capture-pane", "-p"), 60, what="the dashboard in tmux")
        tmux("send-keys", "p")
        eventually(lambda: ground.ps(works)["pinned"], what="the pin")
        eventually(lambda: "works ★" in tmux("capture-pane", "-p"), what="the star")
        tmux("send-keys", "q")
        eventually(lambda: not os.path.exists(socket) or not _listens(tmux), what="the end of tmux")
    finally:
        subprocess.run(["tmux", "-S", socket, "kill-server"], capture_output=True, check=False)
    ground.end(works)


def _listens(tmux: object) -> bool:
    try:
        return bool(tmux("list-sessions"))  # type: ignore[operator]
    except subprocess.CalledProcessError:
        return False
