"""When a usage limit ends, as the agent's text says it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from hitchpost.watcher.limits import ends_at, moment_of

TOLD = datetime(2026, 11, 18, 14, 20, 30, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("no credits are left. Try again at 18:30.", "18:30"),
        ("Rate limit exceeded: please try again in 6.5 seconds, or later", "6.5 seconds"),
        ("Your limit resets on Nov 20 at 3pm (UTC)", "Nov 20 at 3pm (UTC)"),
        ("Please try again at 3:05 PM (America/New_York).", "3:05 PM (America/New_York)"),
        ("Try again in 20 minutes (see your plan)", "20 minutes"),
        ("Try again in 20 minutes (later).", "20 minutes"),
        ("Try again in a while.", ""),
        ("Try again later or check your quotas.", ""),
        ("", ""),
    ],
)
def test_a_text_says_when_a_limit_ends(text: str, when: str) -> None:
    assert ends_at(text) == when


@pytest.mark.parametrize(
    ("when", "moment"),
    [
        ("3pm", "2026-11-18T15:01+01:00"),
        ("3:45 PM", "2026-11-18T15:46+01:00"),
        ("18:30", "2026-11-18T18:31+01:00"),
        ("9am", "2026-11-19T09:01+01:00"),
        ("12am", "2026-11-19T00:01+01:00"),
        ("2:20pm", "2026-11-18T14:21+01:00"),
        ("2:11pm", "2026-11-18T14:12+01:00"),
        ("3pm (America/New_York)", "2026-11-18T21:01+01:00"),
        ("3pm (Nowhere/Land)", ""),
        ("Nov 20 at 3pm", "2026-11-20T15:01+01:00"),
        ("Nov 20th, 2026 3:45 PM", "2026-11-20T15:46+01:00"),
        ("January 2 9:00", "2027-01-02T09:01+01:00"),
        ("Nov 31 9:00", ""),
        ("Mar 5 11:59pm", "2027-03-06T00:00+01:00"),
        ("Dec 31 11:59pm", "2027-01-01T00:00+01:00"),
        ("Nov 18 11:59pm", "2026-11-19T00:00+01:00"),
        ("11:59pm", "2026-11-19T00:00+01:00"),
        ("6.5 seconds", "2026-11-18T14:20:36.500+01:00"),
        ("2 hours 5 minutes", "2026-11-18T16:25:30+01:00"),
        ("1 day, 1 hour and 1 minute", "2026-11-19T15:21:30+01:00"),
        ("1h 5m", "2026-11-18T15:25:30+01:00"),
        ("1h2m3s", "2026-11-18T15:22:33+01:00"),
        ("6m0s", "2026-11-18T14:26:30+01:00"),
        ("3 months", ""),
        ("1763474400", "2025-11-18T15:00+01:00"),
        ("2026-11-18T14:00:00+00:00", "2026-11-18T15:00+01:00"),
        ("25:00", ""),
        ("3", ""),
        ("5 minutes after the end of the 3rd month", ""),
        ("9" * 200 + " days", ""),
        ("tomorrow", ""),
    ],
)
def test_the_moment_that_is_meant(when: str, moment: str) -> None:
    assert moment_of(when, TOLD) == (datetime.fromisoformat(moment) if moment else None)


@pytest.mark.parametrize("when", ["11:59pm", "Dec 31 11:59pm"])
def test_what_has_just_passed_may_be_of_the_day_or_the_year_before(when: str) -> None:
    midnight = datetime(2027, 1, 1, tzinfo=TOLD.tzinfo)
    assert moment_of(when, midnight + timedelta(minutes=3)) == midnight
