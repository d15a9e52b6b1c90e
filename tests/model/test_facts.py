from __future__ import annotations

import pytest

from hitchpost.model import facts as kinds
from hitchpost.model.facts import Exit, Facts
from hitchpost.model.policy import RestartDecision, RestartPolicy, Retention
from hitchpost.model.status import status
from hitchpost.values import asdict
from tests.model.made import NOW, reported


@pytest.mark.ids("A22-8")
@pytest.mark.parametrize(
    ("end", "code"),
    [
        (Exit(code=3), 3),
        (Exit(signal="SIGSEGV", signal_number=11), 139),
        (Exit(), None),
    ],
)
def test_a_shell_would_give_the_code_or_128_and_the_signal_or_nothing(end: Exit, code: int | None) -> None:
    assert end.shell_code == code


@pytest.mark.ids("D-1", "X25", "A31-7", "A22-10")
def test_of_a_new_session_nothing_is_known_but_what_everyone_begins_with() -> None:
    assert asdict(Facts(created_at=NOW)) == {
        "created_at": NOW,
        "state": "created",
        "state_changed_at": None,
        "record": "active",
        "record_changed_at": None,
        "runtime": "local",
        "run": 1,
        "started_at": None,
        "last_activity_at": None,
        "busy_since": None,
        "longest_pause_s": 0,
        "last_alive_at": None,
        "exit": None,
        "report": None,
        "keeper_alive": None,
        "same_boot": None,
        "lost": "",
        "left": 0,
        "sandbox_alive": None,
        "session_alive": None,
        "sandbox_paused": False,
        "process_stopped": False,
        "keeper_stopped": False,
        "doubt": "",
        "probe_failed": False,
        "workspace_missing": False,
        "supports_resume": False,
        "idle_after_s": 30,
        "quiet_after_s": 3,
        "earlier_runs_s": 0,
        "earlier_survivors": 0,
        "changes": None,
        "seen_at": None,
        "snoozed_until": None,
        "when_limit": "stop",
        "gone_on_from": None,
        "gone_on_at": None,
        "gone_on_known": True,
        "has_work": False,
        "has_workspace": False,
        "folder_back": False,
        "pod": None,
    }


def test_of_an_end_that_nobody_saw_nothing_is_known() -> None:
    assert asdict(Exit()) == {
        "code": None,
        "signal": None,
        "signal_number": None,
        "core_dumped": False,
        "intent": None,
        "error": None,
        "survivors": 0,
        "attention": None,
        "ended_at": None,
        "ended_at_known": True,
        "torn_down_at": None,
        "out_of_memory": False,
    }


@pytest.mark.ids("C70-1")
def test_only_a_container_is_a_sandbox() -> None:
    assert (kinds.LOCAL, kinds.TMUX, kinds.DOCKER) == ("local", "tmux", "docker")
    assert kinds.WITHOUT_SANDBOX == ("local", "tmux", "adopted")


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (Facts(created_at=NOW), "state"),
        (Exit(), "code"),
        (reported("idle"), "state"),
        (status(Facts(created_at=NOW), NOW), "word"),
        (RestartPolicy(), "mode"),
        (RestartDecision(None, ""), "why"),
        (Retention(), "error"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_of_the_model_does_not_change_and_takes_no_other_fields(value: object, field: str) -> None:
    for name in (field, "another"):
        with pytest.raises(AttributeError):
            setattr(value, name, "other")


def test_a_session_has_its_first_run_from_the_beginning() -> None:
    new = Facts(created_at=NOW)
    ended = Facts(created_at=NOW, state="failed", run=2)
    assert (new.next_run, ended.next_run) == (1, 3)
