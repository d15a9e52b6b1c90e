from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hitchpost.workspaces import worktree
from tests.repos import Repo
from tests.support import LeakWatch


def make(home: Path, repo: Repo, branch: str = "fix") -> tuple[Repo, tuple[str, ...]]:
    made = worktree.make(str(home), str(repo.path), branch)
    return Repo(Path(made.workspace.path)), made.notes


@pytest.fixture
def ignoring(repo: Repo) -> Repo:
    repo.commit(".gitignore", ".env*\nsecrets/\nbuild/\nlinked\n")
    repo.commit(".worktreeinclude", "# what a worktree needs\n.env*\n!.env.example\nsecrets/\nnotes\nlinked\n")
    return repo


def test_files_that_are_both_named_and_ignored_are_copied_with_their_mode(home: Path, ignoring: Repo) -> None:
    ignoring.write(".env", "KEY=1\n").chmod(0o600)
    ignoring.write("app/.env.local")
    ignoring.write("secrets/deep/key")
    ignoring.write(".env.example")
    ignoring.write("build/out")
    ignoring.write("notes")
    tree, notes = make(home, ignoring)
    copied = set(tree.files()) - {"README", ".gitignore", ".worktreeinclude"}
    assert copied == {".env", "app/.env.local", "secrets/deep/key"}
    assert (tree.path / ".env").read_text() == "KEY=1\n"
    assert stat.S_IMODE((tree.path / ".env").stat().st_mode) == 0o600
    assert (notes, tree.git("status", "--porcelain")) == ((), "")


def test_a_file_that_the_branch_has_is_not_overwritten(home: Path, ignoring: Repo) -> None:
    ignoring.git("checkout", "-q", "-b", "fix")
    ignoring.write(".env", "of the branch\n")
    ignoring.git("add", "-f", ".env")
    ignoring.git("commit", "-q", "-m", "env")
    ignoring.git("checkout", "-q", "main")
    ignoring.write(".env", "of the main worktree\n")
    assert make(home, ignoring)[0].files()[".env"] == "of the branch\n"


@pytest.mark.ids("S7")
def test_links_are_not_followed_in_either_direction(home: Path, ignoring: Repo, leak_watch: LeakWatch) -> None:
    outside = leak_watch.scratch / "outside"
    outside.mkdir()
    (outside / "key").write_text("secret\n")
    (ignoring.path / ".env").symlink_to(outside / "key")
    (ignoring.path / "linked").symlink_to(outside)
    ignoring.git("checkout", "-q", "-b", "fix")
    (ignoring.path / "secrets").symlink_to(outside)
    ignoring.git("add", "-f", "secrets")
    ignoring.git("commit", "-q", "-m", "a link where others have a folder")
    ignoring.git("checkout", "-q", "main")
    ignoring.write("secrets/planted")
    tree, notes = make(home, ignoring)
    assert notes == (
        ".worktreeinclude: not copied, because they are links or go through one: .env, linked, secrets/planted",
    )
    assert sorted(path.name for path in outside.iterdir()) == ["key"]
    assert not os.path.lexists(tree.path / ".env")


def test_without_the_file_nothing_is_copied(home: Path, repo: Repo) -> None:
    repo.commit(".gitignore", ".env\n")
    repo.write(".env")
    assert set(make(home, repo)[0].files()) == {"README", ".gitignore"}
