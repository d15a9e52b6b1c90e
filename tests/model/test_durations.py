from __future__ import annotations

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitchpost.model.durations import duration, seconds_between, seconds_of
from tests.model.made import NOW, ago


@pytest.mark.ids("A31-14")
@pytest.mark.parametrize(
    ("seconds", "text"),
    [(185, "3m 5s"), (923, "15m 23s"), (45, "45s"), (135, "2m 15s")],
)
def test_the_durations_of_adr_31_read_as_it_writes_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.999, "0s"),
        (59.999, "59s"),
        (60, "1m 0s"),
        (3599, "59m 59s"),
        (3600, "1h 0m"),
        (7260, "2h 1m"),
        (86399, "23h 59m"),
        (86400, "1d 0h"),
        (356400, "4d 3h"),
    ],
)
def test_a_duration_shows_its_two_largest_units_and_drops_the_rest(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_duration_below_zero_reads_as_nothing() -> None:
    assert duration(-5) == "0s"


@given(st.floats(0, 1e9))
def test_a_duration_is_at_most_one_of_its_smaller_unit_short(seconds: float) -> None:
    sizes = {"d": 86400, "h": 3600, "m": 60, "s": 1}
    parts = [(int(number), sizes[unit]) for number, unit in re.findall(r"(\d+)([dhms])", duration(seconds))]
    assert 0 <= seconds - sum(number * size for number, size in parts) < parts[-1][1]


@pytest.mark.parametrize(("start", "seconds"), [(None, 0.0), (ago(90), 90.0), (NOW + timedelta(seconds=5), 0.0)])
def test_the_time_since_something_is_never_below_zero_and_nothing_when_it_never_was(start, seconds) -> None:
    assert seconds_between(start, NOW) == seconds


@pytest.mark.ids("A31-7")
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0),
        ("45s", 45),
        ("5m", 300),
        ("1h 30m", 5400),
        (" 2d1h ", 176400),
        ("3 m 5 s", 185),
    ],
)
def test_a_duration_that_a_person_types(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text", ["", " ", "s", "5", "1.5s", "5x", "5m ago", "-5", "nan", "inf", "1e9", "٣s", "9" * 10, "5m 3"]
)
def test_what_is_no_duration(text: str) -> None:
    assert seconds_of(text) is None


@given(st.integers(0, 10**8))
def test_what_is_shown_can_be_typed(seconds: int) -> None:
    assert duration(seconds_of(duration(seconds)) or 0) == duration(seconds)
