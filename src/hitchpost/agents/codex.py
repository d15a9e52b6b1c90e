"""Codex: its app-server beside its screen, so that it can be asked, told and answered as its screen can."""

from __future__ import annotations

import os
import sys

from hitchpost.agents.prepare import Injected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LAUNCHER = os.path.join(os.path.dirname(__file__), "codex_launch.py")


def inject(run_folder: str, env: Mapping[str, str]) -> Injected:
    """A program that is not there is started as it is: then the keeper says what is wrong."""
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    if not any(os.access(os.path.join(folder, "codex"), os.X_OK) for folder in folders):
        return Injected()
    return Injected(before=(os.path.realpath(sys.executable), "-I", "-S", LAUNCHER, run_folder))
