from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitchpost.workspaces.patch_check import is_of_worktree
from tests.repos import Repo

NAMES = ["README", "changed", "crlf", "deep/er/new", "dünn \t\n", "empty", "kind", "link", "no newline"]


@pytest.fixture
def top(repo: Repo) -> Iterator[int]:
    for name in ("changed", "gone", "kind"):
        repo.commit(name, "".join(f"line {number}\n" for number in range(50)))
    fd = os.open(repo.path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def change(repo: Repo) -> None:
    """Every kind of change, in the files that ``NAMES`` has, and one that is gone."""
    repo.write("README", "- a line\n+ another\n@@ -1 +1 @@\ndiff --git a/x b/x\n\n")
    repo.write("changed", "".join(f"line {number}\n" for number in range(50) if number not in (3, 40)) + "\n\nlast")
    (repo.path / "crlf").write_bytes(b"one\r\ntwo\r\n")
    repo.write("deep/er/new", "a\nb\n")
    repo.write("dünn \t\n", "a\n")
    repo.write("empty", "")
    (repo.path / "gone").unlink()
    (repo.path / "kind").unlink()
    (repo.path / "kind").symlink_to("/nowhere")
    (repo.path / "link").symlink_to("README")
    repo.write("no newline", "end")


def patch(repo: Repo) -> tuple[list[str], bytes]:
    repo.git("add", "--intent-to-add", ".")
    said = subprocess.run(["git", "diff", "-z", "--name-status", "HEAD"], cwd=repo.path, capture_output=True).stdout
    items = os.fsdecode(said).split("\0")[:-1]
    paths = [path for kind, path in zip(items[::2], items[1::2], strict=True) for _ in range(2 if kind == "T" else 1)]
    return paths, subprocess.run(["git", "diff", "HEAD"], cwd=repo.path, capture_output=True).stdout


def test_every_kind_of_change_is_found_in_the_worktree(repo: Repo, top: int) -> None:
    change(repo)
    paths, shown = patch(repo)
    assert sorted({*paths}) == sorted([*NAMES, "gone"])
    assert is_of_worktree(top, paths, shown)
    for size in range(0, len(shown), 7):
        assert is_of_worktree(top, paths, shown[:size])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "empty"])
def test_what_is_not_in_the_worktree_is_found_out(repo: Repo, top: int, name: str) -> None:
    change(repo)
    paths, shown = patch(repo)
    path = repo.path / name
    path.unlink()
    path.write_text("something else\n")
    assert not is_of_worktree(top, paths, shown)


def test_a_link_on_the_way_leads_to_no_file(repo: Repo, top: int) -> None:
    change(repo)
    paths, shown = patch(repo)
    away = Path(f"{repo.path}-away")
    (repo.path / "deep").rename(away)
    (repo.path / "deep").symlink_to(away)
    assert not is_of_worktree(top, paths, shown)
