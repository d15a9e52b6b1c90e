"""The events of a session with a real agent, one step each. Whoever walks them finds everything told everywhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hitchpost.agents import rules
from hitchpost.errors import HitchpostError
from hitchpost.watcher.screen import LogScreen
from tests.agents.driving import LONG_S, Driven, SilentTool
from tests.agents.everywhere import Everywhere
from tests.agents.modelserver import ModelServer
from tests.agents.ways import Ways
from tests.support import eventually

STILL_S = 0.3
TWICE_S = 0.25
"""Between two presses of the same key. Sooner, an agent may read them as one other key; later, as two single ones."""


@contextmanager
def screen_shown(*agents: Driven) -> Iterator[None]:
    """What fails is told with what was on the screens."""
    try:
        yield
    except AssertionError as error:
        for agent in agents:
            error.add_note("\n".join(line for line in screen_of(agent).splitlines() if line.strip()))
        raise


def screen_of(agent: Driven) -> str:
    screen = LogScreen(str(agent.truth.run(agent.run_number)))
    try:
        return asyncio.run(screen.text())
    finally:
        screen.close()


@dataclass(frozen=True, slots=True)
class Walk:
    told: Everywhere
    model: ModelServer
    ways: Ways

    @property
    def place(self) -> Path:
        return self.told.driven.home.place

    def asks(self, prompt: str, file: str) -> dict[str, Any]:
        """Send a prompt that needs a permission, and wait for the question. Returns the report."""
        self.told.send(f"{prompt} {self.ways.deed.format(file)}")
        return self.told.becomes(
            "blocked", "permission", message=self.ways.asks.format(file), options=list(self.ways.options)
        )

    def holds(self, name: str) -> None:
        """Send a prompt, at which the model stays silent."""
        self.told.send(f"{name} [[hold {name}]]")
        eventually(lambda: self.model.waiting(name), LONG_S, what=f"the model to have {name}")
        self.told.becomes("working")

    def press(self, *keys: bytes) -> None:
        """Keys of a person who waits until the agent has shown the effect of each."""
        for key in keys[:-1]:
            self.effect(key)
        self.told.keys(keys[-1])

    def press_until_ended(self, key: bytes) -> None:
        """A command that is being completed takes another Enter, and what wants a key twice wants it soon."""
        for _ in range(3):
            with suppress(AssertionError):
                eventually(lambda: not self.told.driven.shown()["live"], 8)
                return
            with suppress(OSError, HitchpostError):  # it has just ended
                self.told.keys(key, key, apart_s=TWICE_S)

    def interrupt(self, *keys: bytes) -> None:
        """Again, until it is heard: two keys may come too late one after the other, or at once."""
        before = self.told.driven.shown()["attention"]
        for _ in range(5):
            if not self.ways.interruptible:
                self.told.keys(*keys, apart_s=TWICE_S)
            for key, text in zip(keys, self.ways.interruptible, strict=False):
                self.shows(text)
                self.told.keys(key)
            with suppress(AssertionError):
                eventually(lambda: self.told.driven.shown()["attention"] != before, 6)
                return
        raise AssertionError(f"{self.told.driven.home.name} is still {before}")

    def shows(self, text: str) -> None:
        eventually(lambda: text in screen_of(self.told.driven), LONG_S, what=f"the screen with {text!r}")

    def effect(self, key: bytes) -> None:
        before = self.printed
        self.told.keys(key)
        eventually(lambda: self.printed > before, LONG_S, what=f"an effect of {key!r}")
        self.settles()

    @property
    def printed(self) -> int:
        return len(self.told.driven.truth.output(self.told.driven.run_number))

    def settles(self) -> None:
        """Wait until it has stopped printing; one that moves something on its screen all the time never does."""
        logs = self.told.driven.truth.run(self.told.driven.run_number) / "output"
        with suppress(AssertionError):
            eventually(
                lambda: time.time() - max(log.stat().st_mtime for log in logs.glob("*.log")) > STILL_S, 10 * STILL_S
            )

    def tidy(self) -> None:
        """What a person does after a turn that got no answer."""
        if self.ways.tidy.endswith(b"\r"):
            self.told.keys(self.ways.tidy)
            self.told.becomes("waiting")
        elif self.ways.tidy:
            empty = 0
            while empty < 2:  # it may put the text back a moment later
                self.told.driven.keys(self.ways.tidy)
                self.settles()
                empty = 0 if self.composed() else empty + 1

    def composed(self) -> str | None:
        """What stands in the agent's prompt."""
        composer = rules.load(self.told.driven.home.name).composer
        assert composer is not None
        return rules.composed(composer, screen_of(self.told.driven))


def started(walk: Walk) -> None:
    walk.told.becomes("waiting")
    assert walk.told.driven.shown()["supports_resume"] is False


def turn(walk: Walk) -> None:
    """The model thinks, answers, and is done."""
    receipt = walk.told.send("one [[hold think]] [[say first line]]")
    assert receipt["proof"] in walk.ways.proofs
    eventually(lambda: walk.model.waiting("think"), LONG_S)
    walk.told.becomes("working")
    if not walk.ways.queues:
        assert "not sent" in walk.told.driven.refused("yes")
    walk.model.release("think")
    walk.told.becomes("done", message="first line" if walk.ways.says else "")


def refused_in_the_terminal(walk: Walk) -> None:
    walk.asks("two", "asked")
    assert "waiting for a permission" in walk.told.driven.refused("y")
    walk.told.leaves("blocked", walk.ways.refuse)
    walk.told.becomes("waiting")
    assert not (walk.place / "asked").exists()
    assert "nothing is asked" in walk.told.driven.answer("yes", check=4).err
    walk.tidy()


def answered_from_the_api(walk: Walk) -> None:
    """Each answer counts once, and only for what was asked."""
    request = walk.asks("three", "allowed")["request"]
    assert "nothing is asked" in walk.told.driven.answer("yes", "--request", "0", check=4).err
    walk.told.answer("yes", request=request)
    walk.told.becomes("done")
    assert (walk.place / "allowed").exists()
    assert "nothing is asked" in walk.told.driven.answer("yes", "--request", request, check=4).err
    walk.asks("four", "denied")
    walk.told.answer("no")
    walk.told.becomes(walk.ways.denied)
    assert not (walk.place / "denied").exists()
    walk.tidy()


def silent_tool(walk: Walk) -> None:
    tool = SilentTool(walk.place, "silent")
    begin_tool(walk, tool)
    assert tool.runs
    tool.end()
    if walk.told.driven.home.name == "aider":
        walk.told.becomes("blocked", message="output to the chat")
        walk.told.answer("no")
        walk.told.becomes("waiting")
    else:
        walk.told.becomes("done")


def begin_tool(walk: Walk, tool: SilentTool) -> None:
    """aider has no tools. A person's own command is the same to whoever waits."""
    if walk.told.driven.home.name == "aider":
        walk.told.keys(f"!{tool.command}\r".encode())
    else:
        # one that only reads may need no permission
        walk.told.send(f"tool [[bash {tool.command} > read]]")
        walk.told.becomes("blocked", "permission", message=tool.command, options=list(walk.ways.options))
        walk.told.answer("yes")
    tool.begins()
    walk.told.becomes("working")


def background(walk: Walk) -> None:
    """A task that goes on after the turn, or for as long as which the turn goes on."""
    if walk.ways.background is None:
        return
    behind = SilentTool(walk.place, "behind")
    walk.told.send(f"[[background {behind.command} > back]]")
    walk.told.becomes("blocked", "permission", message=behind.command, options=list(walk.ways.options))
    walk.told.answer("yes")
    behind.begins()
    if walk.ways.background == "working":
        walk.told.becomes("working", message="background")
        assert behind.runs
    else:
        walk.told.becomes(walk.ways.background, background=1)
    behind.end()
    walk.told.becomes("done", background=0)


def question(walk: Walk) -> None:
    if walk.ways.question is None:
        return
    walk.told.send("[[question Which colour?|Red|Blue]] [[say chosen]]")
    report = walk.told.becomes("blocked", "question", message="Which colour?")
    assert "asking a question" in walk.told.driven.refused("Red")
    if walk.ways.question:
        assert report["options"] == ["Red", "Blue"]
        walk.told.answer("Blue")
        walk.told.becomes("done", message="chosen")
    else:
        walk.told.leaves("blocked", walk.ways.refuse)
        walk.told.becomes(walk.ways.cancelled)
        walk.tidy()


def interrupted(walk: Walk) -> None:
    for name, keys in walk.ways.interrupts.items():
        walk.holds(name)
        walk.interrupt(*keys)
        walk.told.becomes("waiting")
        walk.model.release(name)
        walk.tidy()


def api_error(walk: Walk) -> None:
    walk.told.send("[[error 400 out of order]]")
    walk.told.becomes("error", "", message="out of order")
    walk.tidy()
    walk.told.send("again [[say well]]")
    walk.told.becomes("done")


def usage_limit(walk: Walk) -> None:
    """With its text, and when it ends, as far as the agent shows that."""
    if "usage limit" in walk.ways.unproven:
        return
    state, text, reason = walk.ways.limit
    before = len(walk.model.requests())
    walk.told.send(f"[[usage-limit {reason}]]")
    if walk.told.driven.home.name == "aider":
        walk.told.becomes("working", message=text)
        eventually(lambda: len(walk.model.requests()) - before > 6, LONG_S, what="aider to try again")
    report = walk.told.becomes(state, "limit", message=text)
    assert report["until"] == "18:30" if "18:30" in text else report["until"]
    if state == "blocked":
        assert "usage limit" in walk.told.driven.refused("1")
    if report["options"]:
        walk.told.answer("stop")
        walk.told.becomes("error", "limit")
    elif state == "blocked":
        walk.interrupt(*walk.ways.interrupts["Esc"])
        walk.told.becomes("waiting")
    walk.tidy()


def cleared(walk: Walk) -> None:
    """What was said before is gone, and does not come back."""
    walk.press(walk.ways.clear.encode(), b"\r")
    if not walk.ways.exact:
        eventually(lambda: walk.composed() == "", LONG_S, what="an empty prompt")
    if walk.ways.exact:  # which conversation it is in is known when it has a prompt
        walk.settles()
        walk.press(b"afresh [[say yes]]", b"\r")
    else:
        walk.told.send("afresh [[say yes]]")
    walk.told.becomes("done")
    assert walk.model.history() == ["afresh [[say yes]]"]
    assert (walk.told.driven.shown()["conversation"] is not None) == walk.ways.tells_cleared


STEPS: tuple[Callable[[Walk], None], ...] = (
    started,
    turn,
    refused_in_the_terminal,
    answered_from_the_api,
    silent_tool,
    background,
    question,
    interrupted,
    api_error,
    usage_limit,
    cleared,
)
