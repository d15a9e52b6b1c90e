"""What a real agent asks when it starts is told, and never answered by accident."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.agents.driving import Driven
from tests.agents.everywhere import everywhere
from tests.agents.homes import AgentHome, write_json
from tests.agents.steps import screen_shown
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
SIGN_IN = "it is not signed in"


@dataclass(frozen=True, slots=True)
class SignIn:
    """Without the variables that begin with ``variables``, and with the home ``changed``, an agent says ``shows``."""

    agent: str
    variables: str
    shows: str
    changed: Callable[[AgentHome], object] = lambda home: None
    kind: str = "auth"


def no_key_of_its_own(home: AgentHome) -> None:
    """Claude Code: nobody has said yet whether the key may be used."""
    settings = home.home / ".claude.json"
    found = json.loads(settings.read_text())
    settings.write_text(json.dumps({**found, "customApiKeyResponses": {"approved": [], "rejected": []}}))


def no_provider(home: AgentHome) -> None:
    """Codex: no provider is chosen, so it is OpenAI."""
    settings = home.home / ".codex/config.toml"
    settings.write_text(
        "check_for_update_on_startup = false\n[projects" + settings.read_text().partition("[projects")[2]
    )


def update_is_there(home: AgentHome) -> None:
    """Codex: what it found when it last looked for another version."""
    settings = home.home / ".codex/config.toml"
    settings.write_text(settings.read_text().replace("check_for_update_on_startup = false\n", ""))
    looked = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    write_json(home.home / ".codex/version.json", {"latest_version": "99.0.0", "last_checked_at": looked})


def nothing_selected(home: AgentHome) -> None:
    """Gemini CLI and Qwen Code: no way to sign in is chosen."""
    settings = home.home / f".{home.name}/settings.json"
    found = json.loads(settings.read_text())
    del found["security"]["auth"]
    write_json(settings, found)


def no_model(home: AgentHome) -> None:
    settings = home.home / ".aider.conf.yml"
    settings.write_text("\n".join(line for line in settings.read_text().splitlines() if "model:" not in line))


SIGN_INS = {
    "claude key": SignIn("claude", "-", "whether to use the API key", no_key_of_its_own),
    "codex": SignIn("codex", "SCRIPTED_", "or run codex login", no_provider),
    "codex-0.166": SignIn("codex-0.166", "SCRIPTED_", "or run codex login", no_provider),
    "codex update": SignIn("codex", "-", "it offers an update", update_is_there, "dialog"),
    "codex-0.166 update": SignIn("codex-0.166", "-", "it offers an update", update_is_there, "dialog"),
    "gemini": SignIn("gemini", "GEMINI_", SIGN_IN, nothing_selected),
    "gemini key": SignIn("gemini", "GEMINI_", SIGN_IN),
    "qwen": SignIn("qwen", "OPENAI_", SIGN_IN, nothing_selected),
    "qwen key": SignIn("qwen", "OPENAI_", SIGN_IN),
    "copilot": SignIn("copilot", "COPILOT_", "/login"),
    "aider": SignIn("aider", "OPENAI_", "no key", no_model),
}
SETS = {"copilot": {"COPILOT_AUTO_UPDATE": "false"}, "codex": {"CODEX_MANAGED_BY_NPM": "1"}}
"""What such a person has in the environment. Codex offers an update only where it knows how to install it."""


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
        says_why(told.driven, start.shows)
        told.driven.end()
    assert not written or written not in settings.read_text()
    assert not start.makes or not (home.home / start.makes).exists()


@pytest.mark.proves("start-up dialog")
@pytest.mark.parametrize("what", SIGN_INS)
def test_a_missing_sign_in_is_told_with_what_to_do(what: str, ground: Ground, agent_home: Homes) -> None:
    missing = SIGN_INS[what]
    home = agent_home(missing.agent)
    missing.changed(home)
    env = {name: text for name, text in home.env.items() if not name.startswith(missing.variables)}
    with everywhere(ground, replace(home, env={**env, **SETS.get(home.name, {})})) as told, screen_shown(told.driven):
        told.becomes("blocked", missing.kind, message=missing.shows)
        assert missing.shows in told.driven.refused("y")
        says_why(told.driven, missing.shows)
        told.driven.end()


def says_why(agent: Driven, why: str) -> None:
    """Who has started it is told why it is not ready, if that was seen within the time for which a command waits."""
    said, again = agent.said, 0
    while why not in said.partition("is not ready: ")[2]:
        assert "has not shown its prompt within" in said, said
        assert again < 5
        said, again = agent.restart(), again + 1


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
