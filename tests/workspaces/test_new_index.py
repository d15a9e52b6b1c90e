"""An index that we write is the one that git would have written."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hitchpost.workspaces import new_index, refs, store, worktree
from hitchpost.workspaces.diff import difference
from hitchpost.workspaces.tree import kept_index
from hitchpost.workspaces.view import EMPTY_FILE, MOST_INDEX_BYTES, View, listed
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


@pytest.mark.ids("S12")
def test_an_index_that_an_agent_has_blown_up_is_not_copied(home: Path, repo: Repo) -> None:
    tree = store.tree(str(home), worktree.make(str(home), str(repo.path), "fix").workspace)
    with View(tree) as view:
        assert Path(view.agents_index()).read_bytes()[:4] == b"DIRC"
        os.truncate(Path(tree.common, tree.own, "index"), MOST_INDEX_BYTES + 1)
        assert not os.path.exists(view.agents_index())


def test_a_large_file_of_an_agent_is_read_in_parts(tmp_path: Path) -> None:
    (tmp_path / "index").write_bytes(b"x" * (3 << 20))
    assert [len(part) for part in refs.parts_below(str(tmp_path), "index", 4 << 20)] == [1 << 20] * 3
