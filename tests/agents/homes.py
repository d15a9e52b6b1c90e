"""A home of its own for each agent: what a user would have configured, with a scripted model instead of a real one.

The folder is trusted, first steps and updates are out of the way, and the agent asks before it acts. Nothing here is
what Hitchpost hands to an agent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from script.agents import AGENTS
from tests.agents.installed import OVER_ACP, command
from tests.agents.modelserver import ModelServer

KEY = "sk-scripted-0123456789-0123456789"
MODEL = "scripted"


@dataclass(frozen=True, slots=True)
class AgentHome:
    """Where an agent lives during a test."""

    name: str
    home: Path
    place: Path
    """The folder that it works in."""
    env: Mapping[str, str]
    """All of its environment."""
    argv: tuple[str, ...] = ()
    """What the user types behind the command, since there is no setting for it."""


def make(name: str, program: Path, scratch: Path, model: ModelServer) -> AgentHome:
    """A new home and a new folder to work in under ``scratch``. ``program`` is what speaks for it."""
    home, place = scratch / "home", scratch / "place"
    home.mkdir(parents=True, exist_ok=True)
    place.mkdir(exist_ok=True)
    agent = AGENT_OF.get(name, name)
    settings = SETTINGS.get(agent) or SETTINGS[agent.removesuffix(OVER_ACP)]
    more, argv = settings(home, place.resolve(), model)
    in_terminal = (str(AGENTS[agent.removesuffix(OVER_ACP)].path.parent),) if agent.endswith(OVER_ACP) else ()
    env = {
        "HOME": str(home),
        "PATH": os.pathsep.join((str(program.parent), *in_terminal, os.environ.get("PATH", os.defpath))),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
        # No agent may reach for anything but the model, and none should wait for what it does not get.
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1,localhost",
    }
    return AgentHome(agent, home, place, env | more, argv)


Made = tuple[dict[str, str], tuple[str, ...]]


def claude(home: Path, place: Path, model: ModelServer) -> Made:
    write_json(
        home / ".claude.json",
        {
            "hasCompletedOnboarding": True,
            "hasSeenAutoDefaultNudge": True,
            "autoUpdates": False,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {str(place): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
        },
    )
    write_json(home / ".claude/settings.json", {"permissions": {"defaultMode": "default"}})
    return {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": KEY,
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }, ()


def claude_acp(home: Path, place: Path, model: ModelServer) -> Made:
    env, argv = claude(home, place, model)
    # The machine's own IS_SANDBOX makes the adapter ask for rights that Claude Code may refuse to root.
    return {**env, "CLAUDE_CODE_EXECUTABLE": str(command("claude")), "IS_SANDBOX": ""}, argv


def codex(home: Path, place: Path, model: ModelServer, known: str = "gpt-5") -> Made:
    """``known`` is a model that it knows; of any other it would say in each turn that it does not."""
    settings = home / ".codex/config.toml"
    settings.parent.mkdir()
    settings.write_text(
        f"""\
model = "{known}"
model_provider = "scripted"
check_for_update_on_startup = false
approval_policy = "on-request"
sandbox_mode = "read-only"
[model_providers.scripted]
name = "scripted"
base_url = "{model.url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
[projects.{json.dumps(str(place))}]
trust_level = "trusted"
[analytics]
enabled = false
"""
    )
    return {"SCRIPTED_KEY": KEY}, ()


def gemini(home: Path, place: Path, model: ModelServer) -> Made:
    write_json(
        home / ".gemini/settings.json",
        {
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "privacy": {"usageStatisticsEnabled": False},
            "ui": {"hideTips": True},
        },
    )
    return {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": model.url}, ()


def opencode(home: Path, place: Path, model: ModelServer) -> Made:
    sees = {"attachment": True, "modalities": {"input": ["text", "image"], "output": ["text"]}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{model.url}/v1", "apiKey": KEY},
        "models": {MODEL: {"tool_call": True, "limit": {"context": 100_000, "output": 8_000}, **sees}},
    }
    settings = home / ".config/opencode/opencode.json"
    write_json(
        settings,
        {
            "autoupdate": False,
            "share": "disabled",
            "model": f"scripted/{MODEL}",
            "small_model": f"scripted/{MODEL}",
            "permission": {"bash": "ask", "edit": "ask"},
            "provider": {"scripted": provider},
        },
    )
    return {
        "OPENCODE_CONFIG": str(settings),  # XDG_CONFIG_HOME may be another's
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }, ()


def qwen(home: Path, place: Path, model: ModelServer) -> Made:
    write_json(
        home / ".qwen/settings.json",
        {
            "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "tools": {"approvalMode": "default", "useRipgrep": False},
            "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
        },
    )
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_MODEL": MODEL}, ()


def copilot(home: Path, place: Path, model: ModelServer) -> Made:
    write_json(home / ".copilot/config.json", {"trusted_folders": [str(place)], "banner": "never"})
    return {
        "COPILOT_PROVIDER_BASE_URL": f"{model.url}/v1",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_MODEL": MODEL,
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    }, ()


def goose(home: Path, place: Path, model: ModelServer) -> Made:
    settings = home / "goose/config/config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        f"""\
GOOSE_PROVIDER: openai
GOOSE_MODEL: {MODEL}
GOOSE_MODE: approve
GOOSE_TELEMETRY_ENABLED: false
OPENAI_HOST: {model.url}
extensions:
  developer:
    enabled: true
    type: builtin
    name: developer
    display_name: Developer
    timeout: 300
    bundled: true
"""
    )
    root = str(home / "goose")  # XDG_CONFIG_HOME may be another's
    return {"OPENAI_API_KEY": KEY, "GOOSE_DISABLE_KEYRING": "1", "GOOSE_PATH_ROOT": root}, ()


def aider(home: Path, place: Path, model: ModelServer) -> Made:
    (home / ".aider.conf.yml").write_text(
        f"""\
model: openai/{MODEL}
edit-format: whole
check-update: false
show-model-warnings: false
show-release-notes: false
analytics-disable: true
git: false
"""
    )
    return {
        "OPENAI_API_BASE": f"{model.url}/v1",
        "OPENAI_API_KEY": KEY,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }, ()


SETTINGS: dict[str, Callable[[Path, Path, ModelServer], Made]] = {
    "claude": claude,
    "claude-acp": claude_acp,
    "codex": codex,
    "codex-acp": partial(codex, known="gpt-5.4"),
    "gemini": gemini,
    "opencode": opencode,
    "qwen": qwen,
    "copilot": copilot,
    "goose": goose,
    "aider": aider,
}
AGENT_OF = {"codex-0.166": "codex"}
"""For a second version of an agent, which it is."""


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2))
