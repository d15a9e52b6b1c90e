"""What a real agent asks when it starts is told, and never answered by accident."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.agents.everywhere import everywhere
from tests.agents.homes import AgentHome
from tests.ground import Ground

pytestmark = [pytest.mark.all_agents, pytest.mark.timeout(300)]
Homes = Callable[[str], AgentHome]
TRUST = '"folderTrust": {\n      "enabled": '


@dataclass(frozen=True, slots=True)
class Start:
    """``settings`` of the agent's home lose a text, or have another in its place. Then it says ``shows``."""

    settings: str
    without: str
    instead: str
    shows: str
    writes: str = ""
    """What Enter would have written into the settings."""
    makes: str = ""
    """The file that Enter would have made."""


STARTS = {
    "gemini": Start(
        ".gemini/settings.json",
        TRUST + "false",
        TRUST + "true",
        "trust this folder",
        makes=".gemini/trustedFolders.json",
    ),
    "qwen": Start(
        ".qwen/settings.json", TRUST + "false", TRUST + "true", "trust this folder", makes=".qwen/trustedFolders.json"
    ),
    "copilot": Start(".copilot/config.json", "{place}", "/nowhere", "trust this folder", writes="{place}"),
    "goose": Start(
        "goose/config/config.yaml", "GOOSE_TELEMETRY_ENABLED: false\n", "", "usage data", writes="TELEMETRY"
    ),
    "aider": Start(".aider.conf.yml", "git: false\n", "", "No git repo found", makes="../place/.git"),
}
KEYS = {
    "copilot": ("COPILOT_", "/login"),
    "aider": ("OPENAI_", "no key"),
}
"""The variables that a person signs in with, and what is said without them."""


@pytest.mark.proves("start-up dialog")
@pytest.mark.parametrize("name", STARTS)
def test_a_start_dialog_is_told_and_never_answered_by_accident(name: str, ground: Ground, agent_home: Homes) -> None:
    home, start = agent_home(name), STARTS[name]
    settings = home.home / start.settings
    without, written = (text.replace("{place}", str(home.place)) for text in (start.without, start.writes))
    assert without in settings.read_text()
    settings.write_text(settings.read_text().replace(without, start.instead))
    with everywhere(ground, home) as told:
        told.becomes("blocked", "dialog", message=start.shows)
        assert start.shows in told.driven.refused("y")
        assert told.driven.shown()["state"] == "running"
        told.driven.end()
    assert not written or written not in settings.read_text()
    assert not start.makes or not (home.home / start.makes).exists()


@pytest.mark.proves("start-up dialog")
@pytest.mark.parametrize("name", KEYS)
def test_a_missing_sign_in_is_told_with_what_to_do(name: str, ground: Ground, agent_home: Homes) -> None:
    begin, advice = KEYS[name]
    home = agent_home(name)
    env = {name: text for name, text in home.env.items() if not name.startswith(begin)}
    if name == "aider":
        settings = home.home / ".aider.conf.yml"
        settings.write_text("\n".join(line for line in settings.read_text().splitlines() if "model:" not in line))
    with everywhere(ground, replace(home, env={**env, "COPILOT_AUTO_UPDATE": "false"})) as told:
        told.becomes("blocked", "auth", message=advice)
        assert advice in told.driven.refused("y")
        told.driven.end()


@pytest.mark.proves("started")
def test_nobody_else_speaks_with_the_server_of_opencode(ground: Ground, agent_home: Homes) -> None:
    import http.client

    with everywhere(ground, agent_home("opencode")) as told:
        told.becomes("waiting")
        argv = told.driven.truth.run_file()["argv"]
        link = http.client.HTTPConnection("127.0.0.1", int(argv[argv.index("--port") + 1]), timeout=20)
        link.request("GET", "/permission")
        assert link.getresponse().status == 401
        link.close()
        environ = Path(f"/proc/{told.driven.truth.agent_pid()}/environ").read_bytes().split(b"\0")
        password = next(item.partition(b"=")[2] for item in environ if item.startswith(b"OPENCODE_SERVER_PASSWORD="))
        stored = [file for file in told.driven.truth.folder.rglob("*") if file.is_file() and not file.is_symlink()]
        assert not [file for file in stored if password in file.read_bytes()]
        told.driven.end()
