"""The conversation of each real agent comes back after kill -9, whatever it was doing; a fork has a copy of it."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agents.driving import LONG_S, Driven, SilentTool
from tests.agents.everywhere import Everywhere, everywhere
from tests.agents.homes import AgentHome
from tests.agents.modelserver import ModelServer
from tests.agents.steps import Walk, begin_tool, cleared, screen_shown
from tests.agents.ways import WAYS, every
from tests.ground import Ground, Truth
from tests.repos import Repo
from tests.support import eventually

pytestmark = pytest.mark.timeout(1800)
Homes = Callable[[str], AgentHome]
COUNTED = re.compile(r"\b(first|second|third|fourth|fifth|afresh|aside|alone|last)\b")


def said(model: ModelServer) -> list[str]:
    """The prompts of the newest request, a word each. goose joins those that got no answer."""
    return COUNTED.findall("\n".join(model.history()))


@contextmanager
def killed(walk: Walk) -> Iterator[None]:
    """kill -9 of the agent in the midst of what is under way, and its conversation goes on."""
    told = walk.told
    conversation = told.driven.shown()["conversation"]
    told.signals(signal.SIGKILL)
    told.ends("failed", signal="SIGKILL")
    yield
    assert told.driven.shown()["supports_resume"] is True
    assert "goes on with its conversation" in told.driven.resume()
    told.becomes("waiting")
    walk.settles()
    assert told.driven.shown()["conversation"] == conversation


def refuse_again(walk: Walk) -> None:
    """Where a prompt that got no answer comes again with the next one, its question does, too."""
    if walk.ways.joins:
        walk.told.send("on [[say well]]")
        walk.told.becomes("blocked", "permission")
        walk.told.answer("no")
        walk.told.becomes("done")


@pytest.mark.parametrize(
    "name",
    every(
        "after kill: mid-stream", "after kill: at a permission", "after kill: mid-tool", "cleared", "restarted afresh"
    ),
)
def test_a_conversation_comes_back(name: str, ground: Ground, agent_home: Homes, model: ModelServer) -> None:
    with everywhere(ground, agent_home(name), "--prompt", "first [[say one]]") as told, screen_shown(told.driven):
        walk = Walk(told, model, WAYS[name])
        told.becomes("done")
        told.send("second [[trickle 0.3]] [[hold stream]]")
        eventually(lambda: model.waiting("stream"), LONG_S)
        with killed(walk):
            model.release("stream")
        walk.asks("third", "never")
        with killed(walk):
            pass
        refuse_again(walk)
        tool = SilentTool(walk.place, "silent")
        begin_tool(walk, tool)
        with killed(walk):
            assert not tool.runs
            tool.end()
        refuse_again(walk)
        told.send("fourth [[say here]]")
        told.becomes("done")
        assert said(model) == ["first", "second", "third", "fourth"]
        assert [prompt.text.split()[0] for prompt in model.prompts()].count("first") == 1
        assert not (walk.place / "never").exists()

        # what was cleared stays away
        cleared(walk)
        if walk.ways.tells_cleared:
            with killed(walk):
                pass
        else:
            told.driven.kill()
            assert "a new conversation" in told.driven.resume()
            told.becomes("waiting")
        told.send("last [[say here]]")
        told.becomes("done")
        assert said(model) == (["afresh", "last"] if walk.ways.tells_cleared else ["last"])

        # a restart begins anew, and sends nothing by itself
        conversation = told.driven.shown()["conversation"]
        assert "a new conversation" in told.driven.restart()
        told.becomes("waiting")
        told.send("alone [[say yes]]")
        told.becomes("done")
        assert said(model) == ["alone"]
        assert told.driven.shown()["conversation"] not in (None, conversation)
        told.driven.end()


@pytest.mark.parametrize("name", every("forked"))
def test_a_fork_has_the_history_and_leaves_the_original_alone(
    name: str, ground: Ground, agent_home: Homes, model: ModelServer
) -> None:
    home, ways = agent_home(name), WAYS[name]
    mine = Repo(home.place)
    mine.git("init", "-q")
    mine.commit("README", "shop\n")
    with everywhere(ground, home) as told, screen_shown(told.driven):
        told.becomes("waiting")
        told.send("first [[say one]]")
        told.becomes("done")
        agent = told.driven
        if reason := ways.cannot.get("forked"):
            assert reason in agent.hitch("fork", agent.truth.id, check=4).err
            agent.end()
            return
        mine.write("README", "changed\n")
        made = agent.hitch("fork", agent.truth.id, "--name", "other", "--json").json()
        fork = Everywhere(Driven(ground, home, Truth(ground.home, made["id"])), told.hub, told.listener)
        other, place = fork.driven, Path(made["workspace"]["path"])
        with screen_shown(other):
            fork.becomes("waiting")
            assert (place / "README").read_text() == "changed\n"
            fork.send("aside [[say two]]")
            eventually(lambda: said(model) == ["first", "aside"], LONG_S)
            fork.becomes("done")
            told.send("second [[say three]]")
            eventually(lambda: said(model) == ["first", "second"], LONG_S)
            told.becomes("done")

            # its work is in its own folder
            Walk(fork, model, ways).asks("third", "made")
            fork.answer("yes")
            fork.becomes("done")
            assert (place / "made").exists()
            assert not (home.place / "made").exists()

            other.kill()
            other.resume()
            fork.becomes("waiting")
            fork.send("last [[say four]]")
            eventually(lambda: said(model) == ["first", "aside", "third", "last"], LONG_S)
            assert other.shown()["conversation"] != agent.shown()["conversation"]
            other.end()
        agent.end()
