"""Real agents beside each other, and beside what a person has set up: nothing is mixed up, and nothing is touched."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.agents.driving import LONG_S, Driven
from tests.agents.everywhere import Everywhere, everywhere
from tests.agents.homes import AgentHome, write_json
from tests.agents.installed import EVERY
from tests.agents.modelserver import ModelServer
from tests.agents.steps import screen_shown
from tests.ground import Ground
from tests.support import eventually

pytestmark = pytest.mark.timeout(1800)
Homes = Callable[[str], AgentHome]
SAID = re.compile(r"\b(?:red|blue) (?:first|second|last)\b")


def said(model: ModelServer) -> list[str]:
    """The prompts of the newest request, two words each."""
    return SAID.findall("\n".join(model.history()))


@pytest.mark.parametrize("name", EVERY)
def test_two_sessions_in_one_folder_keep_their_conversations(
    name: str, ground: Ground, agent_home: Homes, model: ModelServer
) -> None:
    home = agent_home(name)
    with everywhere(ground, home) as red:
        red.becomes("waiting")
        red.send("red first [[say well]]")  # before another starts: Gemini CLI removes conversations without a prompt
        red.becomes("done")
        blue = Everywhere(Driven.begin(ground, home), red.hub, red.listener)
        pair = {"red": red, "blue": blue}
        with screen_shown(red.driven, blue.driven):
            blue.becomes("waiting")
            blue.send("blue first [[say well]]")
            blue.becomes("done")
            for colour, each in pair.items():
                each.send(f"{colour} second [[say well]]")
                each.becomes("done")
            conversations = [each.driven.shown()["conversation"] for each in pair.values()]
            assert None not in conversations
            assert conversations[0] != conversations[1]
            for colour, each in pair.items():
                eventually(partial(is_kept, home, f"{colour} second"), LONG_S)
                each.signals(signal.SIGKILL)
                each.ends("failed", signal="SIGKILL")
            for colour, each in reversed(pair.items()):  # the one that spoke last is resumed first
                assert "goes on with its conversation" in each.driven.resume()
                each.becomes("waiting")
                each.send(f"{colour} last [[say well]]")
                each.becomes("done")
                assert said(model) == [f"{colour} first", f"{colour} second", f"{colour} last"]
            assert [each.driven.shown()["conversation"] for each in pair.values()] == conversations
            for each in pair.values():
                each.driven.end()


def is_kept(home: AgentHome, text: str) -> bool:
    """Claude Code writes a turn down a moment after its end; killed before, it has lost it."""
    files = home.home.glob(".claude/projects/*/*.jsonl")
    return home.name != "claude" or any(f'"{text} ' in file.read_text() for file in files)


@pytest.mark.parametrize("name", EVERY)
def test_what_a_person_has_set_up_stays_as_it_is_and_counts(
    name: str, ground: Ground, agent_home: Homes, model: ModelServer
) -> None:
    home = agent_home(name)
    own = home.home / "own-hook"
    own_hook(home, own)
    settings = [file for file in home.home.rglob("*") if file.is_file()]
    with everywhere(ground, home) as told, screen_shown(told.driven):
        told.becomes("waiting")
        told.send("one [[say well]]")
        told.becomes("done")
        if home.name in HOOKS:
            eventually(own.exists, LONG_S, what="the person's own hook")
        told.driven.end()
    # agents write into some of them, but nothing of ours
    assert [file for file in settings if not file.exists() or b"hitchpost" in file.read_bytes()] == []


HOOKS = {"claude": "Stop", "qwen": "Stop", "copilot": "agentStop", "gemini": "AfterAgent"}
"""The hook at the end of a turn."""


def own_hook(home: AgentHome, makes: Path) -> None:
    """As a person would set one up."""
    settings, event = home.home / f".{home.name}/settings.json", HOOKS.get(home.name, "")
    if home.name == "copilot":
        hook = {"type": "command", "bash": f"touch {makes}", "timeoutSec": 10}
        write_json(home.home / ".copilot/hooks/own.json", {"version": 1, "hooks": {event: [hook]}})
    elif event:
        hooks = {event: [{"hooks": [{"type": "command", "command": f"touch {makes}"}]}]}
        write_json(settings, {**json.loads(settings.read_text()), "hooks": hooks})
