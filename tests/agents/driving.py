"""A real agent as a session of hitch: what is said of it, and what a person does to it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hitchpost import wire
from hitchpost.runtimes.link import Link
from tests.agents.homes import AgentHome
from tests.ground import Ground, Truth
from tests.support import Answer, eventually

LONG_S = 240.0
"""Real agents on a busy machine."""
COLS = {"opencode": 120}
"""Whose line of state does not fit into 80 columns."""


@dataclass(slots=True)
class Driven:
    ground: Ground
    home: AgentHome
    truth: Truth
    run_number: int = 1
    said: str = ""
    """What ``hitch run`` has said besides."""

    @classmethod
    def begin(cls, ground: Ground, home: AgentHome, *options: str, extra: tuple[str, ...] = ()) -> Driven:
        """``hitch run AGENT``, in the agent's own folder and environment."""
        words = ("run", home.name, "--json", "--workspace", str(home.place), *options)
        tail = ("--", *home.argv, *extra) if home.argv or extra else ()
        answer = ground.hitch(*words, *tail, env=home.env, timeout_s=120)
        return cls(ground, home, Truth(ground.home, answer.json()["id"]), said=answer.err)

    def hitch(self, *words: str, check: bool | int = True) -> Answer:
        return self.ground.hitch(*words, env=self.home.env, check=check, timeout_s=120)

    # what is said -------------------------------------------------------------------------------------------------

    def shown(self) -> dict[str, Any]:
        return self.ground.ps(self.truth)

    def becomes(self, attention: str, kind: str | None = None) -> dict[str, Any]:
        """Wait until ``ps`` says so. Returns the report."""

        def fits() -> dict[str, Any] | None:
            shown = self.shown()
            report = shown["report"] or {}
            fitting = shown["attention"] == attention and (kind is None or report.get("kind") == kind)
            return {"attention": shown["attention"], **report} if fitting else None

        return eventually(fits, LONG_S, what=f"{self.home.name} to be {attention}; it is {self.shown()['report']}")

    def asks(self) -> dict[str, Any]:
        """Wait until a permission is asked that can be answered from outside. Returns the report."""
        return eventually(
            lambda: report if (report := self.becomes("blocked", "permission"))["request"] else None, LONG_S
        )

    def told(self) -> list[tuple[str, str]]:
        """What the story tells of what the agent was doing: state and kind."""
        lines = [line for line in self.truth.story() if line["event"] == "attention"]
        return [(line["state"], line.get("kind", "")) for line in lines]

    # what a person does -------------------------------------------------------------------------------------------

    def send(self, text: str, *options: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.hitch("send", "--json", *options, self.truth.id, text).json()
        return answer

    def refused(self, text: str) -> str:
        """``hitch send`` refuses, and says why."""
        return self.hitch("send", self.truth.id, text, check=4).err

    def keys(self, *pressed: bytes, apart_s: float = 0.0) -> None:
        """Keys of a person who is attached. ``apart_s`` is the rhythm of one that is pressed twice."""
        with Link.connect(
            str(self.truth.run(self.run_number)), role="attach", cols=COLS.get(self.home.name, 80), rows=24
        ) as link:
            for number, keys in enumerate(pressed):
                time.sleep(apart_s if number else 0)
                link.send(wire.INPUT, keys)

    def leaves(self, attention: str, key: bytes) -> None:
        """Press a key until the agent is no longer ``attention``: a dialog that has just opened may not read it yet."""
        for _ in range(10):
            self.keys(key)
            try:
                eventually(lambda: self.shown()["attention"] != attention, 4)
            except AssertionError:
                continue
            return
        raise AssertionError(f"{self.home.name} is still {attention}")

    def answer(self, choice: str, *options: str, check: bool | int = True) -> Answer:
        return self.hitch("answer", self.truth.id, choice, *options, check=check)

    def kill(self, condition: Callable[[], bool] = lambda: True) -> None:
        """kill -9 of the agent itself."""
        assert condition()
        os.kill(self.truth.agent_pid(self.run_number), signal.SIGKILL)
        self.truth.ended(self.run_number)

    def resume(self) -> str:
        said = self.hitch("resume", self.truth.id)
        self.run_number += 1
        return said.out + said.err

    def restart(self) -> str:
        said = self.hitch("restart", self.truth.id)
        self.run_number += 1
        return said.out + said.err

    def end(self) -> None:
        self.ground.stop(self.truth)


class SilentTool:
    """A tool that says nothing until the test ends it: it reads a fifo in the agent's folder."""

    def __init__(self, place: Path, name: str) -> None:
        self.command = f"cat {name}"
        self._fifo, self._writer = place / name, -1
        os.mkfifo(self._fifo)

    def begins(self) -> None:
        """Wait until the agent has started it."""
        self._writer = eventually(self._opened, LONG_S, what=f"the tool: {self.command}")

    @property
    def runs(self) -> bool:
        """Whether anybody reads, still or again."""
        if (opened := self._opened()) is None:
            return False
        os.close(opened)
        return True

    def end(self) -> None:
        os.close(self._writer)

    def _opened(self) -> int | None:
        try:
            return os.open(self._fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return None  # nobody reads


TEXTS = (
    "two\nlines\n\nand a gap",
    "\n".join(f"line {number} of a long prompt" for number in range(400)),
    "one line of ten thousand bytes: " + "0123456789" * 1000,
    "☃ naïve 漢字 👩‍💻 🇩🇪 👍🏽",
    "/etc/hosts is a path",
    "!touch shell",
    "!touch shell\nand more",
    "# remember",
    "@nobody",
    "-h",
    "ends with \\",
)
"""Prompts that must reach the model as they are."""
COMMAND = "/nothing of this name"
"""One that most agents would take for a command of their own."""
