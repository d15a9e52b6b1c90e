"""A session as the hub knows it: its words stay, as long as they can be no others."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitchpost.hub.session import HubSession
from hitchpost.ops.views.observe import Observation
from hitchpost.store.index import ALL_FIELDS
from hitchpost.values import replace
from tests.model.made import FACTS_THAT_WAIT, NOW, ago, around_a_turn, running
from tests.store.made import record

SINCE, TOTAL = 6, 7
TRICKY = 'say "label": "running", \\ "label": \\"'


def seen_with(facts: object, **fields: object) -> Observation:
    return Observation(replace(record("aaaaaaaaaaaa", name=TRICKY), **fields), facts, "/nowhere")  # type: ignore[arg-type]


def described(session: HubSession) -> tuple[object, ...]:
    """All that is read of it. Of moments from which time is counted, a tenth of a second is told."""
    line = session.line.split("\t")
    assert len(line) == ALL_FIELDS
    assert json.loads(session.text) == session.shape
    return session.text, session.place, [field for place, field in enumerate(line) if place not in (SINCE, TOTAL)]


def counted_from(session: HubSession) -> list[float]:
    line = session.line.split("\t")
    return [float(field.lstrip("@")) for field in (line[SINCE], line[TOTAL]) if field[-1] != "s" and " " not in field]


@pytest.mark.parametrize("kind", FACTS_THAT_WAIT)
@settings(max_examples=100)
@given(st.data())
def test_words_that_are_passed_on_are_those_that_would_be_derived(kind: str, data: st.DataObject) -> None:
    seen = seen_with(data.draw(FACTS_THAT_WAIT[kind]), description=TRICKY)
    first, later = data.draw(around_a_turn(seen.facts))
    session, fresh = HubSession("aaaaaaaaaaaa"), HubSession("aaaaaaaaaaaa")
    session.update(seen, first)
    fresh.update(seen, later)
    if session.pass_on_to(later):
        assert described(session) == described(fresh)
        assert counted_from(session) == pytest.approx(counted_from(fresh), abs=0.11)


def test_only_the_time_that_a_label_counts_goes_on() -> None:
    session = HubSession("aaaaaaaaaaaa")
    session.update(seen_with(running(last_activity_at=ago(100)), description=TRICKY), NOW)
    before = dict(session.shape)
    assert session.pass_on_to(NOW + timedelta(seconds=5))
    assert session.shape == before | {"label": "running (idle 1m 45s)"}
    assert json.loads(session.text) == session.shape
    assert session.line.endswith("\trunning (idle 1m 45s)")


@pytest.mark.parametrize("later_s", [-1, 2])
def test_words_are_not_passed_on_to_before_nor_to_when_they_change(later_s: int) -> None:
    session = HubSession("aaaaaaaaaaaa")
    session.update(seen_with(running()), NOW)
    assert session.pass_on_to(NOW + timedelta(seconds=1))
    assert not session.pass_on_to(NOW + timedelta(seconds=later_s))


def test_what_cannot_be_read_whole_is_described_anew() -> None:
    session = HubSession("aaaaaaaaaaaa")
    session.update(replace(seen_with(running()), problem="state.json is not JSON"), NOW)
    assert not session.pass_on_to(NOW)


def test_a_session_that_nobody_has_looked_at_has_no_words_to_pass_on() -> None:
    assert not HubSession("aaaaaaaaaaaa").pass_on_to(NOW)
