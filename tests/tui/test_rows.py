from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hitchpost.hub.http.schemas import EXAMPLE
from hitchpost.model import run as runs
from hitchpost.tui import rows, source
from tests.store.made import session as made

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


def session(name: str, **changes: Any) -> Any:
    return {**EXAMPLE, "conversation": None, "id": name, "name": name, **changes}


def names(found: dict[str, list[Any]]) -> dict[str, list[str]]:
    return {section: [shown["name"] for shown in part] for section, part in found.items() if part}


def test_sections_come_in_the_model_s_order_and_have_pinned_urgent_and_new_ones_first() -> None:
    known = [
        session("old", section="needs-you", rank=4, since="2026-11-16T10:00:00Z"),
        session("new", section="needs-you", rank=4, since="2026-11-16T11:00:00Z"),
        session("asks", section="needs-you", rank=1, since="2026-11-16T09:00:00Z"),
        session("pinned", section="needs-you", rank=4, since="2026-11-16T08:00:00Z", pinned=True),
        session("busy", section="working", rank=6),
        session("put away", section="ended", record="archived"),
    ]
    found = rows.sections(known)
    assert list(found) == ["needs-you", "finished", "working", "quiet", "ended"]
    assert names(found) == {"needs-you": ["pinned", "asks", "new", "old"], "working": ["busy"]}
    assert rows.counts(found) == "4 need you, 1 working"


def test_a_filter_looks_for_every_word_wherever_it_stands() -> None:
    place = {"id": None, "path": "/src/shop", "branch": "fix-auth"}
    known = [session("auth", workspace=place), session("shop", workspace={**place, "path": "/src/other"})]
    assert names(rows.sections(known, "SHOP fix")) == {"needs-you": ["auth", "shop"]}
    assert names(rows.sections(known, "/src/shop")) == {"needs-you": ["auth"]}


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (59, "59s"), (60, "1m"), (7199, "1h"), (200_000, "2d")])
def test_an_age_has_no_seconds_after_the_first_minute(seconds: int, text: str) -> None:
    assert rows.age((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == text


def test_a_row_shows_what_no_terminal_obeys_and_a_name_that_fits() -> None:
    hostile = session("a" * 40, detail="x\x1b[31my", since=None)
    line = rows.row(hostile, NOW).plain
    assert "\x1b" not in line
    assert line.startswith("✕  " + "a" * 17 + "… Failed")


def test_a_pinned_name_leaves_its_columns_where_they_are() -> None:
    plain, pinned = (rows.row(session("a" * 40, pinned=pin, since=None), NOW).plain for pin in (False, True))
    assert pinned.startswith("✕  " + "a" * 15 + "… ★ Failed")
    assert pinned.index("Failed") == plain.index("Failed")


def test_what_the_hub_tells_is_applied() -> None:
    known = {"a": session("a")}
    assert source.apply(known, {"type": "session.updated", "sessionId": "b", "session": session("b")})
    assert set(known) == {"a", "b"}
    assert source.apply(known, {"type": "session.removed", "sessionId": "a"})
    assert not source.apply(known, {"type": "session.removed", "sessionId": "a"})
    assert not source.apply(known, {"type": "terminal.exit", "sessionId": "b"})
    assert set(known) == {"b"}


async def looked(home: Path) -> list[tuple[str, list[str]]]:
    told = source.sessions(str(home))
    said = [await anext(told)]
    (home / "sessions").rename(home / "elsewhere")
    (home / "sessions").write_text("")
    said.append(await anext(told))
    (home / "sessions").unlink()
    (home / "elsewhere").rename(home / "sessions")
    said.append(await anext(told))
    await told.aclose()
    return [(words.partition(":")[0], [shown["name"] for shown in known.values()]) for words, known in said]


def test_where_nothing_can_be_read_what_was_known_stays(home: Path) -> None:
    made(home, runs.COMPLETED, name="dev")
    assert asyncio.run(looked(home)) == [("no hub", ["dev"]), ("cannot look", ["dev"]), ("no hub", ["dev"])]


def test_the_head_says_how_much_was_changed() -> None:
    changes = {"files": 2, "added": 7, "deleted": 0, "at": "2026-11-16T12:00:00Z"}
    assert rows.head(session("dev", changes=changes)).plain.endswith("  +7 −0")
    assert "+" not in rows.head(session("dev")).plain
    assert "+" not in rows.head(session("dev", changes={**changes, "files": 0, "added": 0})).plain


def test_a_silence_that_goes_on_is_no_news() -> None:
    def dev(label: str, **changes: Any) -> source.Sessions:
        return {"dev": session("dev", label=label, **changes)}

    quiet = {"quiet_since": "2026-11-16T11:00:00Z"}
    before, later = dev("running (idle 2m 15s)", **quiet), dev("running (idle 2m 16s)", **quiet)
    assert source.is_same(later, before)
    assert not source.is_same(dev("running (idle 2m 16s)", **quiet, rank=6), before)
    assert not source.is_same({}, before)
    assert not source.is_same(dev("failed: command exited with code 1"), dev("failed: command exited with code 2"))
