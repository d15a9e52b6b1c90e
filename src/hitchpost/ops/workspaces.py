"""Making a workspace on request: its worktree, and what its project wants done in it."""

from __future__ import annotations

from hitchpost.errors import WorkspaceExists
from hitchpost.workspaces import project, worktree
from hitchpost.workspaces.git import Progress, silent
from hitchpost.workspaces.store import Workspace


def make(
    home: str, folder: str, branch: str, *, capacity: int = 1, progress: Progress = silent
) -> tuple[Workspace, list[str]]:
    """A new workspace on ``branch`` of the repository that ``folder`` is in, ready to work in, and notes on it.

    Raises ``WorkspaceExists`` when the branch has one.
    """
    made = worktree.make(home, folder, branch, capacity=capacity, progress=progress)
    if not made.is_new:
        raise WorkspaceExists(made.workspace.name, made.workspace.path)
    workspace, notes = project.set_up(home, made.workspace, progress)
    return workspace, [*made.notes, *notes]
