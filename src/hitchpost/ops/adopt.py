"""Adopting a program that runs in a pane of somebody's tmux."""

from __future__ import annotations

import os

from hitchpost import wire
from hitchpost.agents import catalog
from hitchpost.errors import Refused
from hitchpost.model import run as runs
from hitchpost.model.facts import ADOPTED
from hitchpost.ops.create import Wish, create
from hitchpost.ops.listing import listing
from hitchpost.ops.look import Seen
from hitchpost.ops.start import start
from hitchpost.runtimes.adopted import Target
from hitchpost.settings import Settings
from hitchpost.state import files
from hitchpost.state.home import run_folder, session_folder

KNOWN = "output from now on, that the program runs, and when it ends"
NOT_KNOWN = (
    "its exit status (tmux is its parent), earlier output beyond the screen, and processes that have left its tree"
)


def adopt(home: str, target: Target, settings: Settings, *, actor: str, name: str | None, description: str) -> Seen:
    """Watch the program as a session. Raises ``Refused`` when it is one already."""
    for row in listing(home, shapes=True):
        if row.shape["runtime"] == ADOPTED and row.shape["state"] in runs.LIVE and _is_of(home, row.shape, target):
            raise Refused(f"pane {target.pane} is adopted already, as {row.shape['name']}")
    command = target.command or "tmux"
    agent = catalog.load(command) if command in catalog.names() else catalog.unknown((command,))
    wish = Wish(agent, (command,), target.folder, name, description, ADOPTED)
    record = create(home, wish, settings, actor=actor)
    size = (target.cols, target.rows)
    reason = f"adopted from tmux pane {target.pane}"
    return start(
        home, record.id, settings, actor=actor, caller={}, size=size, argv=target.argv, reason=reason, until_ready=False
    ).seen


def _is_of(home: str, shape: dict[str, object], target: Target) -> bool:
    where = run_folder(session_folder(home, str(shape["id"])), int(str(shape["run"])))
    try:
        agent = files.read_object(os.path.join(where, wire.RUN)).get("agent")
    except (OSError, files.Unreadable, files.NewerSchema):
        return False
    return agent == {"pid": target.pid, "start": target.start}
