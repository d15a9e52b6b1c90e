"""``/api/catalog``: what can be started on the hub's machine."""

from __future__ import annotations

import os
from pathlib import Path

from hitchpost.agents import catalog
from tests.ground import Ground
from tests.hubs import HubProcess


def test_what_is_installed_is_told_as_a_run_would_find_it(ground: Ground, hub: HubProcess) -> None:
    found = hub.ask("GET", "/api/catalog")
    assert found["agents"] == ground.hitch("agents", "--json").json()
    known = sorted(file.stem for file in Path(catalog.FOLDER).glob("*.toml"))
    assert [one["name"] for one in found["agents"]] == known
    assert [one["name"] for one in found["runtimes"]] == ["local", "tmux", "docker"]
    programs = ground.place / "programs"
    programs.mkdir()
    (programs / "claude").symlink_to("/bin/true")
    assert found["detach_key"] == ""
    ground.configure(f'detach_key = "ctrl-]"\n[env]\nPATH = "{programs}"')
    found = hub.ask("GET", "/api/catalog")
    assert found["detach_key"] == "ctrl-]"
    agents = {one["name"]: one for one in found["agents"]}
    assert agents["claude"] == {
        "name": "claude",
        "title": "Claude Code",
        "argv": ["claude"],
        "path": os.path.join(programs, "claude"),
        "install": "npm install -g @anthropic-ai/claude-code",
        "broken": "",
        "options": ["permission_mode", "model"],
        "watched": True,
        "chat": False,
        "conversations": "claude",
    }
    assert [name for name, one in agents.items() if one["path"] is None] == [name for name in known if name != "claude"]


def test_a_runtime_that_is_missing_says_why(ground: Ground, hub: HubProcess) -> None:
    hub.stop()
    programs = ground.place / "programs"
    programs.mkdir()
    hub.start(PATH=str(programs), DOCKER_HOST="unix:///nowhere/docker.sock")
    local, tmux, docker = hub.ask("GET", "/api/catalog")["runtimes"]
    assert local == {"name": "local", "available": True, "missing": ""}
    assert (tmux["name"], tmux["available"]) == ("tmux", False)
    assert "tmux is not installed" in tmux["missing"]
    assert (docker["name"], docker["available"]) == ("docker", False)
    assert "cannot be reached" in docker["missing"]


def test_a_viewer_may_read_the_catalog(hub: HubProcess) -> None:
    with hub.http("viewer") as client:
        assert client.get("/api/catalog").status_code == 200
