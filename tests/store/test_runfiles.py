from __future__ import annotations

import json
import os
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from hitchpost.store.runfiles import NOBODY_KNOWS, Ending, signal_name
from tests.ground import NEVER_RAN, died_of, left_with
from tests.support import LeakWatch

AT = "2026-01-02T03:04:05.000006Z"


@pytest.mark.parametrize(
    ("wait_status", "fields", "shell_code", "verdict"),
    [
        (0, left_with(0), 0, ("completed", "command exited with code 0")),
        (3 << 8, left_with(3), 3, ("failed", "command exited with code 3")),
        (137 << 8, left_with(137), 137, ("failed", "command exited with code 137")),
        (255 << 8, left_with(255), 255, ("failed", "command exited with code 255")),
        (9, died_of(signal.SIGKILL), 137, ("failed", "command killed by SIGKILL")),
        (11 | 0x80, died_of(signal.SIGSEGV, core=True), 139, ("failed", "command killed by SIGSEGV")),
        (11, died_of(signal.SIGSEGV), 139, ("failed", "command killed by SIGSEGV")),
        (None, NEVER_RAN, NOBODY_KNOWS, ("failed", "exit status unknown")),
    ],
)
def test_a_wait_status_is_told_as_it_is(
    wait_status: int | None, fields: dict[str, Any], shell_code: int, verdict: tuple[str, str]
):
    ending = Ending(wait_status=wait_status, ended_at=AT)
    assert ending.fields() == {**fields, "rusage": None, "ended_at": AT, "ended_at_known": True}
    assert ending.shell_code == shell_code
    assert ending.verdict() == verdict


@pytest.mark.parametrize("wait_status", [0, 143 << 8, 15, 9, None])
def test_an_end_that_was_asked_for_is_stopped_whatever_the_status(wait_status: int | None):
    assert Ending(wait_status=wait_status, intent="user").verdict() == ("stopped", "asked by user")


@pytest.mark.ids("C19")
@pytest.mark.parametrize(
    ("wait_status", "why"),
    [
        (9, "command killed by SIGKILL (out of memory)"),
        (137 << 8, "command exited with code 137 (out of memory)"),
        (1 << 8, "command exited with code 1"),
        (11, "command killed by SIGSEGV"),
    ],
)
def test_an_end_is_out_of_memory_where_the_group_counted_it_and_the_end_fits(wait_status: int, why: str):
    assert Ending(wait_status=wait_status, oom_kills=lambda: 1).verdict() == ("failed", why)


def test_nobody_looks_for_memory_that_ran_out_unless_the_agent_was_killed():
    asked: list[int] = []

    def oom_kills() -> int:
        asked.append(1)
        return 0

    for wait_status in (0, 1 << 8, 11, 9):
        Ending(wait_status=wait_status, oom_kills=oom_kills)
    assert asked == [1]


def test_a_start_that_failed_is_failed_whoever_asked():
    assert Ending(error="program not found: x", intent="user").verdict() == ("failed", "program not found: x")


def test_both_files_are_written_and_nothing_else(leak_watch: LeakWatch):
    folder = leak_watch.scratch / "run"
    folder.mkdir()
    usage = SimpleNamespace(ru_utime=1.5, ru_stime=0.25, ru_maxrss=4096)
    Ending(wait_status=11, survivors=2, attention="done", lost_bytes=7, usage=usage, ended_at=AT).write(str(folder))
    assert json.loads((folder / "exit.json").read_bytes()) == {
        **died_of(signal.SIGSEGV, survivors=2, attention="done", lost_output_bytes=7),
        "rusage": {"user_s": 1.5, "system_s": 0.25, "max_rss_kb": 4096},
        "ended_at": AT,
        "ended_at_known": True,
    }
    assert (folder / "exit_status").read_text() == "139\n"
    assert sorted(os.listdir(folder)) == ["exit.json", "exit_status"]


def test_every_signal_has_one_name():
    assert {number: signal_name(number) for number in signal.valid_signals() if number < 32} == {
        number: signal.Signals(number).name for number in signal.valid_signals() if number < 32
    }
    assert [signal_name(number) for number in (32, 34, 40, 64)] == ["SIG32", "SIG34", "SIG40", "SIG64"]
