"""What rules say of a recording, over time."""

from __future__ import annotations

from typing import Any

from hitchpost.agents import rules
from hitchpost.ops.views.rules_test import Reading, Recording, Stretch, stretches
from hitchpost.terminal.recording import OUTPUT, RESIZE, Beginning, Event

ASKS: dict[str, Any] = {
    "state": "blocked",
    "kind": "permission",
    "find": [r"Allow .*\?"],
    "message_from": r"Allow (?P<text>.*)\?",
}
WORKS: dict[str, Any] = {"state": "working", "find": [r"Thinking"]}
BLOCKED, WORKING = Reading("blocked", "permission", "touch it"), Reading("working", "", "")
CLEAR = "\x1b[2J\x1b[H"


def made(**tables: Any) -> rules.Rules:
    return rules.parse(tables, "mine")


def shown(*events: tuple[float, str, str]) -> Recording:
    return Recording("mine", Beginning(100.0, 40, 5), [Event(100.0 + at, code, data) for at, code, data in events])


TALK = shown(
    (0.0, OUTPUT, f"{CLEAR}Thinking"),
    (1.0, OUTPUT, f"{CLEAR}Allow to"),
    (1.0625, OUTPUT, "uch it?"),
    (3.0, OUTPUT, f"{CLEAR}> "),
    (4.0, OUTPUT, f"{CLEAR}Thinking"),
)


def test_one_set_of_rules_reads_stretches() -> None:
    assert stretches(TALK, (made(screen=[ASKS, WORKS]),)) == [
        Stretch("screen", 0.0, 1.0625, (WORKING,)),
        Stretch("screen", 1.0625, 3.0, (BLOCKED,)),
        Stretch("screen", 4.0, 4.0, (WORKING,)),
    ]


def test_two_sets_are_read_side_by_side() -> None:
    found = stretches(TALK, (made(screen=[WORKS]), made(screen=[ASKS])))
    assert [each.readings for each in found] == [(WORKING, None), (None, BLOCKED), (WORKING, None)]


def test_a_title_counts_at_once_wherever_it_is_cut() -> None:
    cut = shown(
        (0.0, OUTPUT, "\x1b]0;Think"), (0.02, OUTPUT, "ing\x07\x1b"), (0.03, OUTPUT, "]2;ready\x1b\\\x1b]2;?\x07")
    )
    found = stretches(cut, (made(title_rules=[WORKS, {"state": "idle", "find": "ready"}]),))
    assert [(each.source, round(each.from_s, 2), each.readings) for each in found] == [
        ("title", 0.02, (WORKING,)),
        ("title", 0.03, (Reading("idle", "", ""),)),
        ("title", 0.03, (Reading("unknown", "", ""),)),
    ]


def test_the_screen_has_the_size_that_the_recording_had() -> None:
    wide = shown((0.0, RESIZE, "12x3"), (0.5, OUTPUT, "Allow to touch it?\x1b[99;1Hlast"))
    rule = {**ASKS, "find": [r"^Allow to touch it\?\nlast$"]}
    assert len(stretches(wide, (made(screen=[rule]),))) == 1


def test_rules_for_an_agent_that_reads_lines_know_when_it_does() -> None:
    talk = shown(
        (0.0, OUTPUT, "\x1b[?2004h> "),
        (1.0, OUTPUT, "go\r\n\x1b[?2004lwait"),
        (2.0, OUTPUT, f"{CLEAR}all is well{CLEAR}\x1b[?2004h> "),
    )
    table = [
        {"state": "done", "reading": True, "printed": "(?P<text>all is well)"},
        {"state": "idle", "reading": True},
        {"state": "working", "reading": False},
    ]
    found = stretches(talk, (made(screen=table),))
    assert [each.readings[0] for each in found] == [
        Reading("idle", "", ""),
        WORKING,
        Reading("done", "", "all is well"),
    ]
