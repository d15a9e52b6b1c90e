from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given

from hitchpost.model import record, run
from hitchpost.model.facts import Changes, Exit, Facts
from hitchpost.model.headline import told
from hitchpost.model.status import Status, status
from hitchpost.values import replace
from tests.model.made import NOW, ago, ended, facts_with, moments, reported, running


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
        ("idle", None, "Your turn"),
        ("unknown", None, "Unknown"),
        ("unknown", "starting", "Starting"),
    ],
)
def test_a_report_has_a_headline(state: str, kind: str | None, words: str) -> None:
    assert said(after(state, kind=kind)) == (words, "")


def test_the_detail_is_what_the_agent_says_in_one_line() -> None:
    assert said(after("blocked", kind="permission", message="Bash:\n  touch a"))[1] == "Bash: touch a"
    assert said(after("error", kind="limit", message="Too much", until="18:00"))[1] == "until 18:00 · Too much"
    assert said(after("done", message="All done.", background=2))[1] == "All done. · 2 in the background"
    assert said(after("working", message="3 of 7 tests"))[1] == "3 of 7 tests"
    assert said(after("idle", message="Which file?"))[1] == "Which file?"


def test_without_a_report_the_headline_is_a_guess_or_the_status() -> None:
    assert said(running()) == ("Working", "")
    assert said(running(last_activity_at=None, started_at=None)) == ("Working", "")
    assert said(running(quiet_after_s=0.5)) == ("Quiet", "")
    assert said(ended(run.FAILED, Exit(code=1))) == ("Failed", "command exited with code 1")
    assert said(running(record=record.ARCHIVED)) == ("Archived", "")
    assert said(ended(run.COMPLETED, Exit(code=0))) == ("Finished", "")
    assert said(running(state=run.CREATED)) == ("Not started", "")
    assert said(ended(run.ORPHANED)) == ("Folder is gone", "workspace no longer exists")
    assert said(running(runtime="docker", sandbox_alive=True, session_alive=False)) == (
        "Agent ended",
        "container still up",
    )
    reboot = ended(run.FAILED, Exit(error=run.REBOOT), record=record.SUSPENDED)
    assert said(reboot) == ("Interrupted by reboot", "")


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


# Since when, and how it is shown


def test_a_headline_counts_from_what_it_says() -> None:
    assert status(after("blocked"), NOW).since == ago(1)
    assert status(running(), NOW).since == ago(600)
    assert status(running(last_activity_at=ago(40)), NOW).since == ago(40)
    assert status(ended(run.FAILED, Exit(code=1, ended_at=ago(9)), state_changed_at=ago(9)), NOW).since == ago(9)


def place(facts: Facts) -> tuple[int, str, str]:
    shown = status(facts, NOW)
    return shown.rank, shown.section, shown.colour


def test_what_ended_is_news_until_somebody_has_looked() -> None:
    finished, failed = ended(run.COMPLETED, Exit(code=0)), ended(run.FAILED, Exit(code=1))
    assert place(finished) == (5, "finished", "blue")
    assert place(failed) == (4, "needs-you", "red")
    assert place(replace(finished, seen_at=ago(700))) == (5, "finished", "blue"), "it was seen before it ended"
    assert place(replace(finished, seen_at=ago(0))) == (8, "ended", "grey")
    assert place(replace(failed, seen_at=ago(0))) == (8, "ended", "red")


def test_a_turn_that_ended_is_news_until_somebody_has_looked_and_its_agent_is_quiet_then() -> None:
    assert place(after("done")) == (5, "finished", "blue")
    assert place(replace(after("done"), seen_at=ago(2))) == (5, "finished", "blue")
    assert place(replace(after("done"), seen_at=ago(0))) == (7, "quiet", "grey")


@pytest.mark.parametrize("state", ["blocked", "idle", "error"])
def test_looking_does_not_answer(state: str) -> None:
    assert place(replace(after(state), seen_at=ago(0))) == place(after(state))


def test_a_snoozed_session_is_quiet_until_its_time_has_come_whatever_it_wants() -> None:
    asks = after("blocked", kind="permission")
    assert place(replace(asks, snoozed_until=ago(-1))) == (7, "quiet", "grey")
    assert said(replace(asks, snoozed_until=ago(-1))) == ("Snoozed", "Needs permission")
    assert place(replace(asks, snoozed_until=ago(0))) == (1, "needs-you", "orange")
    assert place(replace(running(), snoozed_until=ago(-1))) == (6, "working", "green")


def test_what_stands_still_is_in_doubt_and_says_why() -> None:
    still = {
        "sandbox_paused": ("Paused", "its container is paused"),
        "process_stopped": ("Paused", "a signal has stopped its process"),
        "keeper_stopped": ("Unknown", "a signal has stopped its keeper"),
    }
    for fact, words in still.items():
        facts = replace(after("blocked"), **{fact: True})
        assert said(facts) == words
        assert place(facts) == (4, "needs-you", "yellow")


@pytest.mark.parametrize(
    ("line", "look"),
    [
        ({"event": "state", "to": "starting"}, ("Starting", "blue")),
        ({"event": "state", "to": "running"}, ("Working", "green")),
        ({"event": "state", "to": "failed"}, ("Failed", "red")),
        ({"event": "state", "to": "completed"}, ("Finished", "blue")),
        ({"event": "attention", "state": "blocked", "kind": "permission"}, ("Needs permission", "orange")),
        ({"event": "attention", "state": "error", "kind": "limit"}, ("Usage limit", "violet")),
        ({"event": "attention", "state": "done"}, ("Finished", "blue")),
        ({"event": "attention", "state": "clear"}, ("Working", "green")),
        ({"event": "prompt", "text": "go on"}, None),
    ],
)
def test_a_line_of_the_story_has_the_words_and_the_colour_of_what_the_session_became(
    line: dict[str, object], look: tuple[str, str] | None
) -> None:
    assert told(line) == look


# How much was changed


def test_what_is_finished_says_how_much_it_has_changed() -> None:
    changed = {"changes": Changes(2, 12, 3, ago(1))}
    assert said(replace(after("done", message="All done."), **changed)) == ("Finished", "All done. · +12 −3")
    assert said(ended(run.COMPLETED, Exit(code=0), **changed)) == ("Finished", "+12 −3")
    assert said(running(**changed)) == ("Working", "")
    assert said(replace(after("done"), changes=Changes(0, 0, 0, ago(1)))) == ("Finished", "")
