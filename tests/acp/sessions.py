"""Sessions of the scripted agent that speaks ACP."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.cli.own_agents import describe
from tests.ground import Ground, Truth
from tests.support import eventually

PROGRAM = Path(__file__).with_name("agent.py")


def begin(ground: Ground, name: str = "dev", *options: str, images: bool = False) -> Truth:
    """A session whose agent is at its prompt. ``scripted-twin`` can go on with its conversation."""
    remembered = ground.place / "remembered"
    remembered.mkdir(exist_ok=True)
    argv = json.dumps([sys.executable, str(PROGRAM), str(remembered), *(["images"] if images else [])])
    more = '[conversation]\nresume = ["--acp-conversation={id}"]\n[prompt]\nqueues = true\n[rules]\nversion = 1\n'
    head = f'title = "Scripted"\nargv = {argv}\nadapter = "acp"\nready_after_s = 3\n'
    describe("scripted-acp", f"{head}shows_prompt = true\ntells_usage = true\n{more}")
    twin = head.replace("Scripted", "Twin") + 'conversations = "scripted-acp"\n'
    describe("scripted-twin", f"{twin}shows_prompt = true\ntells_usage = true\n{more}")
    if not gate(ground).exists():
        os.mkfifo(gate(ground))
    session = ground.made("run", "scripted-acp", "--json", "--name", name, *options)
    eventually(lambda: ground.ps(session)["attention"] in ("waiting", "done"), what="its prompt")
    return session


def gate(ground: Ground) -> Path:
    return ground.place / "remembered.gate"


def let_go(ground: Ground) -> None:
    """End a turn that was told to hold. Waits until its agent does."""
    gate(ground).write_text("")
