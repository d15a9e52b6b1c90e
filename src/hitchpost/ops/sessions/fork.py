"""Forking: a new session that begins with the conversation and the uncommitted work of another, which is unchanged."""

from __future__ import annotations

import os
import re

from hitchpost.agents import catalog
from hitchpost.agents.prepare import FORK
from hitchpost.errors import NameTaken, Refused
from hitchpost.model.facts import has_sandbox
from hitchpost.ops.sessions.create import check_name, not_archived, rows_of_all
from hitchpost.ops.sessions.launch import launch
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.views.find import find
from hitchpost.ops.views.observe import Observation
from hitchpost.ops.views.workplace import tree_of
from hitchpost.runtimes import base
from hitchpost.store.index import Index
from hitchpost.store.records import Record
from hitchpost.workspaces.copying import copy
from hitchpost.workspaces.tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hitchpost.ops.sessions.create import Making


def fork(
    home: str,
    session: str,
    *,
    actor: str,
    caller: Mapping[str, str],
    name: str | None = None,
    size: tuple[int, int] = (80, 24),
    progress: Callable[[float], None] = lambda waited_s: None,
    making: Making | None = None,
) -> tuple[Observation, list[str]]:
    """The new session, and notes for the person. Its worktree is on a branch of its own.

    Raises ``Refused`` when the agent cannot branch off its conversation, has none yet, or works outside git; and what
    ``launch`` raises. What is refused makes nothing.
    """
    record = find(home, session).record
    agent, tree = _forkable(home, record)
    if name is not None:
        _check_free(home, name)
    branch = re.sub(r"[^\w.+@/-]+", "-", name or f"{record.name}-fork").strip("-./") or "fork"
    made = copy(home, tree, branch, progress)
    below = os.path.relpath(record.folder, tree.top)
    folder = made.workspace.path if below == os.curdir else os.path.join(made.workspace.path, below)
    if os.path.realpath(folder) != os.path.normpath(os.path.join(os.path.realpath(made.workspace.path), below)):
        raise _led_away(record.name, folder)  # it has become a link in the moment in which it was copied
    os.makedirs(folder, exist_ok=True)  # one without files is in no commit
    spec = SessionSpec(
        folder=folder,
        agent=record.agent,
        command=record.argv[len(agent.argv) :],
        workspace=folder,
        name=name,
        description=record.description,
        runtime=record.runtime,
        size=size,
        idle_after_s=record.idle_after_s,
        permission_mode=record.permission_mode,
        model=record.model,
        when_limit=record.when_limit,
        fork_of=str(record.conversation_id),
        owner=record.owner,
    )
    seen, notes = launch(home, spec, caller=caller, actor=actor, progress=progress, making=making)
    where = f"it works on branch {made.workspace.branch}, in {made.workspace.path}"
    return seen, [where, *made.notes, *notes]


def _forkable(home: str, record: Record) -> tuple[catalog.Agent, Tree]:
    agent = catalog.agent_of(record.agent, record.argv)
    if agent is None or FORK not in dict(agent.conversation):
        reason = "" if agent is None else dict(agent.cannot).get(FORK, "")
        why = f" ({reason})" if reason else ""
        raise Refused(f"{record.agent} cannot branch off a conversation{why}, so {record.name} cannot be forked")
    if has_sandbox(record.runtime) or record.runtime not in base.RUNTIMES:
        raise Refused(
            f"{record.name} is on the {record.runtime} runtime, where its conversation stays; it cannot be forked"
        )
    if not record.conversation_id or not record.conversation_begun:
        raise Refused(f"{record.name} has no conversation yet; send it a prompt first")
    if os.path.realpath(record.folder) != record.folder:
        raise _led_away(record.name, record.folder)
    tree = tree_of(home, record)
    if tree is None:
        raise Refused(
            f"{record.name} works in {record.folder}, which is not in a git repository, so its work cannot be copied to"
            " another worktree; copy the folder yourself, and start a session in the copy"
        )
    return agent, tree


def _led_away(name: str, folder: str) -> Refused:
    """The copy would work there, too, and not in its own worktree."""
    return Refused(f"a link leads from {folder} to another place, so {name} cannot be forked")


def _check_free(home: str, name: str) -> None:
    check_name(name)
    for row in not_archived(rows_of_all(home, Index(home).refresh())):
        if row["name"] == name:
            raise NameTaken(name, row["id"])
