"""Adopting a program that runs in a pane of somebody's tmux."""

from __future__ import annotations

from hitchpost.agents import catalog
from hitchpost.errors import Refused
from hitchpost.model import run as runs
from hitchpost.model.facts import ADOPTED
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.sessions.start import start
from hitchpost.ops.views.listing import listing
from hitchpost.ops.views.observe import Observation
from hitchpost.runtimes.adopted import Target
from hitchpost.settings import Settings
from hitchpost.store.home import run_folder, session_folder
from hitchpost.store.runfiles import Process, read_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.ops.views.session_types import Session as SessionJson

KNOWN = "output from now on, whether the program is running, and when it ends"
NOT_KNOWN = (
    "its exit status (tmux is its parent), earlier output beyond the screen, and processes that have left its tree"
)


def adopt(
    home: str, target: Target, settings: Settings, *, actor: str, name: str | None, description: str
) -> Observation:
    """Watch the program as a session. Raises ``Refused`` when it is one already."""
    for row in listing(home, shapes=True):
        if row.shape["runtime"] == ADOPTED and row.shape["state"] in runs.LIVE and _is_of(home, row.shape, target):
            raise Refused(f"pane {target.pane} is already adopted, as {row.shape['name']}")
    command = target.command or "tmux"
    known = command in catalog.names()
    spec = SessionSpec(
        target.folder,
        agent=command if known else None,
        command=() if known else (command,),
        name=name,
        description=description,
        runtime=ADOPTED,
    )
    record = create(home, spec, settings, actor=actor)
    size = (target.cols, target.rows)
    reason = f"adopted from tmux pane {target.pane}"
    return start(
        home,
        record.id,
        settings,
        actor=actor,
        caller={},
        size=size,
        source=target.source(),
        reason=reason,
        until_ready=False,
    ).seen


def _is_of(home: str, shape: SessionJson, target: Target) -> bool:
    where = run_folder(session_folder(home, shape["id"]), shape["run"])
    run = read_run(where)
    return run is not None and run.agent == Process(target.pid, target.start)
