"""Folders as an agent can make them are gone through, and deleted, whatever is in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hitchpost.workspaces import folders

DEEP = 3000
"""More than Python can recurse, and, as one path, more than the kernel takes."""


def nested(top: Path, depth: int = DEEP, name: str = "dd") -> None:
    """Folders in folders, and a file in the last one."""
    top.mkdir(exist_ok=True)
    fd = os.open(top, folders.FOLDER)
    for _ in range(depth):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, folders.FOLDER, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)


def test_folders_of_any_depth_are_deleted(tmp_path: Path) -> None:
    nested(tmp_path / "top")
    nested(tmp_path / "top" / "wide", 50)
    folders.erase(str(tmp_path / "top"))
    assert list(tmp_path.iterdir()) == []


def test_what_is_protected_from_writing_is_deleted_and_links_lead_nowhere(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    top = tmp_path / "top"
    (top / "a/b/c").mkdir(parents=True)
    (top / "a/link").symlink_to(kept)
    (top / "a/b/link").symlink_to(kept)
    (top / "a/b/file").touch()
    for folder in (top / "a/b/c", top / "a/b", top / "a", top):
        folder.chmod(0)
    folders.erase(str(top))
    assert list(tmp_path.iterdir()) == [kept]
    assert [path.name for path in kept.iterdir()] == ["file"]
    link = tmp_path / "link"
    link.symlink_to(kept)
    folders.erase(str(link))
    assert (link.is_symlink(), [path.name for path in kept.iterdir()]) == (True, ["file"])


@pytest.mark.parametrize("deepest", [0, 3])
def test_a_walk_goes_no_deeper_than_it_is_told(tmp_path: Path, deepest: int) -> None:
    nested(tmp_path / "top", 40)
    top = os.open(tmp_path / "top", folders.FOLDER)
    found = [steps for steps, _, _ in folders.walk(top, deepest)]
    os.close(top)
    assert found == [("dd",) * depth for depth in range(deepest + 1)]
