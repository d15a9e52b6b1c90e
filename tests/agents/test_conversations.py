"""Conversations of the real Claude Code: whoever starts a session again gets its own back, and a fork gets a copy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hitchpost.model import run as runs
from hitchpost.ops.sessions.stop import stop
from tests.agents.driving import LONG_S, Driven
from tests.agents.everywhere import hub_with
from tests.agents.homes import AgentHome
from tests.agents.modelserver import ModelServer
from tests.agents.test_claude import is_written
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.repos import Repo
from tests.support import eventually

Homes = Callable[[str], AgentHome]


@pytest.mark.timeout(300)
def test_a_prompt_and_a_click_bring_the_conversation_back(
    ground: Ground, agent_home: Homes, model: ModelServer
) -> None:
    claude = Driven.begin(ground, agent_home("claude"), "--prompt", "first [[say one]]")
    claude.becomes("done")
    conversation = claude.shown()["conversation"]
    with hub_with(ground, claude.home) as hub:
        # ended because it was idle: a prompt starts it again
        stop(str(ground.home), claude.truth.id, actor="hub", by=runs.REAPER)
        told = hub.ask("POST", f"/api/sessions/{claude.truth.id}/prompt", {"text": "second [[say two]]"}, 120)
        assert (told["started"], told["delivered"]) == (True, True)
        claude.run_number += 1
        claude.becomes("done")
        eventually(partial(is_written, claude, conversation, "second [[say"), LONG_S)

        # crashed: a click in the page
        claude.kill()
        asyncio.run(click(hub, claude.truth))
        claude.run_number += 1
        claude.becomes("waiting")
        claude.send("third [[say three]]")
        claude.becomes("done")
        assert [prompt.split()[0] for prompt in model.history()] == ["first", "second", "third"]
        assert claude.shown()["conversation"] == conversation

        # a restart is fresh, and sends the first prompt only when asked to
        claude.hitch("restart", "--again", claude.truth.id)
        claude.run_number += 1
        claude.becomes("done")
        assert [prompt.split()[0] for prompt in model.history()] == ["first"]
        claude.end()


@pytest.mark.timeout(300)
@pytest.mark.proves("forked")
def test_a_fork_has_the_history_and_the_work_and_leaves_the_original_alone(
    ground: Ground, agent_home: Homes, model: ModelServer, repo: Repo
) -> None:
    home = agent_home("claude")
    trust(home, ground.home)
    mine = Repo(home.place)
    mine.git("init", "-q")
    mine.commit("README", "shop\n")
    claude = Driven.begin(ground, home)
    claude.becomes("waiting")
    claude.send("first [[say one]]")
    claude.becomes("done")
    mine.write("README", "changed\n")
    mine.write("new", "mine\n")
    told = claude.hitch("fork", claude.truth.id, "--name", "other", "--json").json()
    other = Driven(ground, home, Truth(ground.home, told["id"]))
    other.becomes("waiting")
    place = Path(told["workspace"]["path"])
    assert ((place / "README").read_text(), (place / "new").read_text()) == ("changed\n", "mine\n")

    # killed before it has a turn of its own, it still begins where the other was
    other.kill()
    assert "goes on with its conversation" in other.resume()
    other.becomes("waiting")
    other.send("aside [[say two]]")
    other.becomes("done")
    assert [prompt.split()[0] for prompt in model.history()] == ["first", "aside"]
    claude.send("second [[say three]]")
    claude.becomes("done")
    assert [prompt.split()[0] for prompt in model.history()] == ["first", "second"]
    assert other.shown()["conversation"] != claude.shown()["conversation"]

    # and then it has its own
    eventually(partial(is_written, other, other.shown()["conversation"], "aside [[say"), LONG_S)
    other.kill()
    other.resume()
    other.becomes("waiting")
    other.send("further [[say four]]")
    other.becomes("done")
    assert [prompt.split()[0] for prompt in model.history()] == ["first", "aside", "further"]
    other.end()
    claude.end()


async def click(hub: HubProcess, session: Truth) -> None:
    """What the page does when somebody clicks on a crash."""
    async with hub.ws() as socket:
        await socket.say("session.resume", sessionId=session.id)
        while (await socket.until("session.updated", session.id, LONG_S))["session"]["state"] != "running":
            pass


def trust(home: AgentHome, folder: Path) -> None:
    """As if the person had answered Claude's question about a folder."""
    settings = home.home / ".claude.json"
    found = json.loads(settings.read_text())
    found["projects"][str(folder)] = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    settings.write_text(json.dumps(found))
