"""S12: neither the hub, nor a keeper, nor the engine is within reach of a container, whatever is mounted in it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import hitchpost
from hitchpost.system.scratch import MEMORY
from tests.boxes import ECHO, PLAIN, Boxed
from tests.ground import Truth
from tests.hubs import hub_of
from tests.repos import Repo
from tests.support import eventually

BOX = ("run", "--runtime", "docker", "--image", PLAIN, "--network", "none", "--name", "dev")
SOCKETS = "shopt -s globstar dotglob; for file in /workspace/** /config/** /hitchpost/**; do "
SOCKETS += '[ -S "$file" ] && echo "socket $file"; done; echo looked; sleep 1000'


def ways(path: Path, place: Path) -> dict[str, tuple[str, ...]]:
    """The options that would bring ``path`` into a container whose other folder is ``place``."""
    where = ("--workspace", str(place))
    return {
        "--workspace": ("--workspace", str(path)),
        "--config": (*where, "--config", str(path)),
        "--mount": (*where, "--mount", f"{path}:/more:ro"),
    }


def refused(boxed: Boxed, path: Path, word: str) -> None:
    for way, options in ways(path, boxed.ground.place).items():
        usage = way != "--mount" and not path.is_dir()  # a file is no folder
        said = boxed.ground.hitch(*BOX, *options, "--", "sh", check=2 if usage else 4).err
        assert usage or word in said, f"{way} {path}: {said}"
    assert boxed.ground.ids() == []
    assert boxed.engine.containers() == []


@contextmanager
def mounted(source: Path, place: Path) -> Iterator[None]:
    subprocess.run(["mount", "--bind", str(source), str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.ids("S12")
def test_S12_the_state_folder_does_not_get_inside(boxed: Boxed):
    home, place = boxed.ground.home, boxed.ground.place
    boxed.ground.hitch("ps")
    (home / "sessions").mkdir(exist_ok=True)
    link = home.parent / "link"
    link.symlink_to(home.parent)
    refused(boxed, home.parent, "state folder")
    refused(boxed, home, "state folder")
    refused(boxed, home / "sessions", "state folder")
    refused(boxed, link, "state folder")
    said = boxed.ground.hitch(*BOX, "--", "sh", cwd=home.parent, check=4).err
    assert "a worktree of its own" in said
    assert "HITCHPOST_HOME" in said
    project = home.parent / "project"
    (project / "below").mkdir(parents=True)
    with mounted(home, project / "below"):
        refused(boxed, project / "below", "state folder")
        refused(boxed, project, "state folder")
    assert place.is_dir()


@pytest.mark.ids("S12")
def test_S12_the_usual_state_folder_does_not_get_inside_either(boxed: Boxed, monkeypatch: pytest.MonkeyPatch):
    other = boxed.ground.home.parent / "person"
    (other / ".local/state/hitchpost").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(other))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    refused(boxed, other, "state folder")


@pytest.mark.ids("S12")
def test_S12_no_name_of_the_engines_socket_gets_inside(boxed: Boxed):
    engine = Path(boxed.engine.url.removeprefix("unix://"))
    beside = boxed.ground.home.parent / "beside"
    (beside / "deep").mkdir(parents=True)
    (beside / "link").symlink_to(engine)
    refused(boxed, engine, "socket")
    refused(boxed, engine.parent, "engine's socket")
    refused(boxed, beside / "link", "socket")
    (beside / "deep" / "notes").touch()
    with mounted(engine, beside / "deep" / "notes"):
        refused(boxed, beside, "socket")
    (beside / "deep" / "hard").hardlink_to(engine)
    refused(boxed, beside / "deep" / "hard", "socket")
    refused(boxed, beside, "engine's socket")
    with socket.socket(socket.AF_UNIX) as any_socket:
        any_socket.bind(str(beside / "any"))
        refused(boxed, beside / "any", "socket")


@pytest.mark.ids("S12")
def test_S12_no_container_can_write_what_we_run_and_read(boxed: Boxed, monkeypatch: pytest.MonkeyPatch):
    package = Path(hitchpost.__file__).parent
    person = boxed.ground.home.parent / "person"
    person.mkdir()
    monkeypatch.setenv("HOME", str(person))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("HITCHPOST_CONFIG", raising=False)
    place = ("--workspace", str(boxed.ground.place))
    programs = (package, package / "cli", package.parent, Path(sys.prefix), Path(sys.prefix, "lib"))
    for path in (*programs, person, Path(MEMORY)):
        for options in (("--workspace", str(path)), (*place, "--mount", f"{path}:/more")):
            said = boxed.ground.hitch(*BOX, *options, "--", "sh", check=4).err
            assert "runs outside the container" in said, said
    boxed.ground.hitch(*BOX, *place, "--mount", f"{package}:/more:ro", "--", "sleep", "1000")


@pytest.mark.ids("S12")
def test_S12_mounts_are_looked_at_before_every_run(boxed: Boxed):
    place = boxed.ground.place
    other = place.parent / "other"
    other.mkdir()
    dev = boxed.run("sh", "-c", ECHO)
    boxed.ground.hitch("restart", "dev", "--workspace", str(boxed.ground.home.parent), check=4)
    assert dev.state == "running"
    boxed.ground.hitch("stop", "dev")
    (place / "hard").hardlink_to(boxed.engine.url.removeprefix("unix://"))
    assert "engine's socket" in boxed.ground.hitch("restart", "dev", check=4).err
    (place / "hard").unlink()
    boxed.ground.hitch("restart", "dev")
    boxed.ground.hitch("stop", "dev")


@pytest.mark.ids("S12")
def test_S12_a_container_in_a_worktree_of_ours_reaches_no_socket(boxed: Boxed, repo: Repo):
    config = boxed.ground.place.parent / "settings"
    config.mkdir()
    with ExitStack() as stack:
        stack.enter_context(hub_of(boxed.ground))
        words = (*BOX, "--json", "--branch", "fix", "--config", str(config), "--", "bash", "-c", SOCKETS)
        dev = Truth(boxed.ground.home, boxed.ground.hitch(*words, cwd=repo.path).json()["id"])
        eventually(lambda: b"looked" in dev.output(), what="a look around")
        assert b"socket" not in dev.output()
        record = json.loads((dev.folder / "session.json").read_bytes())
        assert record["folder"].startswith(os.path.join(boxed.ground.home, "workspaces"))
        boxed.ground.hitch("stop", "dev")
