"""An index that we write is the one that git would have written."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hitchpost.workspaces import new_index, store, worktree
from hitchpost.workspaces.diff import difference
from hitchpost.workspaces.tree import kept_index
from hitchpost.workspaces.view import EMPTY_FILE, listed
from tests.repos import Repo

NAMES = ["z", "a/b", "a.b", "größe", "new\nline", "x" * 7, "x" * 8, "x" * 9, "deep/" + "d" * 5000, "\udcff"]


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_it_is_byte_for_byte_what_git_writes(tmp_path: Path, kind: str) -> None:
    repo = Repo(tmp_path / "repo")
    repo.path.mkdir()
    repo.git("init", "-q", f"--object-format={kind}")
    blob = EMPTY_FILE[kind == "sha256"]
    told = b"".join(f"100644 {blob}\t".encode() + listed([name]) for name in NAMES)
    argv = ["git", "update-index", "-z", "--index-info"]
    subprocess.run(argv, cwd=repo.path, input=told, timeout=60, check=True)
    new_index.write(str(tmp_path / "ours"), NAMES, blob)
    assert (tmp_path / "ours").read_bytes() == (repo.path / ".git/index").read_bytes()


def test_a_look_does_not_change_the_index_that_is_kept_for_the_next_one(home: Path, repo: Repo) -> None:
    tree = store.tree(str(home), worktree.make(str(home), str(repo.path), "fix").workspace)
    difference(tree, None)
    kept = Path(kept_index(tree))
    before = kept.read_bytes(), kept.stat().st_mtime_ns, kept.stat().st_ino
    (Path(tree.top) / "README").rename(Path(tree.top) / "moved")
    assert [(file.status, file.path) for file in difference(tree, None).files] == [("R", "moved")]
    assert (kept.read_bytes(), kept.stat().st_mtime_ns, kept.stat().st_ino) == before
    assert kept.stat().st_nlink == 1
