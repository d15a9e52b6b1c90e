"""A second worktree with the work of another: at the same commit, with its uncommitted files, on a branch of its own.

The other worktree, its index and its branch are not touched. Ignored files stay where they are. Where an agent in a
container could write the files, it counts as one that has worked in the copy, too.
"""

from __future__ import annotations

from hitchpost.errors import GitFailed, Refused
from hitchpost.values import replace
from hitchpost.workspaces import container_writes, git, snapshot, store, worktree
from hitchpost.workspaces.git import Progress, silent
from hitchpost.workspaces.tree import Tree
from hitchpost.workspaces.worktree import Made

MOST_TRIES = 1000


def copy(home: str, tree: Tree, name: str, progress: Progress = silent) -> Made:
    """A new workspace with what is in ``tree``. Its branch is ``name``, or that with a number.

    Raises ``Refused`` when there is no commit, or something that no snapshot can hold.
    """
    taken = snapshot.of_tree(tree, f"the work of {tree.top}")
    if taken.parent is None:
        raise Refused(f"{tree.top} has no commits yet; make one first")
    branch = _new_branch(home, tree.common, name, taken.parent)
    try:
        made = worktree.make(home, tree.top, branch, progress=progress)
    except BaseException:
        git.run("/", "update-ref", "-d", f"refs/heads/{branch}", taken.parent, git_dir=tree.common, check=False)
        raise
    if taken.commit == taken.parent:
        return made
    if container_writes.could_write_in(home, tree.top):
        with store.lock(home, made.workspace.id):
            made = replace(made, workspace=store.changed(home, made.workspace, contained=True))
    snapshot.bring_back(store.tree(home, made.workspace), taken)
    return made


def _new_branch(home: str, common: str, name: str, commit: str) -> str:
    """Made here, at the commit that the work is based on: the agent may commit meanwhile."""
    for number in range(1, MOST_TRIES):
        branch = name if number == 1 else f"{name}-{number}"
        git.check_branch(branch)
        ref = f"refs/heads/{branch}"
        if git.commit("/", ref, common) is not None or store.of_branch(home, common, branch) is not None:
            continue
        try:
            git.run("/", "update-ref", ref, commit, snapshot.MUST_BE_NEW, git_dir=common)
        except GitFailed:
            if git.commit("/", ref, common) is None:
                raise
            continue  # somebody was faster
        return branch
    raise Refused(f"branches {name} to {name}-{MOST_TRIES - 1} are all there; remove some")
