"""``hitch doctor``: what it finds, what it mends, and that it only looks unless it is told to mend."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hitchpost.ops.doctor.report import file_system
from hitchpost.store import files, process_marks
from hitchpost.store.index import Index
from hitchpost.system import cgroup
from tests.cli.places import HOSTILE, NOBODY, as_nobody, is_harmless, new_session, only_root, tree
from tests.ground import Ground, Truth, alive
from tests.support import Hitch, end_home, eventually, halt

GARBAGE = b"\x00\xff{" * 50
MACHINE = ["python", "pidfd", "sub-reaper", "/proc", "protection", "git", "tmux", "config"]


def checks(hitch: Hitch, *words: str) -> list[dict[str, str]]:
    """The findings, after checking that the exit code fits them."""
    answer = hitch("doctor", "--json", *words, check=False)
    value = answer.json()
    assert set(value) == {"ok", "home", "checks", "fixed", "failed"}
    assert value["ok"] == (not value["failed"] and all(one["level"] != "problem" for one in value["checks"]))
    assert answer.code == (0 if value["ok"] else 1)
    assert answer.err == ""
    return value["checks"]


def trouble(hitch: Hitch, *words: str) -> list[dict[str, str]]:
    """What is not in order, but for what this machine lacks, and for control groups, which all homes share."""
    found = [one for one in checks(hitch, *words) if one["level"] != "ok" and one["check"] not in MACHINE]
    return [one for one in found if "control groups" not in one["text"]]


def fixed(hitch: Hitch) -> list[str]:
    value: dict[str, Any] = hitch("doctor", "--fix", "--json", check=False).json()
    return value["fixed"]


def only(found: list[dict[str, str]], level: str, check: str) -> dict[str, str]:
    assert [(one["level"], one["check"]) for one in found] == [(level, check)], found
    return found[0]


def session_of(ground: Ground, **more: str) -> Path:
    return ground.home / "sessions" / new_session(ground.home, ground.place, **more)


# Looking --------------------------------------------------------------------------------------------------------


def test_a_home_in_order_has_no_problem(ground: Ground) -> None:
    session = ground.run("sleep", "1000", name="dev")
    ended = ground.run("true", name="ended")
    ended.ended()
    found = [one for one in checks(ground.hitch) if "control groups" not in one["text"]]
    assert [one["check"] for one in found] == [*MACHINE, "home", "space", "file system", "index", "sessions"]
    assert trouble(ground.hitch) == []
    assert found[-1] == {"level": "ok", "check": "sessions", "text": "2 in order", "todo": "", "session": ""}
    answer = ground.hitch("doctor")
    assert answer.out.splitlines()[0].startswith("ok       python      3.")
    assert answer.out.splitlines()[-1].startswith("no problems, ")
    ground.stop(session, "--now")


def test_without_fix_nothing_is_written(ground: Ground) -> None:
    broken, lost = session_of(ground, name="broken"), ground.run("sleep", "1000", name="lost")
    (broken / "state.json").write_bytes(GARBAGE)
    (broken / ".state.json.1.aa.tmp").write_text("")
    (ground.home / "sessions" / ".removed-abcdefghijkl").mkdir()
    lost.kill_keeper()
    before = tree(ground.home)
    assert not all(one["level"] == "ok" for one in checks(ground.hitch))
    ground.hitch("doctor", check=1)
    assert tree(ground.home) == before


def test_a_home_that_is_not_there_yet_is_in_order_and_not_made(hitch: Hitch, home: Path) -> None:
    home.rmdir()
    assert trouble(hitch) == []
    assert [text for text in fixed(hitch) if "control group" not in text] == []
    assert not home.exists()
    home.mkdir(mode=0o700)


@pytest.mark.ids("S11")
@pytest.mark.parametrize("kind", ["open to others", "link", "file"])
def test_a_home_that_cannot_be_used_is_a_problem_and_the_machine_is_still_checked(
    hitch: Hitch, home: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    place = home / "place"
    if kind == "open to others":
        place.mkdir()
        place.chmod(0o777)
    elif kind == "link":
        place.symlink_to("/tmp")
    else:
        place.write_text("")
    monkeypatch.setenv("HITCHPOST_HOME", str(place))
    found = checks(hitch)
    assert [one["check"] for one in found] == [*MACHINE, "home"]
    assert (found[-1]["level"], str(place) in found[-1]["text"]) == ("problem", True)
    assert hitch("doctor", "--fix", check=4).err.startswith(f"hitch: will not use {place}: ")


@only_root
@pytest.mark.ids("S11")
def test_a_home_of_another_user_is_a_problem(hitch: Hitch, home: Path) -> None:
    os.chown(home, NOBODY, NOBODY)
    assert f"it belongs to user {NOBODY}" in only(trouble(hitch), "problem", "home")["text"]


def test_a_home_that_others_may_read_is_a_note(hitch: Hitch, home: Path) -> None:
    hitch("run", "--", "true")
    home.chmod(0o755)
    assert only(trouble(hitch), "note", "home")["todo"] == f"run: chmod 700 {home}"


@only_root
@pytest.mark.ids("F13")
def test_where_no_control_group_is_allowed_it_says_unprotected(hitch: Hitch, home: Path) -> None:
    os.chown(home, NOBODY, NOBODY)
    found = {one["check"]: one for one in checks(as_nobody(hitch))}
    assert found["protection"]["level"] == "note"
    assert found["protection"]["text"].startswith(
        "unprotected: a fork bomb or runaway memory use in one session can starve the others"
    )


def test_the_probe_leaves_no_control_group_behind(hitch: Hitch) -> None:
    hitch("doctor")
    assert [folder for _, base in cgroup.bases() for folder in Path(base).glob("hitchpost.doctor.*")] == []


def test_git_and_tmux_that_are_missing_are_notes(hitch: Hitch, home: Path) -> None:
    found = {one["check"]: one for one in checks(Hitch(("env", f"PATH={home}", *hitch.command)))}
    assert (found["git"]["level"], found["tmux"]["level"]) == ("note", "note")


@pytest.mark.parametrize("version", ["3.0", "3.1c", "3.2"])
def test_doctor_and_run_want_the_same_tmux(ground: Ground, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    program = ground.place / "tmux"
    program.write_text(f"#!/bin/sh\necho tmux {version}\n[ $1 = -V ]\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ground.place}:{os.environ['PATH']}")
    found = {one["check"]: one for one in checks(ground.hitch)}["tmux"]
    run = ground.hitch("run", "--runtime", "tmux", "--", "true", check=1).err
    assert (found["level"] == "note") == ("is too old" in run) == (version != "3.2")
    assert found["todo"] in run


@pytest.mark.parametrize("content", ["grace_s = -1", "=", 'env_files = ["/no/such/file"]'])
def test_a_config_that_is_wrong_is_a_problem(ground: Ground, content: str) -> None:
    ground.configure(content)
    found = {one["check"]: one for one in checks(ground.hitch)}
    assert found["config"]["level"] == "problem"
    assert found["config"]["todo"].endswith("hitchpost/config.toml")


def test_the_file_system_is_named_as_the_kernel_names_it() -> None:
    assert file_system("/proc/self") == "proc"
    assert file_system("/no/such/place") == file_system("/")


# Files ----------------------------------------------------------------------------------------------------------


@pytest.mark.ids("F36")
@pytest.mark.parametrize("file", ["state.json", "session.json"])
def test_an_unreadable_file_is_a_problem_and_fix_rebuilds_it_from_the_story(ground: Ground, file: str) -> None:
    session = Truth(ground.home, session_of(ground, name="dev").name)
    before = json.loads((session.folder / file).read_text())
    (session.folder / file).unlink()
    (session.folder / file).write_bytes(GARBAGE)
    found = only(trouble(ground.hitch), "problem", "files")
    assert str(session.folder / file) in found["text"]
    assert any("rebuilt from its story" in text for text in fixed(ground.hitch))
    after = json.loads((session.folder / file).read_text())
    own = {"updated_by", "state_changed_at"}
    assert {key: after[key] for key in after if key not in own} == {
        key: before[key] for key in before if key not in own
    }
    kept = only(trouble(ground.hitch), "note", "quarantine")
    (away,) = (ground.home / "quarantine").iterdir()
    assert away.read_bytes() == GARBAGE
    assert away.name in kept["text"]


def test_an_unreadable_file_of_an_ended_run_is_moved_away_and_kept(ground: Ground) -> None:
    session = ground.sh("exit 3", name="dev")
    session.ended()
    (session.run() / "intent.json").write_bytes(GARBAGE)
    assert "intent.json" in only(trouble(ground.hitch), "problem", "files")["text"]
    done = [text for text in fixed(ground.hitch) if "control group" not in text]
    assert ["moved an unreadable file" in text for text in done] == [True]
    assert only(trouble(ground.hitch), "note", "quarantine")
    assert [path.read_bytes() for path in (ground.home / "quarantine").iterdir()] == [GARBAGE]


@pytest.mark.ids("F36")
def test_an_unreadable_exit_of_a_lost_run_is_kept_and_not_overwritten(ground: Ground) -> None:
    session = ground.run("sleep", "1000", name="dev")
    session.kill_keeper()
    (session.run() / "exit.json").write_bytes(GARBAGE)
    fixed(ground.hitch)
    assert (session.state, session.exit()["error"]) == ("failed", "keeper lost")
    assert [path.read_bytes() for path in (ground.home / "quarantine").iterdir()] == [GARBAGE]


@pytest.mark.ids("F36")
def test_a_session_of_which_nothing_can_be_read_stays_a_problem_and_is_kept(ground: Ground) -> None:
    session = session_of(ground, name="dev")
    for name in ("state.json", "session.json", "story.jsonl"):
        (session / name).write_bytes(GARBAGE)
    answer = ground.hitch("doctor", "--fix", "--json", check=1).json()
    assert [text.startswith(f"{session.name}: could not be repaired: ") for text in answer["failed"]] == [True]
    assert not any("could not" in text for text in answer["fixed"])
    lines = ground.hitch("doctor", "--fix", check=1).out.splitlines()
    assert [line.split()[:2] for line in lines if "could not be repaired" in line] == [["failed", f"{session.name}:"]]
    assert all((session / name).read_bytes() == GARBAGE for name in ("state.json", "session.json", "story.jsonl"))
    assert {one["level"] for one in trouble(ground.hitch)} == {"problem"}


@pytest.mark.ids("F34")
@pytest.mark.parametrize("file", ["state.json", "session.json", "runs/1/exit.json"])
def test_a_newer_schema_is_a_problem_and_fix_leaves_it_alone(ground: Ground, file: str) -> None:
    session = ground.run("true", name="dev")
    session.ended()
    path = session.folder / file
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 99'))
    assert "written by a newer hitchpost" in trouble(ground.hitch)[0]["text"]
    before = tree(session.folder)
    fixed(ground.hitch)
    assert tree(session.folder) == before
    assert "problem" in {one["level"] for one in trouble(ground.hitch)}


@pytest.mark.ids("A31-15", "F34")
def test_an_older_schema_is_a_note(ground: Ground) -> None:
    path = session_of(ground, name="dev") / "state.json"
    path.write_text(path.read_text().replace('"schema": 1, "run": 1, "state"', '"status"'))
    assert "has an older schema" in only(trouble(ground.hitch), "note", "files")["text"]


@pytest.mark.ids("S11")
def test_a_planted_link_in_place_of_a_session_is_a_problem_and_not_followed(ground: Ground) -> None:
    outside = ground.watch.scratch / "outside"
    session_of(ground, id="abcdefghijkl").rename(outside)
    (ground.home / "sessions" / "abcdefghijkl").symlink_to(outside)
    before = tree(outside)
    assert "it is a symbolic link" in only(trouble(ground.hitch), "problem", "session")["text"]
    fixed(ground.hitch)
    assert tree(outside) == before


# Keepers --------------------------------------------------------------------------------------------------------


@pytest.mark.ids("F17")
def test_a_lost_keeper_is_a_problem_and_fix_writes_it_down_and_leaves_no_process(ground: Ground) -> None:
    session = ground.run("sleep", "1000", name="dev")
    session.kill_keeper()
    found = trouble(ground.hitch)
    assert "its keeper is gone" in found[0]["text"]
    assert (found[0]["level"], found[0]["session"]) == ("problem", "dev")
    assert session.state == "running"
    assert "dev: recorded what became of it: running → failed: keeper lost" in fixed(ground.hitch)
    assert session.state == "failed"
    assert trouble(ground.hitch) == []
    assert ground.processes() == []


@pytest.mark.parametrize("runtime", ["local", "tmux"])
@pytest.mark.parametrize("deleted", ["session", "home"])
def test_a_keeper_whose_folder_was_deleted_is_found_and_fix_ends_it_with_its_agent(
    ground: Ground, deleted: str, runtime: str
) -> None:
    words = ("run", "--json", "--name", "dev", "--runtime", runtime, "--workspace", ground.place, "--", "sleep", "1000")
    session = Truth(ground.home, ground.hitch(*words).json()["id"])
    keeper, agent = session.keeper_pid(), session.agent_pid()
    folder = session.folder if deleted == "session" else ground.home / "sessions"
    while folder.exists():  # the keeper makes its socket again when that goes
        shutil.rmtree(folder, ignore_errors=True)
    found = only(trouble(ground.hitch), "problem", "keeper")
    assert found["text"] == (
        f"the folder of {session.id} was deleted; its keeper (pid {keeper}) and the agent of run 1 are still running"
    )
    assert alive(agent), "looking ends nothing"
    assert fixed(ground.hitch) == [f"ended the keeper and the agent of {session.id}, whose folder was deleted"]
    assert not alive(agent)
    assert trouble(ground.hitch) == []
    eventually(lambda: ground.processes() == [], what="the end of everything")


def test_the_keeper_of_a_home_that_was_moved_is_none_without_a_folder(ground: Ground) -> None:
    session = ground.run("sleep", "1000", name="dev")
    away = ground.home.with_name("away")
    ground.home.rename(away)
    ground.home.mkdir(0o700)
    try:
        assert trouble(ground.hitch) == []
        assert fixed(ground.hitch) == []
        moved = Truth(away, session.id)
        assert alive(moved.agent_pid())
        os.kill(moved.keeper_pid(), signal.SIGTERM)
        eventually(lambda: not alive(moved.agent_pid()), what="the agent's end")
    finally:
        shutil.rmtree(ground.home)
        away.rename(ground.home)


def test_a_keeper_that_does_not_answer_is_a_problem_with_its_pid(ground: Ground) -> None:
    session = ground.run("sleep", "1000", name="dev")
    pid = session.keeper_pid()
    halt(pid)
    found = only(trouble(ground.hitch), "problem", "keeper")
    assert (found["session"], f"(pid {pid})" in found["text"]) == ("dev", True)
    assert found["todo"] == f"it was stopped by a signal; run: kill -CONT {pid}"
    fixed(ground.hitch)
    assert session.state == "running", "what is only silent is not ended"
    os.kill(pid, signal.SIGCONT)
    eventually(lambda: trouble(ground.hitch) == [])
    ground.stop(session, "--now")


def test_what_a_keeper_complained_of_is_a_note(ground: Ground) -> None:
    session = ground.run("true", name="dev")
    session.ended()
    (session.run() / "keeper.log").write_text("first\nthe last word\n")
    found = only(trouble(ground.hitch), "note", "keeper log")
    assert found["text"] == "the keeper of run 1 complained: the last word"


@pytest.mark.ids("F8")
def test_survivors_of_an_ended_run_are_a_note(ground: Ground) -> None:
    session = ground.sh("setsid sleep 1000 & sleep 0.1; exit 0", name="dev")
    assert session.ended() == "completed"
    assert only(trouble(ground.hitch), "note", "survivors")["todo"] == "hitch stop dev ends them"
    ground.stop(session)
    assert trouble(ground.hitch) == []


# What is left over ----------------------------------------------------------------------------------------------


@pytest.mark.ids("F38")
def test_what_is_left_over_is_a_note_and_fix_removes_it(ground: Ground) -> None:
    session = ground.run("true", name="dev")
    session.ended()
    left = [
        ground.home / ".index.json.999999999.abcd.tmp",
        session.folder / ".state.json.999999999.abcd.tmp",
        session.run() / ".exit.json.999999999.abcd.tmp",
        session.run() / ".spare-exit",
    ]
    for path in left:
        path.write_text("half")
    folders = [ground.home / "sessions" / name for name in (".new-abcdefghijkl", ".removed-abcdefghijkl")]
    for folder in folders:
        folder.mkdir(mode=0o700)
        (folder / "session.json").write_text("{}")
    found = trouble(ground.hitch)
    assert {(one["level"], one["check"]) for one in found} == {("note", "left over")}
    assert len(found) == 3
    done = [text for text in fixed(ground.hitch) if "control group" not in text]
    assert sorted(done) == sorted(f"removed {path}" for path in [*left, *folders])
    assert [path for path in [*left, *folders] if path.exists()] == []
    assert trouble(ground.hitch) == []
    assert session.state == "completed"


def test_files_that_a_live_process_is_writing_are_not_left_over(ground: Ground) -> None:
    session = session_of(ground, name="dev")
    (session / f".session.json.{os.getpid()}.abcd.tmp").write_text("half")
    assert trouble(ground.hitch) == []


@pytest.fixture
def branch(home: Path) -> Iterator[list[Path]]:
    """Control groups of the test's own, to run the command in: what it sees there is not another test's."""
    made = []
    for _, base in cgroup.bases():
        folder = Path(base) / f"test-{home.name}"
        try:
            folder.mkdir()
        except OSError:
            continue
        made.append(folder)
    if not made:
        pytest.skip("no control group is allowed here")
    yield made
    end_home(home)
    for folder in made:
        for left in folder.glob("hitchpost.*"):
            left.rmdir()
        folder.rmdir()


def inside(branch: list[Path], hitch: Hitch) -> Hitch:
    enter = 'for group in $0; do echo $$ > "$group/cgroup.procs"; done; exec "$@"'
    return Hitch(("sh", "-c", enter, " ".join(map(str, branch)), *hitch.command))


def test_an_empty_control_group_of_ours_is_a_note_and_fix_removes_it(
    hitch: Hitch, home: Path, branch: list[Path]
) -> None:
    hitch("run", "--", "true")
    hitch = inside(branch, hitch)
    own = files.folder_id(str(home))
    mine, young = (branch[0] / f"hitchpost.{own}.{letter * 12}.1" for letter in "ab")
    others = [branch[0] / f"hitchpost.{name}.1" for name in (f"1-2.{'a' * 12}", "a" * 12)]
    for folder in (mine, young, *others, branch[0] / "foreign.1"):
        folder.mkdir()
    hour_ago = time.time() - 3600
    for folder in (mine, *others):
        os.utime(folder, (hour_ago, hour_ago))
    found = [one["text"] for one in checks(hitch) if one["level"] != "ok" and one["check"] == "left over"]
    assert found == [f"empty control groups: {mine}"]
    assert fixed(hitch) == [f"removed the empty control group {mine}"]
    assert young.is_dir(), "a run may just be started in it"
    assert [folder for folder in others if not folder.is_dir()] == [], "they may be another home's"
    (branch[0] / "foreign.1").rmdir()


@pytest.mark.ids("F17")
def test_the_control_group_of_a_lost_run_is_removed_by_fix(ground: Ground, branch: list[Path]) -> None:
    hitch = inside(branch, ground.hitch)
    session = Truth(ground.home, hitch("run", "--json", "--", "sleep", "1000").json()["id"])
    groups = [
        group for folder in branch if (group := folder / process_marks.group_name(str(session.folder), 1)).is_dir()
    ]
    assert groups
    session.kill_keeper()
    fixed(hitch)
    assert [group for group in groups if group.exists()] == []
    assert ground.processes() == []


# The index ------------------------------------------------------------------------------------------------------


def test_an_index_that_contradicts_the_files_is_a_problem_and_fix_rebuilds_it(ground: Ground) -> None:
    session = session_of(ground, name="dev")
    index = Index(str(ground.home)).refresh()
    trusted = str(os.stat(session).st_ctime_ns)
    index.lines[session.name] = "\t".join((session.name, trusted, "active", "7", "forged"))
    index.save()
    found = only(trouble(ground.hitch), "problem", "index")
    assert "'forged'" in found["text"]
    fixed(ground.hitch)
    assert trouble(ground.hitch) == []
    assert [one["name"] for one in ground.hitch("ps", "--json").json()] == ["dev"]


def test_two_sessions_with_one_name_are_a_problem(ground: Ground) -> None:
    first, second = (session_of(ground, name=name) for name in ("dev", "other"))
    (second / "session.json").write_text((second / "session.json").read_text().replace('"other"', '"dev"'))
    found = only(trouble(ground.hitch), "problem", "index")
    assert "have the same name 'dev'" in found["text"]
    assert {first.name, second.name} <= set(found["text"].split())


# Showing --------------------------------------------------------------------------------------------------------


@pytest.mark.ids("A31-15")
def test_show_prints_the_stored_files_with_their_paths(ground: Ground) -> None:
    session = ground.sh("exit 3", name="dev")
    session.ended()
    names = ["session.json", "state.json", *(f"runs/1/{name}.json" for name in ("run", "exit", "intent", "attention"))]
    found = ground.hitch("doctor", "--show", "dev", "--json").json()
    assert [one["path"] for one in found] == [str(session.folder / name) for name in names]
    assert [one["value"] for one in found[:4]] == [
        json.loads((session.folder / name).read_text()) for name in names[:4]
    ]
    assert [one["error"] for one in found] == [None, None, None, None, "not there", "not there"]
    out = ground.hitch("doctor", "--show", "dev").out
    assert f"{session.folder / 'state.json'}\n{{\n" in out
    assert '  "state": "failed",\n' in out


@pytest.mark.ids("A31-15", "F36")
def test_show_says_which_file_is_unreadable_and_how_it_begins(ground: Ground) -> None:
    session = session_of(ground, name="dev")
    (session / "state.json").write_bytes(b"\x1b[2J garbage")
    answer = ground.hitch("doctor", "--show", session.name)
    assert is_harmless(answer.out)
    assert "(unreadable: expected a JSON value" in answer.out
    assert "garbage" in answer.out


@pytest.mark.ids("S8")
def test_hostile_names_are_escaped(ground: Ground) -> None:
    session = session_of(ground, name=HOSTILE)
    (session / ".x.999999999.abcd.tmp").write_text("")
    for words in ((), ("--show", HOSTILE), ("--fix",)):
        answer = ground.hitch("doctor", *words)
        assert is_harmless(answer.out)


def test_show_and_fix_exclude_each_other(hitch: Hitch) -> None:
    assert hitch("doctor", "--show", "x", "--fix", check=2).err == "hitch: --show and --fix cannot be combined\n"
