"""``/api/workspaces``."""

from __future__ import annotations

import shutil

import pytest

from hitchpost.hub.client import HubRefused
from tests.ground import Ground, Truth
from tests.hubs import HubProcess, hub_of
from tests.repos import Repo
from tests.support import eventually


def test_a_workspace_is_made_used_and_removed(ground: Ground, hub: HubProcess, repo: Repo) -> None:
    wanted = {"folder": str(repo.path), "branch": "fix-auth"}
    made = hub.ask("POST", "/api/workspaces", wanted)["workspace"]
    assert (made["name"], made["branch"], made["state"], made["users"]) == ("fix-auth", "fix-auth", "clean", [])
    with pytest.raises(HubRefused, match="fix-auth") as refused:
        hub.ask("POST", "/api/workspaces", wanted)
    assert refused.value.status == 409
    command = {"command": ["sh", "-c", "echo new > new; read x"], "folder": str(repo.path), "branch": "fix-auth"}
    session = hub.ask("POST", "/api/sessions", command)["session"]
    assert session["workspace"] == {"id": made["id"], "path": made["path"], "branch": "fix-auth"}
    with pytest.raises(HubRefused, match=r"cannot remove workspace 'fix-auth' - currently in use by 1 session\(s\)"):
        hub.ask("DELETE", f"/api/workspaces/{made['id']}")
    assert hub.ask("GET", "/api/workspaces")[0]["users"][0]["session"] == session["id"]
    diff = hub.ask("GET", f"/api/sessions/{session['id']}/diff")
    assert [one["path"] for one in diff["files"]] == ["new"]
    hub.ask("POST", f"/api/sessions/{session['id']}/stop")
    with pytest.raises(HubRefused, match="1 new file"):
        hub.ask("DELETE", f"/api/workspaces/{made['id']}")
    gone = hub.ask("DELETE", f"/api/workspaces/{made['id']}?force=true")
    assert gone["snapshot"].startswith("refs/hitchpost/snapshots/")
    assert hub.ask("GET", "/api/workspaces") == []
    with pytest.raises(HubRefused) as missing:
        hub.ask("DELETE", "/api/workspaces/nothing")
    assert missing.value.status == 404


def test_a_folder_may_begin_with_the_home_folders_sign(ground: Ground, repo: Repo) -> None:
    with hub_of(ground, "env", f"HOME={repo.path.parent}") as hub:
        made = hub.ask("POST", "/api/workspaces", {"folder": f"~/{repo.path.name}", "branch": "fix-auth"})
        assert made["workspace"]["repo"] == str(repo.path / ".git")
        wish = {"command": ["cat"], "folder": f"~/{repo.path.name}", "env": {"PLACE": "~/stays"}}
        session = hub.ask("POST", "/api/sessions", wish)["session"]
        assert session["workspace"]["path"] == str(repo.path)
        hub.ask("POST", f"/api/sessions/{session['id']}/stop")


def test_a_worktree_that_was_deleted_is_brought_back_for_its_session(
    ground: Ground, hub: HubProcess, repo: Repo
) -> None:
    wish = {"command": ["cat"], "folder": str(repo.path), "branch": "fix-auth"}
    session = hub.ask("POST", "/api/sessions", wish)["session"]
    path = f"/api/sessions/{session['id']}"
    with pytest.raises(HubRefused, match="is there"):
        hub.ask("POST", f"{path}/restore")
    shutil.rmtree(session["workspace"]["path"])
    eventually(lambda: hub.ask("GET", path)["state"] == "orphaned", what="orphaned")
    hub.ask("POST", f"{path}/stop")
    eventually(lambda: hub.ask("GET", path)["actions"] == ["restore", "archive", "delete"], what="restore")
    back = hub.ask("POST", f"{path}/restore")["session"]
    assert back["actions"] == ["restart", "archive", "delete"]
    assert ground.ps(Truth(ground.home, session["id"]))["actions"] == back["actions"]
    assert hub.ask("POST", f"{path}/restart")["session"]["state"] == "running"
    hub.ask("POST", f"{path}/stop")
    plain = hub.ask("POST", "/api/sessions", {"command": ["cat"], "folder": str(ground.place)})["session"]
    with pytest.raises(HubRefused, match="has not made: it cannot be brought back"):
        hub.ask("POST", f"/api/sessions/{plain['id']}/restore")
    hub.ask("POST", f"/api/sessions/{plain['id']}/stop")
