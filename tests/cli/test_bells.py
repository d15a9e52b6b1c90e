"""Attached terminals ring when another session needs somebody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hitchpost.cli.bells import Bells
from tests.cli.attaching import DETACH, PROMPT, Terminals, Tty, shell, terminals
from tests.ground import Ground
from tests.hubs import hub_of
from tests.support import Hitch, eventually


@pytest.fixture
def tty(home: Path) -> Iterator[Terminals]:
    with terminals() as made:
        yield made


def heard(tty: Tty, sound: bytes) -> bool:
    tty.read()
    return sound in tty.received


def test_an_attached_terminal_rings_and_says_why_and_only_of_others(
    ground: Ground, hitch: Hitch, tty: Terminals
) -> None:
    ground.configure("[notify]\ndwell_s = 0\ngroup_s = 0\n")
    with hub_of(ground) as hub:
        shell(hitch)
        me = tty("attach", "dev")
        me.shows(PROMPT.strip())
        before = hub.ask("GET", "/api/notifications")
        assert [one["on"] for one in before["channels"] if one["name"] == "terminal"] == [True]

        def rung() -> bool:
            (told,) = hub.ask("POST", "/api/notifications/test", {"channel": "terminal"})
            return told["outcome"] == "sent" and heard(me, b"\x1b]9;hitch: Hitchpost: a test")

        eventually(rung, 30, "the terminal to be connected")
        ground.begin_sh("exit 3", name="$(evil)\x1b]0;x")
        me.until(lambda: heard(me, b"Failed command exited with code 3\a\a"), "the bell")
        assert b"\x1b]0;x" not in me.received
        me.type(b"printf '\\033]7501;state=blocked:kind=permission\\a'\r")
        eventually(lambda: hub.ask("GET", "/api/sessions/dev")["headline"] == "Needs permission", 30)
        ground.begin_sh("exit 3", name="last")
        me.until(lambda: heard(me, b"hitch: last: Failed"), "the bell after it")
        assert b"hitch: dev:" not in me.received  # it is before their eyes
        me.type(DETACH)
        assert me.ends() == 0
        assert me.is_restored()


def test_a_terminal_that_was_stuck_rings_again(home: Path) -> None:
    bells = Bells(str(home), "mine")
    try:
        for _ in range(1000):
            bells._ring({"to": "terminal", "sessionId": "other", "title": "x" * 200, "body": ""})
        while bells.read():
            pass
        bells._ring({"to": "terminal", "sessionId": "other", "title": "dev: Failed", "body": ""})
        assert bells.read() == b"\x1b]9;hitch: dev: Failed\a\a"
    finally:
        bells.close()
