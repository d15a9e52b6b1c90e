"""Sessions of an agent that is watched: a script of the test's own, in a person's own catalog."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from hitchpost import wire
from hitchpost.agents import prepare
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.sessions.start import start
from hitchpost.runtimes.link import Link
from hitchpost.settings import Settings
from hitchpost.store import runfiles
from tests.ground import Ground, Truth
from tests.support import Hitch, Process, eventually

FAKE = Path(__file__).with_name("fake_watcher.py")
TOML = """
title = "X"
argv = {argv}
adapter = "{adapter}"
ready_after_s = 1
{more}
"""


def say(state: str, more: str = "", message: str = "") -> str:
    """A line of a shell script that reports a state."""
    text = f":msg={b64encode(message.encode()).decode()}" if message else ""
    return f"printf '\\033]7501;state={state}{more}{text}\\a'\n"


def begin(
    ground: Ground,
    script: str,
    *,
    adapter: str = "rules",
    more: str = "",
    env: dict[str, str] | None = None,
    arguments: tuple[str, ...] = (),
) -> Truth:
    """A started session. Nobody waits for its agent to be ready."""
    program = ground.place / "x"
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    argv = json.dumps([str(program), *arguments])
    ground.add_agent("x", TOML.format(argv=argv, adapter=adapter, more=more))
    record = create(str(ground.home), SessionSpec(str(ground.place), agent="x"), Settings(), actor="test")
    caller = {**Hitch.environment(), **(env or {})}
    start(str(ground.home), record.id, Settings(), caller=caller, actor="test", until_ready=False)
    return Truth(ground.home, record.id)


def with_fake(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """From now on ``fake_watcher.py`` watches, and does ``how``."""
    monkeypatch.setattr(prepare, "watcher_command", lambda agent: (sys.executable, "-I", "-S", str(FAKE), how))


def watchers(session: Truth, run: int = 1) -> list[Process]:
    keeper = session.keeper_pid(run)
    marks = ("hitchpost.watcher", str(FAKE))
    found = [process for process in Process.all() if process.parent == keeper and not process.is_zombie]
    return [process for process in found if any(mark in process.argv for mark in marks)]


def watcher_pid(session: Truth, but: int = 0, run: int = 1) -> int:
    """The watcher's number, as soon as there is one (another than ``but``)."""
    return eventually(
        lambda: next((found.pid for found in watchers(session, run) if found.pid != but), 0), 60, "a watcher"
    )


def link(session: Truth) -> Link:
    return Link.connect(str(session.run()))


def report(session: Truth) -> dict[str, Any]:
    found = runfiles.read_report(str(session.run()))
    return {key: item for key, item in found.items() if key not in ("at", "schema")}


def heard(session: Truth) -> list[dict[str, Any]]:
    """What the fake watchers of the run have heard so far."""
    path = session.run() / "heard"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]


def comes(session: Truth, **wanted: Any) -> dict[str, Any]:
    """The first event with these fields that a fake watcher hears."""

    def found() -> dict[str, Any] | None:
        return next((event for event in heard(session) if wanted.items() <= event.items()), None)

    return eventually(found, 60, f"the event {wanted}")


def ask(connection: Link, op: str, **fields: object) -> int:
    """Ask, and do not wait for the answer."""
    connection.send(wire.REQUEST, json.dumps({"id": 77, "op": op, **fields}).encode())
    return 77
