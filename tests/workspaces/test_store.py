from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from hitchpost.errors import AmbiguousWorkspace, HomeRefused, NoSuchWorkspace
from hitchpost.store import files
from hitchpost.values import replace
from hitchpost.workspaces import store
from hitchpost.workspaces.store import Workspace
from tests.support import LeakWatch


def known(home: Path, ours: str, name: str, path: str = "/nowhere", **more: object) -> Workspace:
    made = replace(Workspace(ours, name, path, files.stamp()), **more)
    with store.top_lock(str(home)), store.begun(str(home), made):
        return made


def test_a_workspace_is_read_as_it_was_written(home: Path) -> None:
    made = known(home, "a" * 12, "fix", "/x/y", repo="/r/.git", branch="fix", base="0" * 40, capacity=3)
    assert store.read(str(home), made.id) == made
    value = json.loads((home / "workspaces" / made.id / "workspace.json").read_bytes())
    assert (value["schema"], value["capacity"]) == (1, 3)


def test_a_workspace_is_found_by_id_name_path_and_the_beginning_of_its_id(home: Path) -> None:
    first = known(home, "aaaaaaaaaaa1", "one", "/x/one")
    second = known(home, "aaaaaaaaaab1", "aaaaaaaaaaa1")
    assert store.find(str(home), "aaaaaaaaaaa1") == first
    assert store.find(str(home), "one") == first
    assert store.find(str(home), "/x/one") == first
    assert store.find(str(home), "aaaaaaaaaab") == second
    with pytest.raises(AmbiguousWorkspace, match="matches 2 workspaces"):
        store.find(str(home), "aaaa")
    for wanted in ("nobody", "", "../sessions"):
        with pytest.raises(NoSuchWorkspace):
            store.find(str(home), wanted)


def test_a_removed_workspace_is_found_only_when_it_is_asked_for_and_last(home: Path) -> None:
    removed = known(home, "aaaaaaaaaaa1", "one", removed_at=files.stamp())
    with pytest.raises(NoSuchWorkspace):
        store.find(str(home), "one")
    assert store.find(str(home), "one", removed=True) == removed
    newer = known(home, "aaaaaaaaaaa2", "one")
    assert store.find(str(home), "one", removed=True) == newer


@pytest.mark.parametrize(
    "wrong", [{"capacity": 0}, {"capacity": True}, {"path": "relative"}, {"id": "other"}, {"name": 1}, {"made": "yes"}]
)
def test_a_file_with_wrong_values_is_unreadable_and_not_listed(home: Path, wrong: dict[str, object]) -> None:
    made = known(home, "a" * 12, "fix")
    path = home / "workspaces" / made.id / "workspace.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | wrong))
    with pytest.raises(files.Unreadable):
        store.read(str(home), made.id)
    assert store.everything(str(home)) == []


def test_an_older_file_without_later_fields_is_read(home: Path) -> None:
    made = known(home, "a" * 12, "fix")
    path = home / "workspaces" / made.id / "workspace.json"
    value = json.loads(path.read_bytes())
    few = {key: value[key] for key in ("schema", "id", "name", "path", "created_at")}
    path.write_text(json.dumps({**few, "something_newer": 1}))
    assert store.read(str(home), made.id) == made


def test_a_plain_folder_becomes_known_once_and_is_not_touched(home: Path, leak_watch: LeakWatch) -> None:
    folder = leak_watch.scratch / "plain"
    folder.mkdir()
    first = store.register(str(home), str(folder))
    assert store.register(str(home), str(folder)) == first
    assert (first.name, first.managed, list(folder.iterdir())) == ("plain", False, [])
    place = folder.stat()
    assert store.at(str(home), place.st_dev, place.st_ino) == first


def test_a_folder_that_got_the_number_of_one_that_is_gone_is_not_that_workspace(home: Path) -> None:
    known(home, "a" * 12, "fix", "/nowhere/at/all", dev=7, ino=8)
    assert store.at(str(home), 7, 8) is None


def test_names_are_unique(home: Path) -> None:
    known(home, "aaaaaaaaaaa1", "fix")
    known(home, "aaaaaaaaaaa2", "fix-2")
    known(home, "aaaaaaaaaaa3", "other", removed_at=files.stamp())
    assert [store.free_name(str(home), name) for name in ("fix", "other", "new")] == ["fix-3", "other", "new"]


def test_a_folder_with_something_that_is_not_ours_is_not_forgotten(home: Path) -> None:
    made = known(home, "a" * 12, "fix")
    work = home / "workspaces" / made.id / "shop" / "work"
    work.mkdir(parents=True)
    with store.lock(str(home), made.id), pytest.raises(OSError, match="not empty: shop"):
        store.forget(str(home), made)
    assert work.exists()


def test_a_link_in_the_place_of_the_workspaces_is_refused(home: Path, leak_watch: LeakWatch) -> None:
    (home / "workspaces").symlink_to(leak_watch.scratch)
    with pytest.raises(HomeRefused):
        store.top_lock(str(home))


def test_a_disk_that_refuses_is_not_taken_for_a_workspace_that_is_not_there(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(home, "a" * 12, "fix")

    def refuse(path: str, most: int = 0, *, follow: bool = False) -> bytes:
        raise OSError(errno.EIO, "Input/output error", path)

    monkeypatch.setattr(files, "read_bytes", refuse)
    with pytest.raises(files.DiskRefused):
        store.everything(str(home))
