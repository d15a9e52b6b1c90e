"""What this side runs is not looked for in a folder that an agent can write, wherever a person or our git is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hitchpost.errors import RuntimeMissing
from hitchpost.runtimes import tmux
from hitchpost.store.home import open_home
from hitchpost.system.programs import absolute
from hitchpost.workspaces.diff import difference
from hitchpost.workspaces.snapshot import take
from hitchpost.workspaces.worktree import make
from tests.repos import Repo
from tests.support import Hitch

LEADING_HERE = ("node_modules/.bin", ".", "")


@pytest.fixture
def canary(repo: Repo) -> Path:
    return repo.path.parent / "canary"


def program(path: Path, canary: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch {canary}\nexit 1\n")
    path.chmod(0o755)


def test_a_list_of_folders_without_those_that_depend_on_where_one_is() -> None:
    assert absolute(".::/usr/bin:node_modules/.bin:/bin:") == "/usr/bin:/bin"


@pytest.mark.ids("S7")
@pytest.mark.parametrize("entry", LEADING_HERE)
def test_git_is_not_looked_for_among_an_agents_files(
    repo: Repo, canary: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    program(repo.path / entry / "git", canary)
    monkeypatch.setenv("PATH", f"{entry}:{os.environ['PATH']}")
    assert difference(repo.tree, None).files
    assert not canary.exists()


@pytest.mark.ids("S7")
def test_gits_libraries_are_not_looked_for_among_an_agents_files(
    home: Path, repo: Repo, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make(str(home), str(repo.path), "fix").workspace
    said = subprocess.run(["ldd", "/usr/bin/git"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in said.splitlines() if "=> /" in line]
    assert names
    for name in names:  # no library: whoever takes one of these does not even start
        Path(workspace.path, name).write_text("not what you want\n")
    monkeypatch.setenv("LD_LIBRARY_PATH", f":{repo.path.parent}")
    assert take(str(home), workspace, "a test") is not None


@pytest.mark.ids("S7")
def test_tmux_is_not_looked_for_among_an_agents_files(
    repo: Repo, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(repo.path / "tmux", canary)
    monkeypatch.chdir(repo.path)
    monkeypatch.setenv("PATH", f".:{repo.path.parent}")
    with pytest.raises(RuntimeMissing):
        tmux.program()
    assert not canary.exists()


@pytest.mark.ids("S7")
def test_a_hub_in_the_foreground_takes_no_modules_from_the_folder_where_it_is_started(
    repo: Repo, canary: Path, hitch: Hitch
) -> None:
    repo.write("hitchpost/__init__.py", f"open({str(canary)!r}, 'w')\n")
    open_home()
    words = ("up", "--foreground", "--port", "1")  # which nobody may take, so that it ends at once, or it is ended
    argv = [os.path.join(os.path.dirname(sys.executable), "hitch"), *words]
    process = subprocess.Popen(argv, cwd=repo.path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert process.stderr.readline()
    finally:
        process.terminate()
        process.communicate(timeout=30)
    assert not canary.exists()
