"""What goes wrong is said in one line, with the right exit code, and touches nothing else."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from hitchpost import __version__
from hitchpost.cli.group import COMMANDS
from tests.cli.places import NOBODY, as_owner_only, new_session, only_root, tree
from tests.ground import Ground
from tests.support import Answer, Hitch

BUILT = [name for name in COMMANDS if find_spec(f"hitchpost.cli.{name}") is not None]
VERBS: dict[str, tuple[str, ...]] = {
    "attach": ("attach", "{}"),
    "logs": ("logs", "{}"),
    "send": ("send", "{}", "text"),
    "wait": ("wait", "{}", "--until", "exit"),
    "stop": ("stop", "{}"),
    "restart": ("restart", "{}"),
    "archive": ("archive", "{}"),
    "rm": ("rm", "--force", "{}"),
    "explain": ("explain", "{}"),
    "replay": ("replay", "{}"),
    "doctor": ("doctor", "--show", "{}"),
}
verbs = pytest.mark.parametrize("verb", [verb for verb in VERBS if verb in BUILT])
TRAVERSALS = (
    "..",
    "../../etc",
    "../victim/aaaaaaaaaaaa",
    "..%2F..%2Fvictim",
    "%2e%2e/victim",
    "/",
    "*",
    "[a-z]*",
    "{a,b}",
    "~",
    "$HOME",
    "",
    "x" * 10_240,
    "../" * 3000,
    "\udcff\udcfe",
    "-rf",
)


def call(hitch: Callable[..., Answer], verb: str, session: str) -> tuple[int, str]:
    answer = hitch(*(session if word == "{}" else word for word in VERBS[verb]), check=False)
    assert "Traceback" not in answer.err
    assert answer.out == ""
    return answer.code, answer.err


def test_python_dash_m_is_the_command(home: Path) -> None:
    program = os.path.join(os.path.dirname(sys.executable), "hitch")
    for command in ((sys.executable, "-m", "hitchpost"), (program,)):
        assert Hitch(command)("--version").out == f"hitch, version {__version__}\n"


@pytest.mark.parametrize("name", BUILT)
def test_the_help_of_every_command_works(hitch: Hitch, home: Path, name: str) -> None:
    answer = hitch(name, "--help")
    assert answer.out.startswith(f"Usage: hitch {name}")
    assert answer.err == ""
    assert list(home.iterdir()) == []


def test_help_lists_every_command_without_loading_them(hitch: Hitch) -> None:
    out = hitch("--help").out
    assert all(f"  {name} " in out for name in COMMANDS)


def test_a_command_that_does_not_exist_is_a_usage_error(hitch: Hitch) -> None:
    assert "No such command 'fly'" in hitch("fly", check=2).err


# Finding sessions -----------------------------------------------------------------------------------------------


@verbs
def test_an_unknown_session_is_exit_code_3_on_every_verb(hitch: Hitch, verb: str) -> None:
    assert call(hitch, verb, "nobody") == (3, "hitch: no session 'nobody'; hitch ps --all lists them\n")


@verbs
def test_an_ambiguous_beginning_of_an_id_is_exit_code_3_and_lists_those_that_fit(ground: Ground, verb: str) -> None:
    for id in ("abcdef000001", "abcdef000002"):
        new_session(ground.home, ground.place, id=id)
    code, text = call(ground.hitch, verb, "abc")
    assert code == 3
    assert text == ("hitch: 'abc' matches 2 sessions: abcdef000001, abcdef000002; type more of the id, or a name\n")
    assert len(ground.hitch("ps", "--json").json()) == 2


def found(ground: Ground, wanted: str) -> str:
    return str(ground.hitch("explain", wanted, "--json").json()["session"]["id"])


def test_a_session_is_found_by_id_then_name_then_index_then_the_beginning_of_an_id(ground: Ground) -> None:
    def new(id: str, name: str) -> None:
        new_session(ground.home, ground.place, id=id, name=name)

    new("2aaaaaaaaaaa", "one")
    new("bbbbbbbbbbbb", "2aaaaaaaaaaa")
    new("dddddddddddd", "bbbb")
    new("eeeeeeeeeeee", "four")
    assert found(ground, "2aaaaaaaaaaa") == "2aaaaaaaaaaa", "the id before the name"
    assert found(ground, "bbbb") == "dddddddddddd", "the name before the beginning of an id"
    assert found(ground, "2") == "bbbbbbbbbbbb", "the index before the beginning of an id"
    assert found(ground, "2a") == "2aaaaaaaaaaa", "the beginning of an id"
    assert found(ground, "bbbbb") == "bbbbbbbbbbbb"
    assert found(ground, "four") == found(ground, "4") == "eeeeeeeeeeee"


def test_a_live_name_comes_before_an_archived_one_which_keeps_its_number(ground: Ground) -> None:
    old = new_session(ground.home, ground.place, name="dev")
    ground.hitch("archive", "dev")
    assert found(ground, "dev") == found(ground, "1") == old
    new = new_session(ground.home, ground.place, name="dev")
    assert found(ground, "dev") == found(ground, "2") == new
    assert found(ground, "1") == old


@verbs
@pytest.mark.ids("S6")
def test_a_session_argument_is_never_a_path(ground: Ground, verb: str) -> None:
    inside = ground.home / "sessions" / new_session(ground.home, ground.place, name="dev", id="abcdef000001")
    victim = ground.home.parent / "victim"
    shutil.copytree(inside, victim / "sessions" / "aaaaaaaaaaaa")
    shutil.copytree(inside, victim / "aaaaaaaaaaaa")
    ground.hitch("ps")
    before = tree(ground.place, victim, inside)
    for session in TRAVERSALS:
        assert call(ground.hitch.here, verb, session)[0] in ((2, 3) if session.startswith("-") else (3,)), session
    assert tree(ground.place, victim, inside) == before


@pytest.mark.ids("S6")
def test_a_name_is_a_label_and_never_a_path(ground: Ground) -> None:
    outside = tree(ground.place)
    for name in ("../../outside", "/tmp/outside", "a/b", "%2e%2e%2fx", "*", "-rf"):
        session = new_session(ground.home, ground.place, name=name)
        assert ground.hitch("rm", "--", name).out == f"{name}: removed\n"
        assert not (ground.home / "sessions" / session).exists()
    assert tree(ground.place) == outside
    assert sorted(path.name for path in ground.home.parent.iterdir()) == ["config", ground.home.name, "place"]


# The home -------------------------------------------------------------------------------------------------------

HOME_USERS = (("ps",), ("run", "--", "true"), ("stop", "dev"), ("explain", "dev"))


@pytest.mark.ids("S11")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_home_that_others_may_write_to_is_refused(hitch: Hitch, home: Path, mode: int) -> None:
    home.chmod(mode)
    for words in HOME_USERS:
        answer = hitch(*words, check=4)
        assert (
            answer.err
            == f"hitch: will not use {home}: others may write to it (mode {mode:04o}); run: chmod 700 {home}\n"
        )
    assert list(home.iterdir()) == []


@pytest.mark.ids("S11")
def test_a_home_that_is_a_link_is_refused(hitch: Hitch, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = home / "link"
    (home / "real").mkdir(mode=0o700)
    link.symlink_to(home / "real")
    monkeypatch.setenv("HITCHPOST_HOME", str(link))
    for words in HOME_USERS:
        answer = hitch(*words, check=4)
        assert answer.err == (
            f"hitch: will not use {link}: it is a symbolic link; name the real folder in HITCHPOST_HOME\n"
        )
    assert list((home / "real").iterdir()) == []


@only_root
@pytest.mark.ids("S11")
def test_a_home_of_another_user_is_refused(hitch: Hitch, home: Path) -> None:
    os.chown(home, NOBODY, NOBODY)
    for words in HOME_USERS:
        answer = hitch(*words, check=4)
        assert answer.err == (
            f"hitch: will not use {home}: it belongs to user {NOBODY}; name a folder of your own in HITCHPOST_HOME\n"
        )


@pytest.mark.ids("S11")
def test_a_planted_link_in_place_of_the_sessions_folder_is_refused(hitch: Hitch, home: Path, tmp_path: Path) -> None:
    (home / "sessions").symlink_to(tmp_path)
    assert "it is a symbolic link" in hitch("run", "--", "true", check=4).err
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_is_a_file_or_cannot_be_made_is_refused(
    hitch: Hitch, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("HITCHPOST_HOME", str(home / "file"))
    assert "it is not a folder" in hitch("ps", check=4).err
    monkeypatch.setenv("HITCHPOST_HOME", str(home / "file" / "below"))
    assert hitch("run", "--", "true", check=4).err.startswith(f"hitch: will not use {home / 'file' / 'below'}: ")


def test_a_home_that_cannot_be_looked_at_is_refused(hitch: Hitch, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = home / "closed"
    closed.mkdir(mode=0)
    monkeypatch.setenv("HITCHPOST_HOME", str(closed / "home"))
    for words in HOME_USERS:
        assert "permission denied" in as_owner_only(hitch)(*words, check=4).err
    closed.chmod(0o700)


def test_a_home_with_a_very_long_path_works(hitch: Hitch, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = home / ("a" * 100) / ("b" * 100)
    monkeypatch.setenv("HITCHPOST_HOME", str(long))
    hitch("run", "--name", "dev", "--", "sleep", "1000")
    assert hitch("stop", "--now", "dev").out == "dev: stopped\n"


# Broken files ---------------------------------------------------------------------------------------------------


@pytest.mark.ids("F34")
@pytest.mark.parametrize("verb", [verb for verb in ("stop", "restart", "archive", "rm", "explain") if verb in BUILT])
@pytest.mark.parametrize("file", ["state.json", "session.json"])
def test_what_a_newer_version_wrote_is_refused_and_not_changed(ground: Ground, verb: str, file: str) -> None:
    session = new_session(ground.home, ground.place)
    path = ground.home / "sessions" / session / file
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 99'))
    before = tree(path.parent)
    code, text = call(ground.hitch, verb, session)
    assert code == 4
    assert text == (
        f"hitch: {path} was written by a newer hitchpost (schema 99; this one knows 1); upgrade hitchpost\n"
    )
    assert tree(path.parent) == before


@pytest.mark.ids("F36")
@pytest.mark.parametrize("verb", [verb for verb in ("stop", "restart", "archive", "rm", "explain") if verb in BUILT])
def test_a_session_of_which_nothing_can_be_read_is_an_error_and_never_a_traceback(ground: Ground, verb: str) -> None:
    session = new_session(ground.home, ground.place)
    folder = ground.home / "sessions" / session
    for name in ("state.json", "session.json", "story.jsonl"):
        (folder / name).write_bytes(b"\x00\xff{")
    answer = ground.hitch(*(session if word == "{}" else word for word in VERBS[verb]), check=False)
    assert "Traceback" not in answer.err
    assert answer.code == (0 if verb == "explain" else 1)
    assert (folder / "state.json").read_bytes() == b"\x00\xff{"
    ground.hitch("ps")
