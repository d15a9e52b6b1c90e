from __future__ import annotations

import json
from pathlib import Path

import pytest

from hitchpost.errors import BadSettings, UsageError
from hitchpost.ops.sessions import environment
from hitchpost.settings import Settings
from tests.support import LeakWatch


def of_run(caller: dict[str, str], settings: Settings | None = None, **extra: str) -> dict[str, str]:
    return environment.of_run(caller, settings or Settings(), extra, "abc", 2, "/work")


OURS = {
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
    "PWD": "/work",
    "HITCHPOST_SESSION": "abc",
    "HITCHPOST_RUN": "2",
}


def test_the_callers_environment_is_inherited_without_its_terminal():
    caller = {"A": "1", "TMUX": "x", "TMUX_PANE": "x", "COLUMNS": "9", "TERM": "dumb", "TERM_PROGRAM": "x", "PWD": "/"}
    assert of_run(caller) == {"A": "1", **OURS}


def test_the_marks_of_an_outer_session_do_not_reach_an_inner_one():
    assert of_run({"HITCHPOST_SESSION": "out", "HITCHPOST_RUN": "9", "HITCHPOST_KEEPER": "/x"}) == OURS


def test_settings_win_over_the_caller_and_extras_over_both():
    settings = Settings(env={"A": "settings", "B": "settings", "TERM": "vt100"})
    assert of_run({"A": "caller", "B": "caller", "C": "caller"}, settings, B="extra") == {
        **OURS,
        "A": "settings",
        "B": "extra",
        "C": "caller",
        "TERM": "vt100",
    }


def test_files_of_variables_are_read_in_order(leak_watch: LeakWatch):
    one, two = leak_watch.scratch / "one", leak_watch.scratch / "two"
    one.write_text("# comment\n\nexport A='1 2'\nB=\"x=y\"\nC=\n")
    two.write_text("B=two\n")
    settings = Settings(env_files=(str(one), str(two)), env={"C": "table"})
    assert of_run({}, settings) == {**OURS, "A": "1 2", "B": "two", "C": "table"}


def test_a_file_that_is_missing_or_wrong_is_named_without_its_values(leak_watch: LeakWatch):
    broken = leak_watch.scratch / "broken"
    broken.write_text("A=1\nsecret-value\n")
    with pytest.raises(BadSettings, match=r"broken, line 2: expected NAME=value") as caught:
        of_run({}, Settings(env_files=(str(broken),)))
    assert "secret" not in str(caught.value)
    with pytest.raises(BadSettings, match="cannot read the env file"):
        of_run({}, Settings(env_files=(str(leak_watch.scratch / "gone"),)))


def test_options_give_a_value_or_pass_the_callers():
    assert environment.parse(("A=1", "B=", "C=x=y", "MINE"), {"MINE": "m"}) == {
        "A": "1",
        "B": "",
        "C": "x=y",
        "MINE": "m",
    }


@pytest.mark.parametrize("item", ["", "=x", "NOT_SET"])
def test_an_option_that_names_nothing_is_refused(item: str):
    with pytest.raises(UsageError, match="expected --env NAME=value"):
        environment.parse((item,), {})


def test_names_that_an_earlier_run_had_are_missed(leak_watch: LeakWatch):
    run = leak_watch.scratch / "runs" / "1"
    run.mkdir(parents=True)
    names = ["KEY", "PATH", "SHLVL", "SSH_TTY", "TERM", "XDG_X"]
    Path(run / "run.json").write_text(json.dumps({"agent": {"pid": 1, "start": 1}, "env_names": names}))
    folder = str(leak_watch.scratch)
    assert environment.missing_names(folder, 1, {"PATH": "x"}) == ["KEY"]
    assert environment.missing_names(folder, 1, {"PATH": "x", "KEY": ""}) == []
    assert environment.missing_names(folder, 0, {}) == []
    assert environment.missing_names(folder, 2, {}) == []
    (run / "run.json").write_text("torn")
    assert environment.missing_names(folder, 1, {}) == []
