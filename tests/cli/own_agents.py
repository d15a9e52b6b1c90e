"""Agents of a test's own: a small script, and the file that describes it."""

from __future__ import annotations

import os
from pathlib import Path

WORDS = 'printf "<%s>" "$@" >>said; echo >>said; exec sleep 1000'
"""Writes down its arguments, a line for each run, and lives on."""


def describe(name: str, text: str) -> Path:
    """Write the user's own file of an agent. Returns it."""
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "hitchpost/agents"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(text)
    return folder / f"{name}.toml"


ASKING = """
shows_prompt = true
[rules]
version = 1
[[screen]]
state = "blocked"
kind = "permission"
find = ['Allow .*\\?']
options = { yes = "\\r" }
"""
ASKS = "stty -echo; printf 'Allow to touch it?'; read -r _; printf '\\033[2J\\033[Hworking'; exec sleep 1000"
"""An agent that asks for one permission, and the rules that know it."""


def own_agent(place: Path, name: str, script: str, more: str = "") -> Path:
    """An agent that runs ``script``; ``more`` is what its file has besides. Returns the file."""
    program = place / f"{name}-program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return describe(name, f'title = "{name.title()}"\nargv = ["{program}"]\nready_after_s = 0.05\n{more}')
