from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given

from hitchpost.model import record, run
from hitchpost.model.facts import Exit, Facts
from hitchpost.model.status import Status, status
from hitchpost.values import replace
from tests.model.made import NOW, ended, facts_with, moments, reported, running


def said(facts: Facts) -> tuple[str, str]:
    shown = status(facts, NOW)
    return shown.headline, shown.detail


def after(state: str, **more: object) -> Facts:
    return running(report=replace(reported(state), **more))


@pytest.mark.parametrize(
    ("state", "kind", "words"),
    [
        ("blocked", "permission", "Needs permission"),
        ("blocked", "question", "Question"),
        ("blocked", "dialog", "Dialog"),
        ("blocked", "auth", "Not signed in"),
        ("blocked", None, "Needs you"),
        ("error", "limit", "Usage limit"),
        ("error", None, "Error"),
        ("done", None, "Finished"),
        ("working", None, "Working"),
        ("idle", None, "At its prompt"),
        ("unknown", None, "Unknown"),
        ("unknown", "starting", "Starting"),
    ],
)
def test_a_report_has_a_headline(state: str, kind: str | None, words: str) -> None:
    assert said(after(state, kind=kind)) == (words, "")


def test_the_detail_is_what_the_agent_says_in_one_line() -> None:
    assert said(after("blocked", kind="permission", message="Bash:\n  touch a"))[1] == "Bash: touch a"
    assert said(after("error", kind="limit", message="Too much", until="18:00"))[1] == "Too much · until 18:00"
    assert said(after("done", message="All done.", background=2))[1] == "All done. · 2 in the background"
    assert said(after("working", message="thinking"))[1] == ""


def test_without_a_report_the_headline_is_a_guess_or_the_status() -> None:
    assert said(running()) == ("Working", "")
    assert said(running(last_activity_at=None, started_at=None)) == ("Working", "")
    assert said(running(quiet_after_s=0.5)) == ("Quiet", "")
    assert said(ended(run.FAILED, Exit(code=1))) == ("Failed", "command exited with code 1")
    assert said(running(record=record.ARCHIVED)) == ("Archived", "")


def test_what_nobody_can_know_any_more_has_no_old_headline() -> None:
    blocked = after("blocked", kind="permission", message="Bash: touch a")
    lost = replace(blocked, runtime="adopted", keeper_alive=False, session_alive=True)
    assert said(lost) == ("Unknown", run.KEEPER_LOST)
    assert said(replace(blocked, probe_failed=True, doubt="the engine is away")) == ("Unknown", "the engine is away")


@pytest.mark.parametrize(
    ("state", "kind", "why"),
    [
        ("blocked", "permission", "the agent is waiting for a permission"),
        ("blocked", "dialog", "the agent is showing a dialog"),
        ("unknown", None, "it is not known whether the agent is at its prompt"),
        ("working", None, None),
        ("idle", None, None),
        ("done", None, None),
    ],
)
def test_why_an_agent_takes_no_prompt_is_known_before(state: str, kind: str | None, why: str | None) -> None:
    assert status(after(state, kind=kind), NOW).refusal == why


@given(facts_with(), moments)
def test_every_session_has_a_headline_in_one_line(facts: Facts, now: datetime) -> None:
    shown: Status = status(facts, now)
    assert shown.headline
    assert "\n" not in shown.headline + shown.detail
    assert shown.refusal is None or shown.takes_prompt
