"""Git's own notes about a worktree (``.git/worktrees/NAME``), made again when somebody deleted them."""

from __future__ import annotations

import os
import stat

from hitchpost.errors import Refused
from hitchpost.store import files
from hitchpost.workspaces import git, store, worktree
from hitchpost.workspaces.store import Workspace
from hitchpost.workspaces.tree import install_index
from hitchpost.workspaces.view import View


def repair(home: str, workspace: Workspace) -> str | None:
    """Make the notes again; where the worktree is now, in words. None when there is nothing to do.

    Its files stay as they are. Which commit was checked out is lost with the notes: the branch's own is taken.
    The caller holds the workspace's lock.
    """
    link = os.path.join(workspace.path, ".git")
    if workspace.repo is None or not os.path.isdir(workspace.repo) or store.own_folder(workspace):
        return None
    if not os.path.lexists(link) or not stat.S_ISREG(os.lstat(link).st_mode):
        raise Refused(f"{workspace.path} is no longer a worktree; move it away, then restore the workspace")
    head, where = _head(workspace)
    admin = _new_folder(os.path.join(workspace.repo, "worktrees"), os.path.basename(workspace.path))
    for name, text in (("HEAD", head), ("commondir", "../.."), ("gitdir", link)):
        files.replace_file(os.path.join(admin, name), os.fsencode(text) + b"\n")
    files.replace_file(link, b"gitdir: " + os.fsencode(admin) + b"\n")
    workspace = store.write(home, store.placed(workspace))
    with View(store.tree(home, workspace)) as view:
        install_index(view.tree, os.path.join(view.folder, "index"))
    return f"git's notes about {workspace.path} were missing and have been recreated; it is {where}"


def _head(workspace: Workspace) -> tuple[str, str]:
    repo, branch = str(workspace.repo), str(workspace.branch)
    elsewhere = worktree.checked_out_in(repo, branch)
    if not elsewhere:
        return f"ref: refs/heads/{branch}", f"on branch {branch}"
    commit = git.commit("/", f"refs/heads/{branch}", repo)
    return str(commit), f"on no branch, because {branch} is checked out in {elsewhere}"


def _new_folder(top: str, name: str) -> str:
    os.makedirs(top, exist_ok=True)
    number = 0
    while True:
        path = os.path.join(top, f"{name}{number or ''}")
        try:
            os.mkdir(path)
        except FileExistsError:
            number += 1
        else:
            return path
