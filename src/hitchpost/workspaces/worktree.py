"""Worktrees: one branch of a repository in a folder of its own, made whole or not at all."""

from __future__ import annotations

import functools
import os
import re
from contextlib import ExitStack

from hitchpost.errors import FAILURES, GitFailed, Refused
from hitchpost.store import files, locks
from hitchpost.store.home import new_id
from hitchpost.values import replace, value
from hitchpost.workspaces import container_writes, git, include, store
from hitchpost.workspaces.changes import untracked
from hitchpost.workspaces.git import Progress, Repository, silent
from hitchpost.workspaces.store import Workspace
from hitchpost.workspaces.tree import install_index, keep_index
from hitchpost.workspaces.view import View


@value
class Made:
    """A workspace that is ready, and what a person should know about it."""

    workspace: Workspace
    notes: tuple[str, ...] = ()
    is_new: bool = False


@value
class Start:
    """Where a branch's worktree starts: at ``commit``. ``words`` tell git; ``new`` branches are made with it."""

    commit: str
    words: tuple[str, ...]
    new: bool


def make(home: str, folder: str, branch: str, *, capacity: int = 1, progress: Progress = silent) -> Made:
    """The workspace of ``branch`` in the repository that ``folder`` is in: the one that is there, else a new one."""
    repository = container_writes.repository(home, folder)
    git.check_branch(branch)
    sweep(home)
    with ExitStack() as held:
        with store.top_lock(home):
            known = store.of_branch(home, repository.common, branch)
            if known is None:
                start = starting_point(repository, branch)
                workspace = _planned(home, repository, branch, start.commit, capacity)
                held.enter_context(store.begun(home, workspace))
        if known is not None:
            return _reused(home, known) or make(home, folder, branch, capacity=capacity, progress=progress)
        try:
            with locks.Lock(os.path.join(store.folder_of(home, workspace.id), store.MAKING)) as making:
                notes = add(home, workspace, start, progress, (making.fd,))
            notes += include.copy(home, repository, workspace.path)
            workspace = store.write(home, replace(store.placed(workspace), made=True))
            tree = store.tree(home, workspace)
            keep_index(tree, tree.index)
        except BaseException:
            clear(home, workspace)
            if start.new:
                words = ("update-ref", "-d", f"refs/heads/{branch}", start.commit)
                git.run("/", *words, git_dir=repository.common, check=False)
            raise
    return Made(workspace, tuple(notes), is_new=True)


def _planned(home: str, repository: Repository, branch: str, base: str, capacity: int) -> Workspace:
    ours = new_id()
    name = re.sub(r"[^\w.+@-]", "-", repository.name).lstrip("-.") or "tree"
    path = os.path.join(store.folder_of(home, ours), f"{name}-tree" if name in store.OURS else name)
    return Workspace(
        ours,
        store.free_name(home, branch),
        path,
        files.stamp(),
        repo=repository.common,
        branch=branch,
        base=base,
        capacity=capacity,
        made=False,
    )


def _reused(home: str, workspace: Workspace) -> Made | None:
    """The workspace that is there, or None when the one who was making it has given up."""
    if not workspace.made:
        try:
            with store.lock(home, workspace.id, git.WRITE_S):
                workspace = store.read(home, workspace.id)
        except FileNotFoundError:
            return None
        if not workspace.made:
            raise Refused(
                f"git is still making workspace {workspace.name!r} for a process that has ended", "try again later"
            )
    if not workspace.is_present:
        raise gone(workspace)
    now = store.tree(home, workspace).head().branch
    where = f"branch {now}" if now else "a detached head"
    notes = (f"workspace {workspace.name} is on {where} now",) if now != workspace.branch else ()
    return Made(workspace, notes)


def gone(workspace: Workspace) -> Refused:
    back = f"hitch workspace restore {workspace.word} brings it back"
    forget = f"hitch workspace rm {workspace.word} forgets it"
    text = f"{workspace.path} is gone or is another folder than workspace {workspace.name!r}"
    return Refused(text, back if workspace.managed else forget)


# Branches -------------------------------------------------------------------------------------------------------


def starting_point(repository: Repository, branch: str) -> Start:
    """How to check ``branch`` out: it is there, a remote has it, or it starts at the head. Raises ``Refused``."""
    ref = f"refs/heads/{branch}"
    there = git.commit("/", ref, repository.common)
    if there is not None:
        refuse_checked_out(repository.common, branch)
        return Start(there, (branch,), new=False)
    remotes = git.run("/", "for-each-ref", "--format=%(refname)", f"refs/remotes/*/{branch}", git_dir=repository.common)
    refs = remotes.out.decode("utf-8", "surrogateescape").splitlines()
    if len(refs) > 1:
        names = ", ".join(ref.removeprefix("refs/remotes/") for ref in refs)
        text = f"several remotes have {branch}: {names}; make the branch from one of them with git branch first"
        raise Refused(text, field="branch")
    head = git.commit("/", refs[0], repository.common) if refs else git.head("/", repository.own)
    if head is None:
        raise Refused(f"{repository.top or repository.common} has no commits yet; make one first", field="folder")
    if refs:
        return Start(head, ("--track", "-b", branch, refs[0]), new=True)
    return Start(head, ("--no-track", "-b", branch, head), new=True)


def checked_out_in(common: str, branch: str) -> str:
    """The worktree that the branch is checked out in; empty when there is none."""
    return git.run("/", "for-each-ref", "--format=%(worktreepath)", f"refs/heads/{branch}", git_dir=common).line


def refuse_checked_out(common: str, branch: str) -> None:
    if where := checked_out_in(common, branch):
        raise Refused(
            f"branch {branch} is checked out in {where}",
            "choose another branch, or work there",
            field="branch",
            cli_hint="work there with --workspace, or choose another branch",
        )


def add(home: str, workspace: Workspace, start: Start, progress: Progress, pass_fds: tuple[int, ...] = ()) -> list[str]:
    """Make the worktree; what a person should know. Hooks run, as they do when a person checks a branch out.

    Where an agent in a container has worked, or has made a commit that it begins with, it only gets its files: without
    hooks and filters. Git has ``pass_fds`` open while it works: whoever is killed meanwhile does not take git along.
    """
    repo = str(workspace.repo)
    if container_writes.could_write(home, repo):
        raise container_writes.not_yours(repo)
    made = container_writes.made_inside(home, repo, start.commit)
    bare = workspace.contained or made is not None
    hooks, notes = (None, [_bare(made)]) if bare else _hooks(home, repo)
    options, name = start.words[:-1], start.words[-1]
    words = ("-q", *(("--no-checkout",) if bare else ()), *options, "--", workspace.path, name)
    adding = functools.partial(git.run, "/", "worktree", "add", git_dir=repo, timeout_s=git.WRITE_S, pass_fds=pass_fds)
    adding(*words, hooks=hooks, progress=progress)  # not where the person is: a repository may appear there meanwhile
    if bare:
        tree = replace(store.tree(home, store.placed(workspace)), keep="")
        with View(tree) as view:
            index = {"GIT_INDEX_FILE": os.path.join(view.folder, "checked-out")}
            filling = functools.partial(
                view.run, env=index, timeout_s=git.WRITE_S, cpu_s=git.WRITE_S, pass_fds=pass_fds
            )
            filling("read-tree", "--reset", "-u", start.commit)
            filling("update-index", "-q", "--refresh", check=False)
            install_index(tree, index["GIT_INDEX_FILE"])
    return notes


def _bare(made: str | None) -> str:
    who = "an agent in a container has worked there" if made is None else f"an agent in a container made {made[:12]}"
    return f"it was checked out without hooks and filters, such as Git LFS: {who}"


def _hooks(home: str, repo: str) -> tuple[str, list[str]]:
    """The folder whose hooks are run, and a note when none are: those in a worktree can be anybody's."""
    told = git.run("/", "config", "--type=path", "-z", "--get-all", "core.hooksPath", git_dir=repo, check=False).items
    place = told[-2] if len(told) > 1 else os.path.join(repo, "hooks")  # the last one is what we run git with
    listing = os.fsdecode(git.run("/", "worktree", "list", "--porcelain", git_dir=repo).out).splitlines()
    trees = [os.path.realpath(line.removeprefix("worktree ")) for line in listing if line.startswith("worktree ")]
    try:
        found = [os.path.join(place, name) for name in os.listdir(place)] if os.path.isabs(place) else []
    except OSError:
        found = []
    for path in map(os.path.realpath, (place, *found)):
        in_tree = any(store.is_below(path, tree) for tree in trees) and not store.is_below(path, repo)
        if not os.path.isabs(place) or in_tree or container_writes.could_write(home, path):
            return "", [f"git's hooks were not run: {place} leads into a worktree, where agents write"]
    return place, []


# Clearing away --------------------------------------------------------------------------------------------------


def sweep(home: str) -> list[str]:
    """Clear away worktrees whose making was cut short; what was done, in words. One with changes is kept."""
    if not os.path.isdir(store.top_folder(home)):
        return []
    done = []
    with store.top_lock(home):
        store.sweep_folders(home)
        waiting = store.unfinished(home)
    for workspace in waiting:
        try:
            with store.lock(home, workspace.id, timeout_s=0):
                workspace = store.read(home, workspace.id)
                making = os.path.join(store.folder_of(home, workspace.id), store.MAKING)
                if not workspace.made and locks.is_held(making) is False:
                    done.append(clear(home, workspace))
        except locks.LockTimeout:
            continue  # somebody is at work there
        except FileNotFoundError:
            continue  # or has removed it meanwhile
    return done


def clear(home: str, workspace: Workspace) -> str:
    """Take an unfinished worktree back. The caller holds its lock, so nobody else is making it."""
    path = workspace.path
    try:
        if os.path.lexists(path) and _has_changes(workspace):
            store.write(home, replace(store.placed(workspace), made=True))
            return f"kept the unfinished workspace {workspace.name}: it holds changes"
        unregister(workspace)
        if os.path.isdir(path):
            files.discard(os.path.join(path, ".git"))
            os.rmdir(path)
        store.forget(home, workspace)
    except FAILURES as error:
        return f"cannot remove the unfinished workspace {workspace.name}: {error}"
    return f"removed the unfinished workspace {workspace.name}"


def _has_changes(workspace: Workspace) -> bool:
    """Whether there is a file that is not just as in the head; missing ones are what being unfinished means."""
    if set(os.listdir(workspace.path)) <= {".git"}:
        return False
    try:
        tree = store.tree("/nowhere", store.placed(workspace))
        with View(replace(tree, keep="")) as view:
            if view.head.commit is None:
                return True
            words = ("diff", "--name-only", "--no-renames", "--diff-filter=d", "-z", view.head.commit, "--")
            return bool(any(untracked(view)) or view.run(*words).out)
    except FAILURES:
        return True


def unregister(workspace: Workspace) -> None:
    """Remove the worktree and git's own notes about it, and nothing about other worktrees."""
    if workspace.repo is None or not store.own_folder(workspace):
        return
    words = ("worktree", "remove", "--force", "--force", "--", workspace.path)
    git.run("/", *words, git_dir=workspace.repo, timeout_s=git.WRITE_S)


def again(home: str, workspace: Workspace, work_at: str | None, progress: Progress) -> tuple[Workspace, list[str]]:
    """Make the worktree of a workspace once more, at the same path, and say what is different about it.

    ``work_at`` is the commit that its snapshot was taken at. It is on its branch, unless that is checked out elsewhere
    or does not lead to the work: then it is at that commit, on no branch. A branch that is gone starts again there.
    The caller holds the workspace's lock.
    """
    repo, branch = workspace.origin
    if not os.path.isdir(repo):
        raise Refused(f"the repository {repo} is gone")
    unregister(workspace)
    there = git.commit("/", f"refs/heads/{branch}", repo)
    commit = work_at or workspace.base
    known = commit is not None and git.commit("/", commit, repo) is not None
    notes = []
    if there is None and commit is not None and known:
        start = Start(commit, ("--no-track", "-b", branch, commit), new=True)
    elif there is None:
        raise GitFailed("worktree", f"branch {branch} and the commit that it started from are gone")
    elif work_at is not None and known and (why := _why_not_on(repo, branch, there, work_at)):
        start = Start(work_at, ("--detach", work_at), new=False)
        notes = [f"{why}, so the worktree is on no branch, at {work_at[:12]}, where its work was"]
    else:
        refuse_checked_out(repo, branch)
        start = Start(there, (branch,), new=False)
    notes += add(home, workspace, start, progress)
    return replace(store.placed(workspace), setup_done=False, removed_at=None), notes


def _why_not_on(repo: str, branch: str, tip: str, work_at: str) -> str:
    if where := checked_out_in(repo, branch):
        return f"branch {branch} is checked out in {where}"
    words = ("merge-base", "--is-ancestor", work_at, tip)
    leads_there = git.run("/", *words, git_dir=repo, check=False).code == 0
    return "" if leads_there else f"branch {branch} does not contain the commit that was checked out"
