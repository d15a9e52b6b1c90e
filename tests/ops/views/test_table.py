"""The table of ADR 31."""

from __future__ import annotations

from typing import Any

import pytest

from hitchpost.ops.views.table import HEADER, as_table
from hitchpost.store.index import line_of, total_field
from hitchpost.text import width
from tests.cli.places import HOSTILE

NOW_S = 1_790_000_000.5


def session(
    number: int = 1,
    *,
    place: str = "shop",
    since_s: float = 5,
    total: str = "1h 1m",
    colour: str = "green",
    **told: Any,
) -> str:
    shape = {"id": "k3v9q0x2m7ab", "index": number, "name": "dev", "description": "", "agent": "claude", "node": None}
    shape |= {"owner": None, "record": "active", "label": "running", **told}
    return line_of(shape, NOW_S - since_s, total, colour, "running", place)


def lines(*sessions: str, colour: bool = False, width: int = 0) -> list[str]:
    *found, end = as_table(list(sessions), colour=colour, now_s=NOW_S, width=width).decode().split("\n")
    assert end == ""
    return found


def test_without_sessions_there_is_the_header() -> None:
    assert lines() == lines(colour=True) == ["  ".join(word for word in HEADER if word not in ("NODE", "OWNER"))]


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert lines(session(name="a-long-name"), session(20, label="failed: no", place="main")) == [
        "SESSION  NAME         DESCRIPTION  AGENT   WORKSPACE  STATUS      IN STATUS  TOTAL TIME",
        "1        a-long-name               claude  shop       running     5s         1h 1m",
        "20       dev                       claude  main       failed: no  5s         1h 1m",
    ]


def test_there_is_a_column_for_nodes_where_there_are_any() -> None:
    assert lines(session(node="n2"), session(20)) == [
        "SESSION  NAME  DESCRIPTION  AGENT   NODE  WORKSPACE  STATUS   IN STATUS  TOTAL TIME",
        "1        dev                claude  n2    shop       running  5s         1h 1m",
        "20       dev                claude        shop       running  5s         1h 1m",
    ]


def test_there_is_a_column_for_owners_where_there_are_several() -> None:
    assert lines(session(owner="anna"), session(20)) == [
        "SESSION  NAME  OWNER  DESCRIPTION  AGENT   WORKSPACE  STATUS   IN STATUS  TOTAL TIME",
        "1        dev   anna                claude  shop       running  5s         1h 1m",
        "20       dev                       claude  shop       running  5s         1h 1m",
    ]
    assert lines(session(owner="anna"), session(20, owner="anna"))[0] == lines(session())[0]


@pytest.mark.ids("A31-14")
@pytest.mark.parametrize("looked_s", [0.0, 0.7, 60.0])
def test_both_times_of_a_session_are_of_one_moment_however_long_ago_it_was_looked_at(looked_s: float) -> None:
    began_s = NOW_S - 185
    total = total_field(NOW_S - looked_s - began_s, NOW_S - looked_s, grows=True)
    assert lines(session(since_s=185, total=total))[1].split()[-4:] == ["3m", "5s", "3m", "5s"]
    ended = total_field(3.9, NOW_S - looked_s, grows=False)
    assert lines(session(since_s=185, total=ended))[1].split()[-3:] == ["3m", "5s", "3s"]


def test_the_status_alone_is_painted_and_its_padding_with_it() -> None:
    sessions = session(), session(2, label="failed: no", colour="red"), session(3, colour="none of ours")
    plain = lines(*sessions)
    assert lines(*sessions, colour=True) == [
        plain[0],
        plain[1].replace("running   ", "\x1b[32mrunning   \x1b[0m"),
        plain[2].replace("failed: no", "\x1b[31mfailed: no\x1b[0m"),
        plain[3],
    ]


@pytest.mark.parametrize("name", ["日本", "e\u0301clair", "😀", "…", HOSTILE, "\ud800", "back\\slash"])
@pytest.mark.parametrize("field", ["name", "description", "agent", "place", "label"])
def test_whatever_a_text_has_in_it_the_columns_behind_it_stay_in_line(name: str, field: str) -> None:
    strange: dict[str, Any] = {field: name}
    header, first, second = lines(session(**strange), session(2))
    assert first.isprintable()
    ends = ((header, "TOTAL TIME"), (first, "1h 1m"), (second, "1h 1m"))
    assert len({width(line.removesuffix(end)) for line, end in ends}) == 1


def test_a_session_without_a_number_is_shown_by_its_id() -> None:
    assert [line.split()[0] for line in lines(session(), session(0))[1:]] == ["1", "k3v9q0x2m7ab"]


@pytest.mark.parametrize(
    ("since_s", "shown"),
    [(-5, "0s"), (0, "0s"), (59, "59s"), (60, "1m 0s"), (86399, "23h 59m"), (86400, "1d 0h"), (90000, "1d 1h")],
)
def test_the_time_in_status_is_that_of_now(since_s: float, shown: str) -> None:
    for line in lines(session(since_s=since_s), session(since_s=since_s))[1:]:
        assert line.removesuffix("1h 1m").rstrip().endswith(f"  {shown}")


LONG: dict[str, Any] = {
    "name": "a-name-that-is-long",
    "place": "a-branch-that-is-long",
    "label": "running (idle 2m 15s)",
}


def test_a_narrow_terminal_gets_no_empty_column_and_shorter_names_but_the_whole_status() -> None:
    assert lines(session(**LONG), width=80) == [
        "SESSION  NAME        AGENT   WORKSPACE   STATUS                 IN STATUS",
        "1        a-name-th…  claude  a-branch-…  running (idle 2m 15s)  5s",
    ]


@pytest.mark.parametrize("columns", [45, 60, 80, 100, 200])
def test_a_table_fits_its_terminal_unless_the_status_does_not(columns: int) -> None:
    sessions = session(**LONG, description="an errand"), session(2, name="日本語の名前です", label="failed: no")
    found = lines(*sessions, width=columns)
    assert max(map(width, found)) <= columns
    assert all(label in line for label, line in zip((LONG["label"], "failed: no"), found[1:], strict=True))


def test_a_wide_terminal_gets_all_of_it() -> None:
    assert lines(session(**LONG), width=200) == lines(session(**LONG))
