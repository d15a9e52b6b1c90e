"""Git repositories for tests, made with git itself."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from hitchpost.workspaces.tree import Tree, discover

SETTINGS = """[user]
name = Tester
email = tester@localhost
[init]
defaultBranch = main
[protocol "file"]
allow = always
"""


@dataclass(frozen=True, slots=True)
class Repo:
    """A worktree, and git in it."""

    path: Path

    def git(self, *words: str | Path, check: bool = True) -> str:
        done = subprocess.run(
            ["git", *map(str, words)], cwd=self.path, capture_output=True, encoding="utf-8", timeout=60, check=False
        )
        assert not check or done.returncode == 0, f"git {' '.join(map(str, words))}: {done.stderr}"
        return done.stdout.rstrip("\n")

    @property
    def tree(self) -> Tree:
        """As it is written down before an agent works there."""
        found = discover(str(self.path))
        assert found is not None
        return found

    def write(self, name: str, text: str = "text\n") -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def commit(self, name: str, text: str = "text\n") -> str:
        """Commit one file; the commit."""
        self.write(name, text)
        self.git("add", "--", name)
        self.git("commit", "-q", "-m", f"change {name}")
        return self.head

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    @property
    def worktrees(self) -> list[str]:
        """The paths of all worktrees that git knows, the main one first."""
        lines = self.git("worktree", "list", "--porcelain").splitlines()
        return [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")]

    def files(self) -> dict[str, str]:
        """Every file but git's own, with its content."""
        return {
            str(path.relative_to(self.path)): path.read_text()
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(self.path).parts
        }


def new_repo(path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    settings = path.parent / "gitconfig"
    settings.write_text(SETTINGS)
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    path.mkdir()
    repo = Repo(path)
    repo.git("init", "-q")
    repo.commit("README", "shop\n")
    return repo


def change_unseen(repo: Repo, name: str, before: str, after: str) -> None:
    """Change a file in the second in which git wrote its index, an hour ago: size and times are what they were."""
    assert len(before) == len(after)
    repo.git("config", "core.trustctime", "false")  # the time of the last change of all cannot be set
    path = repo.write(name, before)
    hour_ago = time.time_ns() - 3600 * 10**9
    os.utime(path, ns=(hour_ago, hour_ago))
    repo.git("add", "--", name)
    repo.git("commit", "-q", "-m", f"change {name}")
    path.write_text(after)
    for one in (path, repo.git("rev-parse", "--absolute-git-dir") + "/index"):
        os.utime(one, ns=(hour_ago, hour_ago))
