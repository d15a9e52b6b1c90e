"""The delivery log: what it says after a kill at any line, and that it stays small."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

from hitchpost.notify import journal
from hitchpost.notify.journal import Journal, lines
from hitchpost.notify.message import Message
from tests.ground import Ground

MESSAGE = Message("id1", "dev: Failed", "exit 1", "http://hub/?session=s", "s", "failed")
BEGUN = {"what": "begun", **MESSAGE.as_json(), "keys": ["k"], "channels": ["ntfy", "webhook"]}


def outcome(channel: str) -> dict[str, object]:
    return {"what": "outcome", "id": "id1", "channel": channel, "outcome": "sent", "why": "HTTP 200", "ms": 3}


def test_the_log_says_what_a_killed_hub_was_doing(tmp_path: Path) -> None:
    log = Journal(str(tmp_path))
    past = log.open()
    assert (past.noted, past.known, past.unfinished, past.was_killed) == (set(), {}, {}, False)
    log.write([{"what": "up"}, {"what": "noted", "key": "k"}])
    past = log.open()
    assert (past.noted, past.was_killed) == ({"k"}, True)
    log.write([BEGUN])
    past = log.open()
    assert (past.noted, [*past.known]) == (set(), ["k"])
    assert past.unfinished == {"id1": (MESSAGE, ["ntfy", "webhook"])}
    log.write([outcome("webhook")])
    assert log.open().unfinished == {"id1": (MESSAGE, ["ntfy"])}
    log.write([outcome("ntfy"), {"what": "noted", "key": "l"}, {"what": "dropped", "key": "l"}, {"what": "down"}])
    past = log.open()
    assert (past.noted, [*past.known], past.unfinished, past.was_killed) == (set(), ["k", "l"], {}, False)


def test_a_torn_line_spoils_no_other(tmp_path: Path) -> None:
    log = Journal(str(tmp_path))
    log.open()
    log.write([{"what": "up"}])
    with open(log.path, "a") as file:
        file.write('{"what": "noted", "ke')
    log.write([{"what": "noted", "key": "k"}])
    assert log.open().noted == {"k"}
    assert [line["what"] for line in lines(log.path)] == ["up", "noted"]


def test_the_log_is_bounded_and_keeps_what_is_open(tmp_path: Path) -> None:
    log = Journal(str(tmp_path))
    log.open()
    log.write([{"what": "up"}, {"what": "noted", "key": "open"}, BEGUN])
    for number in range(60):
        log.write([{"what": "dropped", "key": f"{number} {'x' * 200}", "why": "w"} for _ in range(100)])
    past = log.open()
    assert os.stat(log.path).st_size <= journal.MOST_BYTES
    assert len(lines(log.path)) < 5000
    assert past.noted == {"open"}
    assert past.unfinished == {"id1": (MESSAGE, ["ntfy", "webhook"])}
    assert past.was_killed


@pytest.mark.parametrize(
    "line",
    [{"what": "dropped", "key": "k", "why": "字" * 300}, {**BEGUN, "channels": []}],
    ids=["long letters", "told nobody"],
)
def test_a_log_of_long_lines_is_shortened_far_enough_to_be_left_alone_for_a_while(
    tmp_path: Path, line: dict[str, object]
) -> None:
    log = Journal(str(tmp_path))
    log.open()
    sizes = []
    for number in range(300):
        log.write([{**line, "id": str(number)}] * 20)
        sizes.append(os.stat(log.path).st_size)
    assert max(sizes) <= journal.MOST_BYTES
    assert sum(after < before for before, after in pairwise(sizes)) < 30


def test_the_list_says_of_whom_each_line_speaks(ground: Ground) -> None:
    log = Journal(str(ground.home))
    log.open()
    key, forgotten = "0123456789ab 1 2026-11-17T20:52:51.495962Z Error", "ba9876543210 2 end Failed"
    log.write(
        [
            {"what": "noted", "key": key, "name": "api", "headline": "Error"},
            {"what": "dropped", "key": key, "why": "seen"},
            {"what": "dropped", "key": forgotten, "why": "seen"},
        ]
    )
    head, *told = [line.split()[1:] for line in ground.hitch("notify", "log").out.splitlines()]
    assert head == ["WHAT", "WAY", "ABOUT", "WHY"]
    assert told == [
        ["noted", "api:", "Error"],
        ["dropped", "api:", "Error", "seen"],
        ["dropped", "ba9876543210:", "Failed", "seen"],
    ]


def test_the_log_and_its_folder_are_for_their_owner_only(tmp_path: Path) -> None:
    log = Journal(str(tmp_path))
    log.open()
    assert os.stat(log.path).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(log.path)).st_mode & 0o777 == 0o700
