"""``/api/workspaces``."""

from __future__ import annotations

import pytest

from hitchpost.hub.client import HubRefused
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.repos import Repo


def test_a_workspace_is_made_used_and_removed(ground: Ground, hub: HubProcess, repo: Repo) -> None:
    wanted = {"folder": str(repo.path), "branch": "fix-auth"}
    made = hub.ask("POST", "/api/workspaces", wanted)["workspace"]
    assert (made["name"], made["branch"], made["state"], made["users"]) == ("fix-auth", "fix-auth", "clean", [])
    with pytest.raises(HubRefused, match="fix-auth") as refused:
        hub.ask("POST", "/api/workspaces", wanted)
    assert refused.value.status == 409
    command = {"command": ["sh", "-c", "echo new > new; read x"], "folder": str(repo.path), "branch": "fix-auth"}
    session = hub.ask("POST", "/api/sessions", command)["session"]
    assert session["workspace"] == {
        "id": made["id"],
        "path": made["path"],
        "branch": "fix-auth",
        "repository": str(repo.path),
    }
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
