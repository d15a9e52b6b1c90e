"""Finishing a session's work: commit, merge, push, and remove its worktree. Each step only when it is asked for.

What is not committed is in a snapshot before anything is done.
"""

from __future__ import annotations

import shutil
from typing import Any

from hitchpost.errors import Refused
from hitchpost.model.facts import has_container
from hitchpost.model.status import BLOCKED, WORKING, status
from hitchpost.ops.sessions.caller_inside import refuse_inside
from hitchpost.ops.sessions.create import task_of
from hitchpost.ops.sessions.recover import RECOVERY, recover
from hitchpost.ops.sessions.sandbox import not_brought, take_back
from hitchpost.ops.sessions.stop import stop
from hitchpost.ops.views import moments
from hitchpost.ops.views.observe import Observation, observe
from hitchpost.ops.views.workplace import workspace_of
from hitchpost.store import files
from hitchpost.store.session import Session
from hitchpost.text import readable
from hitchpost.values import value
from hitchpost.workspaces import container_writes, finishing, snapshot, store
from hitchpost.workspaces.git import Progress, silent
from hitchpost.workspaces.removal import refuse_container, remove
from hitchpost.workspaces.store import Workspace

LONGEST_SUBJECT = 72


class StillWorks(Refused):
    """Raised when the agent may still change what is to be finished."""

    hint = "wait until it has finished, or stop it"
    cli_hint = "wait until it has finished, or use --force"

    def __init__(self, name: str, attention: str) -> None:
        what = "is still working" if attention == WORKING else "waits for you in the middle of its work"
        super().__init__(f"{name} {what}", self.hint)


@value
class Steps:
    """What is to be done, in this order. An empty message is made up; ``into`` defaults to the main worktree's branch.

    ``force``: even while the agent works.
    """

    commit: bool = False
    merge: bool = False
    push: bool = False
    remove: bool = False
    message: str = ""
    into: str | None = None
    force: bool = False


def finish_plan(home: str, session: str, into: str | None = None) -> dict[str, Any]:
    """What finishing would do now. Nothing is changed."""
    seen = observe(home, session)
    workspace = _workspace(home, seen)
    found = finishing.plan(home, workspace, into)
    merge, where = found.merge, found.push
    return readable(
        {
            "working": _works(seen),
            "live": status(seen.facts, moments.now()).live,
            "branch": found.branch,
            "folder": workspace.path,
            "message": message_of(seen),
            "commit": {
                "changed": list(found.changes.changed),
                "new": list(found.changes.untracked),
                "refusal": found.refusal,
            },
            "merge": None
            if merge is None
            else {
                "into": merge.into,
                "kind": merge.kind,
                "commits": merge.commits,
                "conflicts": list(merge.conflicts),
                "folder": merge.folder,
                "refusal": merge.refusal,
            },
            "push": None if where is None else {"remote": where.remote, "url": where.address},
            "pull_request": _pull_request(found.branch, None if merge is None else merge.into),
        }
    )


def finish(home: str, session: str, steps: Steps, *, actor: str, progress: Progress = silent) -> dict[str, Any]:
    """Do the steps, and say what was done. A step that is refused ends it: what was done before stays.

    Raises ``StillWorks`` while the agent works, ``Refused`` where the session has no worktree of its own, or a merge
    conflicts.
    """
    seen = recover(home, session, actor=RECOVERY)
    refuse_inside(seen, "finish")
    if not steps.force and _works(seen):
        raise StillWorks(seen.record.name, status(seen.facts, moments.now()).attention)
    workspace = _workspace(home, seen)
    if has_container(seen.record.runtime):
        workspace = _brought_out(home, seen, workspace)
    done: dict[str, Any] = dict.fromkeys(("snapshot", "commit", "merge", "push", "removed", "pull_request"))
    notes: list[str] = []
    with store.lock(home, workspace.id):
        if steps.commit or steps.merge:
            done["snapshot"] = snapshot.take(home, workspace, f"before {seen.record.name} was finished")
        if steps.commit:
            done["commit"] = finishing.commit(home, workspace, steps.message or message_of(seen))
            _note(home, workspace, done["commit"])
        _, branch = workspace.origin
        base = steps.into or finishing.default_base(str(workspace.repo), branch)
        if steps.merge:
            if base is None:
                raise Refused(f"there is no other branch to merge {branch} into")
            done["merge"] = finishing.merge(home, workspace, base, f"Merge branch '{branch}'")
            _note(home, workspace, done["merge"])
    if steps.push:
        target = str(base) if steps.merge else branch
        where = finishing.push(home, workspace, target, progress)
        done["push"] = {"remote": where.remote, "url": where.address, "branch": target}
        done["pull_request"] = None if steps.merge else _pull_request(branch, base)
    if steps.remove:
        stop(home, session, actor=actor, reason="finished")
        gone = remove(home, workspace, force=True, progress=progress)
        done["removed"], done["snapshot"] = workspace.path, gone.snapshot or done["snapshot"]
        notes += gone.notes
    stored = Session(seen.folder, actor=actor)
    with stored.lock():
        stored.tell("finished", run=seen.facts.run, **{name: item for name, item in done.items() if item is not None})
    return readable({**done, "notes": notes})


def message_of(seen: Observation) -> str:
    """A commit's message, where a person gives none: the session's description, which may come from its prompt."""
    record, told = seen.record, seen.record.description
    try:
        text, is_private = Session(seen.folder, actor="").first_prompt() or ("", False)
    except files.CannotRead:
        text, is_private = "", False
    if is_private and told == task_of(text):
        told = ""  # what was to stand in no arguments stands in no commit
    line = " ".join(told.strip().partition("\n")[0].split())
    if len(line) > LONGEST_SUBJECT:
        line = line[: LONGEST_SUBJECT - 1].rstrip() + "…"
    return line or f"Work of {record.name}"


def _works(seen: Observation) -> bool:
    """Whether its turn goes on."""
    now = status(seen.facts, moments.now())
    return now.live and now.attention in (WORKING, BLOCKED)


def _workspace(home: str, seen: Observation) -> Workspace:
    workspace = workspace_of(home, seen.record)
    if workspace is None or not workspace.managed:
        raise Refused(
            f"{seen.record.name} works in {seen.record.folder}, which is no worktree of its own; "
            "commit and merge there yourself"
        )
    if not workspace.is_present:
        raise Refused(
            f"the folder of {seen.record.name} is gone", f"hitch workspace restore {workspace.word} brings it back"
        )
    return workspace


def _brought_out(home: str, seen: Observation, workspace: Workspace) -> Workspace:
    """With the commits of its container in the repository. Raises ``Refused`` where the container lives, or some of
    its commits cannot be brought out."""
    refuse_container(home, workspace)
    if workspace.inside:
        take_back(home, workspace)
    if lost := not_brought(home, seen.record):
        raise Refused(lost[0])
    return store.read(home, workspace.id)


def _note(home: str, workspace: Workspace, commit: str | None) -> None:
    """Nobody has looked at what an agent in a container made: no hook or command runs with it until somebody has."""
    if commit is not None and workspace.contained:
        container_writes.note_commits(home, str(workspace.repo), [commit])


def _pull_request(branch: str, base: str | None) -> list[str] | None:
    """The command that opens a pull request, where there is one."""
    if shutil.which("gh") is None:
        return None
    return ["gh", "pr", "create", "--head", branch, *(("--base", base) if base else ())]
