"""``/api/folders``: what a path may become while it is typed, and what git says of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hitchpost.errors import UsageError
from hitchpost.hub.client import HubRefused
from hitchpost.ops.views import folders
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.repos import Repo


def names(found: folders.Folders) -> list[str]:
    return [os.path.basename(folder.path) for folder in found.folders]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("shop", "Shelf", "store", ".hidden", "shop/src"):
        (tmp_path / name).mkdir()
    (tmp_path / "shop.txt").touch()
    (tmp_path / "shortcut").symlink_to(tmp_path / "shop")
    os.mkdir(os.fsencode(tmp_path) + b"/sh\xff")
    return tmp_path


def look(typed: object, branch: str = "") -> folders.Folders:
    return folders.look("/nowhere", str(typed), branch)


def test_what_is_typed_becomes_folders_that_begin_so(place: Path) -> None:
    assert names(look(f"{place}/")) == ["Shelf", "shop", "store"]
    assert names(look(place / "sh")) == ["Shelf", "shop"]
    assert names(look(place / "shop")) == ["shop"]
    assert names(look(f"{place}/shop/")) == ["src"]
    assert names(look(place / ".h")) == names(look(f"{place}/.")) == [".hidden"]
    assert look(place / "nowhere" / "x").folders == look("/dev/null/").folders == []


def test_a_link_is_not_offered_but_may_be_typed(place: Path) -> None:
    assert names(look(place / "shortcut")) == []
    assert look(place / "shortcut").is_folder
    assert names(look(f"{place}/shortcut/")) == ["src"]


def test_what_cannot_be_read_is_not_there(place: Path) -> None:
    (place / "shop").chmod(0)
    if os.geteuid() != 0:
        assert look(f"{place}/shop/").folders == []
    (place / "shop").chmod(0o700)


def test_more_than_a_person_reads_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(folders.MOST_TOLD + 1):
        (tmp_path / f"a{number:03}").mkdir()
    found = look(f"{tmp_path}/")
    assert (len(found.folders), found.cut) == (folders.MOST_TOLD, True)
    found = look(tmp_path / "a00")
    assert (len(found.folders), found.cut) == (10, False)
    monkeypatch.setattr(folders, "MOST_LOOKED_AT", 5)
    found = look(f"{tmp_path}/")
    assert (len(found.folders), found.cut) == (5, True)


def test_a_tilde_is_the_home_folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place))
    assert look("~/sh").path == f"{place}/sh"
    assert names(look("~")) == names(look("~/")) == ["Shelf", "shop", "store"]
    assert look("~").home == str(place)
    for typed in ("~root/x", "shop", ""):
        with pytest.raises(UsageError, match="a full path") as refused:
            look(typed)
        assert refused.value.field == "folder"


def test_a_repository_is_marked_and_a_new_branch_gets_a_free_name(repo: Repo) -> None:
    (repo.path / "src").mkdir()
    marked = {folder.path: folder.repository for folder in look(repo.path).folders}
    assert marked[str(repo.path)]
    assert not any(folder.repository for folder in look(f"{repo.path}/").folders)
    assert look(repo.path / "src").repository == str(repo.path)
    assert look(repo.path).branch is None
    assert look(repo.path.parent, "fix").repository is None
    assert look(repo.path.parent, "fix").branch is None
    for branch in ("fix", "fix-2", "add/tests"):
        repo.git("branch", branch)
    repo.git("update-ref", "refs/remotes/origin/theirs", repo.head)
    repo.git("pack-refs", "--all")
    repo.git("branch", "fix-3")
    wanted = {"fix": "fix-4", "fix-9": "fix-9", "add": "add-2", "theirs": "theirs-2", "new": "new", "a..b": None}
    assert {branch: look(repo.path, branch).branch for branch in wanted} == wanted


def test_the_hub_completes_a_path_and_starts_there(ground: Ground, hub: HubProcess, repo: Repo) -> None:
    hub.stop()
    hub.start(HOME=str(repo.path.parent))
    found = hub.ask("GET", f"/api/folders?path=~/{repo.path.name}&branch=fix")
    assert (found["path"], found["repository"], found["branch"]) == (str(repo.path), str(repo.path), "fix")
    assert {"path": str(repo.path), "repository": True} in found["folders"]
    wish = {"command": ["sleep", "1000"], "folder": f"~/{repo.path.name}", "branch": "fix"}
    made = hub.ask("POST", "/api/sessions", wish)["session"]
    assert made["workspace"]["branch"] == "fix"
    assert hub.ask("GET", f"/api/folders?path={repo.path}&branch=fix")["branch"] == "fix-2"
    with pytest.raises(HubRefused, match="a full path"):
        hub.ask("POST", "/api/sessions", {**wish, "folder": "shop"})
    with pytest.raises(HubRefused, match="a full path"):
        hub.ask("POST", "/api/workspaces", {"folder": "shop", "branch": "other"})
    hub.ask("POST", f"/api/sessions/{made['id']}/stop")


def test_only_an_owner_of_everything_sees_folders(hub: HubProcess) -> None:
    with hub.http("viewer") as client:
        assert client.get("/api/folders?path=/").status_code == 403
    with hub.http("owner") as client:
        assert client.get("/api/folders?path=/").status_code == 200
