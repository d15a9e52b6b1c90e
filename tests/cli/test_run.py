"""``hitch run``, ``restart`` and ``archive`` as a person uses them."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.places import SHAPE, as_owner_only, new_session
from tests.ground import Ground, Truth
from tests.support import Hitch, eventually


def test_run_prints_the_session_once_the_agent_runs(hitch: Hitch, home: Path) -> None:
    answer = hitch("run", "--name", "dev", "--", "sleep", "1000")
    (session,) = hitch("ps", "--json").json()
    assert answer.out == f"dev started as session 1, id {session['id']} (run 1)\n"
    assert answer.err == ""
    assert session["state"] == "running"
    hitch("stop", "--now", "dev")


def test_run_with_json_prints_the_one_shape(ground: Ground) -> None:
    words = ("run", "--json", "--name", "dev", "--description", "the auth bug", "--workspace", str(ground.place))
    session = ground.hitch(*words, "--", "sleep", "1000").json()
    assert set(session) == SHAPE
    expected = {
        "index": 1,
        "name": "dev",
        "description": "the auth bug",
        "agent": "sleep",
        "runtime": "local",
        "node": None,
        "owner": None,
        "record": "active",
        "workspace": {"id": None, "path": str(ground.place), "branch": None, "repository": None},
        "run": 1,
        "state": "running",
        "status": "running",
        "label": "running",
        "sandbox_alive": None,
        "session_alive": True,
        "exit": None,
        "supports_resume": False,
        "report": None,
        "conversation": None,
        "chat": False,
    }
    assert {key: session[key] for key in expected} == expected
    ground.hitch("stop", "--now", "dev")


def test_run_that_is_refused_leaves_no_keeper_behind(ground: Ground) -> None:
    ground.hitch("run", "--name", "dev", "--", "true")
    eventually(lambda: ground.processes() == [], what="the end of the first session")
    ground.hitch("run", "--name", "dev", "--", "true", check=5)
    eventually(lambda: ground.processes() == [], what="the end of the keeper that got no run")


@pytest.mark.ids("F5")
def test_a_program_that_is_missing_is_named_and_the_session_has_failed(ground: Ground) -> None:
    answer = ground.hitch("run", "--name", "dev", "--", "no-such-program", check=1)
    assert answer.err == "hitch: dev failed to start: program not found on PATH: no-such-program\n"
    (session,) = ground.hitch("ps", "--json").json()
    assert session["label"] == "failed: program not found on PATH: no-such-program"


@pytest.mark.ids("F5")
def test_a_program_that_is_not_executable_is_named(ground: Ground) -> None:
    program = ground.place / "tool"
    program.write_text("#!/bin/sh\n")
    answer = ground.hitch("run", "--name", "dev", "--", str(program), check=1)
    assert answer.err == f"hitch: dev failed to start: program is not executable: {program}\n"


def test_a_folder_that_is_not_there_is_a_usage_error_and_leaves_no_session(hitch: Hitch, home: Path) -> None:
    missing = home / "nowhere"
    answer = hitch("run", "--workspace", missing, "--", "true", check=2)
    assert answer.err == f"hitch: cannot work in {missing}: no such file or directory\n"
    assert hitch("ps", "--all", "--json").json() == []


def test_a_file_is_no_folder_to_work_in(ground: Ground) -> None:
    file = ground.place / "file"
    file.write_text("")
    assert "it is not a folder" in ground.hitch("run", "--workspace", file, "--", "true", check=2).err


def test_a_folder_that_cannot_be_entered_is_named(ground: Ground) -> None:
    closed = ground.place / "closed"
    closed.mkdir(mode=0o400)
    answer = as_owner_only(ground.hitch)("run", "--name", "dev", "--workspace", closed, "--", "true", check=1)
    assert answer.err == f"hitch: dev failed to start: cannot enter the folder {closed}: Permission denied\n"


def test_a_current_folder_that_is_gone_is_said(ground: Ground) -> None:
    gone = ground.place / "gone"
    gone.mkdir()
    here = os.open(gone, os.O_RDONLY)
    try:
        gone.rmdir()
        answer = ground.hitch("run", "--", "true", cwd=f"/proc/{os.getpid()}/fd/{here}", check=False)
    finally:
        os.close(here)
    assert (answer.code, answer.err) == (2, "hitch: the current folder is gone; name another with --workspace\n")


@pytest.mark.ids("C17")
def test_a_first_prompt_that_cannot_be_typed_starts_nothing(ground: Ground) -> None:
    told = ground.hitch("run", "--prompt", "a\x01", "--", "cat", check=2)
    why = "the text holds control characters; only tab and newline can be sent"
    assert told.err == f"hitch: the first prompt cannot be sent: {why}\n"
    assert ground.hitch("ps", "--all", "--json").json() == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("42", "hitch: the name '42' is only digits, which stand for a session's number; add a letter\n"),
        (" \t", "hitch: a name needs at least one visible character\n"),
        ("", "hitch: a name needs at least one visible character\n"),
        ("x" * 129, "hitch: the name has 129 characters; the limit is 128\n"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused_with_the_reason(hitch: Hitch, name: str, text: str) -> None:
    answer = hitch("run", "--name", name, "--", "true", check=2)
    assert answer.err == text
    assert hitch("ps", "--all", "--json").json() == []


def test_a_name_that_is_taken_is_refused_and_archiving_frees_it(ground: Ground) -> None:
    first = ground.run("true", name="dev")
    first.ended()
    refused = ground.hitch("run", "--name", "dev", "--", "true", check=5)
    hint = f"choose another name, or hitch cancel {first.id} ends and archives that one"
    assert refused.err == f"hitch: session {first.id} is already named 'dev'; {hint}\n"
    assert ground.hitch("archive", "dev").out == "dev: archived\n"
    second = ground.run("true", name="dev")
    second.ended()
    assert [row["id"] for row in ground.hitch("ps", "--json").json()] == [second.id]
    assert ground.hitch("explain", "dev", "--json").json()["session"]["id"] == second.id


def test_an_archived_session_takes_no_new_run(ground: Ground) -> None:
    session = ground.run("true", name="dev")
    session.ended()
    ground.hitch("archive", "dev")
    said = ground.hitch("restart", "dev", check=4).err
    assert said.startswith("hitch: dev is archived: it takes no new run (Session is archived); hitch unarchive ")


def test_a_live_session_is_not_archived_or_removed(ground: Ground) -> None:
    session = ground.run("sleep", "1000", name="dev")
    assert ground.hitch("archive", "dev", check=4).err == "hitch: dev is running; stop it before you archive it\n"
    assert ground.hitch("rm", "dev", check=4).err == "hitch: dev is running; stop it first, or use --force\n"
    assert session.state == "running"
    assert ground.hitch("rm", "--force", "dev").out == "dev: removed\n"
    assert not session.folder.exists()


def test_without_a_name_one_is_made_from_agent_and_folder(ground: Ground) -> None:
    names = [ground.hitch("run", "--json", "--workspace", ground.place, "--", "true").json()["name"] for _ in range(2)]
    assert names == ["true-place", "true-place-2"]


def test_no_number_is_given_out_twice(ground: Ground) -> None:
    for name in ("one", "two", "three"):
        new_session(ground.home, ground.place, name=name)
    ground.hitch("rm", "two")
    new_session(ground.home, ground.place, name="four")
    ground.hitch("archive", "one")
    new_session(ground.home, ground.place, name="five")
    found = {row["name"]: row["index"] for row in ground.hitch("ps", "--json").json()}
    assert found == {"five": 5, "four": 4, "three": 3}


def test_env_sets_a_variable_or_passes_the_callers_on(ground: Ground) -> None:
    script = 'echo "$A/$B/$C" > seen'
    words = (
        "run",
        "--workspace",
        ground.place,
        "--env",
        "A=x=y",
        "--env",
        "B",
        "--env",
        "C=",
        "--",
        "sh",
        "-c",
        script,
    )
    ground.hitch(*words, env={"A": "other", "B": "from the caller", "C": "other"})
    assert ground.said("seen") == "x=y/from the caller/\n"


@pytest.mark.parametrize("item", ["NOT_SET_ANYWHERE", "=value", ""])
def test_env_with_a_name_that_is_not_set_is_a_usage_error(hitch: Hitch, item: str) -> None:
    answer = hitch("run", "--env", item, "--", "true", check=2)
    name = item.partition("=")[0]
    assert answer.err == f"hitch: expected --env NAME=value, or the name of a variable that is set, but got {name!r}\n"


@pytest.mark.ids("S10")
def test_the_values_of_the_environment_are_written_nowhere(ground: Ground) -> None:
    canary = "canary-5d1f"
    session = ground.run("sh", "-c", "exit 0", env={"CANARY_NAME": canary})
    session.ended()
    assert "CANARY_NAME" in session.run_file()["env_names"]
    texts = [path.read_bytes() for path in ground.home.rglob("*") if path.is_file()]
    assert not any(canary.encode() in text for text in texts)


def test_a_note_tells_of_another_live_session_in_the_same_folder(ground: Ground) -> None:
    ended = ground.run("true", name="ended")
    ended.ended()
    ground.run("sleep", "1000", name="first")
    answer = ground.hitch("run", "--name", "second", "--workspace", ground.place, "--", "sleep", "1000")
    assert answer.err == f"note: session first works in {ground.place} too\n"
    ground.hitch("stop", "--now", "first", "second")


def test_of_many_sessions_in_the_same_folder_a_few_are_named_in_one_line(ground: Ground) -> None:
    others = [ground.begin("sleep", "1000", name=f"s{number}") for number in range(5)]
    answer = ground.hitch("run", "--name", "dev", "--workspace", ground.place, "--", "sleep", "1000")
    assert re.fullmatch(
        rf"note: s\d, s\d, s\d and more sessions work in {ground.place} too; see hitch ps\n", answer.err
    )
    ground.hitch("stop", "--now", "dev", *(other.id for other in others))


def test_restart_tells_which_variables_are_not_set_any_more(ground: Ground) -> None:
    ground.run("sleep", "1000", name="dev", env={"ANTHROPIC_API_KEY": "secret"})
    answer = ground.hitch("restart", "dev")
    assert answer.err == "dev: ANTHROPIC_API_KEY was set in run 1 and is not now\n"
    assert answer.out == "dev: running (run 2)\n"
    ground.hitch("stop", "--now", "dev")


def test_restart_where_the_folder_is_gone_is_refused_and_nothing_is_stopped(ground: Ground) -> None:
    place = ground.place / "inner"
    place.mkdir()
    session = ground.run("sleep", "1000", name="dev", place=place)
    shutil.rmtree(place)
    answer = ground.hitch("restart", "dev", check=4)
    assert answer.err.startswith(f"hitch: dev cannot start: {place} is gone or is another folder than the session's; ")
    assert session.state in ("running", "orphaned")
    ground.hitch("stop", "--now", "dev")


def test_stop_and_restart_take_several_sessions_and_one_failure_does_not_keep_the_others(ground: Ground) -> None:
    sessions = [ground.run("sleep", "1000", name=name) for name in ("one", "two")]
    answer = ground.hitch("stop", "--now", "one", "nobody", "two", check=3)
    assert answer.out == "one: stopped\ntwo: stopped\n"
    assert answer.err == "hitch: no session 'nobody'; hitch ps --all lists them\n"
    assert [session.state for session in sessions] == ["stopped", "stopped"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "say what to run"),
        (("no-such-agent",), "unknown agent 'no-such-agent'"),
        (("--workspace", "/", "--here", "--", "true"), "--workspace and --here cannot be combined"),
        (("--runtime", "moon", "--", "true"), "Invalid value for '--runtime': 'moon' is not"),
        (("--no-such-option",), "No such option"),
    ],
)
def test_words_that_do_not_fit_together_are_usage_errors(hitch: Hitch, words: tuple[str, ...], text: str) -> None:
    assert text in hitch("run", *words, check=2).err
    assert hitch("ps", "--all", "--json").json() == []


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ("grace_s = -1", "expected grace_s to be a number from 0 to 31622400, but got -1"),
        ('survivors = "maybe"', "expected survivors to be keep or kill, but got 'maybe'"),
        ("no_such_key = 1", "has an unknown key 'no_such_key'"),
        ("grace_s =", "cannot read"),
        ('env_files = ["/no/such/file"]', "cannot read the env file /no/such/file"),
        ("[env]\nNUMBER = 1", "expected env to be a table of texts"),
    ],
)
def test_a_config_that_is_wrong_names_the_key_and_nothing_is_started(ground: Ground, config: str, text: str) -> None:
    ground.configure(config)
    answer = ground.hitch("run", "--", "true", check=2)
    assert text in answer.err
    assert len(answer.err.splitlines()) == 1
    assert ground.hitch("ps", "--all", "--json").json() == []


def test_restart_with_a_config_that_is_wrong_stops_nothing(ground: Ground) -> None:
    session = ground.run("sleep", "1000", name="dev")
    ground.configure('env_files = ["/no/such/file"]')
    assert "cannot read the env file" in ground.hitch("restart", "dev", check=2).err
    assert session.states() == ["starting", "running"]
    ground.hitch("stop", "--now", "dev")


def test_the_config_s_env_reaches_the_agent(ground: Ground) -> None:
    extra = ground.place / "extra.env"
    extra.write_text('# a comment\nexport A="from the file"\nB=from the file\n')
    ground.configure(f'env_files = ["{extra}"]\n[env]\nB = "from the table"\n')
    session: Truth = ground.sh('echo "$A, $B" > seen')
    session.ended()
    assert ground.said("seen") == "from the file, from the table\n"


def test_an_agent_that_is_not_installed_says_how_to_install_it(ground: Ground, tmp_path: Path) -> None:
    answer = ground.hitch("run", "claude", "--name", "dev", env={"PATH": str(tmp_path)}, check=1)
    why = "program not found on PATH: claude; to install it: npm install -g @anthropic-ai/claude-code"
    assert answer.err == f"hitch: dev failed to start: {why}\n"


@pytest.mark.ids("E-16")
def test_the_permission_mode_reaches_claude_code_and_nobody_else(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("claude", "bash"):
        (ground.place / name).write_text('#!/bin/sh\nprintf "<%s>" "$@" >>said; echo >>said\n')
        (ground.place / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{ground.place}:{os.environ['PATH']}")
    mode = {"CLAUDE_PERMISSION_MODE": "plan"}
    here = ("--workspace", str(ground.place), "--json")

    def said(*words: str, env: dict[str, str]) -> str:
        (ground.place / "said").unlink(missing_ok=True)
        answer = ground.hitch(*words, env=env)
        session = Truth(ground.home, answer.json()["id"])
        session.ended(run=answer.json()["run"])
        return without_ours(ground.said("said").strip())

    asked = "<--permission-mode><plan>"
    assert said("run", "claude", "--name", "dev", *here, "--", "--verbose", env=mode) == f"{asked}<--verbose>"
    assert said("restart", "dev", "--json", env={}) == "<--verbose>"
    assert said("restart", "dev", "--json", env=mode) == f"{asked}<--verbose>"
    assert (
        said("run", "claude", *here, "--", "--permission-mode", "default", env=mode) == "<--permission-mode><default>"
    )
    assert said("run", "bash", *here, env=mode) == "<>"


def without_ours(words: str) -> str:
    """What an agent was started with, but for its conversation and its hooks."""
    return re.sub(r"<--session-id><[0-9a-f-]+><--settings><.*?\]\}\}>", "", words)
