"""Finishing the work in a workspace: committing it, merging it into another branch, pushing it.

The worktree is an agent's, and so may be the repository's settings. Git works in folders of ours, without hooks,
filters or drivers; of the repository's settings only plain values are read, such as a name or an address.
"""

from __future__ import annotations

import os
import re
import shutil

from hitchpost.errors import GitFailed, HitchpostError, Refused
from hitchpost.system.scratch import scratch_folder
from hitchpost.values import value
from hitchpost.workspaces import git, refs, store
from hitchpost.workspaces.changes import Changes, changes, seen
from hitchpost.workspaces.git import Progress, silent
from hitchpost.workspaces.objects import own_folder
from hitchpost.workspaces.snapshot import write_tree
from hitchpost.workspaces.store import Workspace
from hitchpost.workspaces.tree import IndexLock, Tree, described
from hitchpost.workspaces.view import View

USUAL_BASES = ("main", "master")
PROTOCOLS = "https:http:ssh:git:file"
ALLOWED_URL = re.compile(r"(?:https?|ssh|git|file)://[^\s]+|/[^\s]*|(?:\w[\w.-]*@)?\w[\w.-]*:[^\s]+")
IN_A_FOLDER = ("/", "file:")
NOT_RUN = {
    "core.hooksPath": "/dev/null",
    "core.alternateRefsCommand": "true",
    "receive.autogc": "false",
    "receive.denyCurrentBranch": "refuse",
}
RECEIVE = f"git {' '.join(f'-c {name}={text}' for name, text in NOT_RUN.items())} receive-pack"
"""In a folder of this machine git itself would run what that repository says, such as filters for files that follow."""
PUSH_S = 300.0
PUSH_ROOM_BYTES = 1 << 20
UP_TO_DATE, FAST_FORWARD, MERGED, CONFLICTS = "up-to-date", "fast-forward", "merge", "conflicts"


@value
class Merge:
    """What merging into ``into`` does. ``kind`` is one of the words above; ``commits`` is how many it gets.

    ``refusal`` says why it cannot be done now, ``conflicts`` are the files that stand in its way, ``folder`` is the
    worktree whose files change with it.
    """

    into: str
    kind: str
    commits: int = 0
    conflicts: tuple[str, ...] = ()
    folder: str | None = None
    refusal: str = ""


@value
class Push:
    remote: str
    url: str

    @property
    def address(self) -> str:
        """For people, without a name and a password that may be in it."""
        return re.sub(r"(?<=://)[^/@]*@", "", self.url)


@value
class Plan:
    """What is there to be finished. ``refusal`` says why nothing can be committed."""

    branch: str
    changes: Changes
    merge: Merge | None
    push: Push | None
    refusal: str = ""


def plan(home: str, workspace: Workspace, into: str | None = None) -> Plan:
    """Look. Nothing is written. Raises ``Refused`` when another branch than its own is checked out."""
    tree = store.tree(home, workspace)
    with View(tree) as view:
        branch, found, refusal = _branch(view, workspace), seen(view), ""
        source = str(view.head.commit)
        try:
            if found.count:
                source = _commit(view, "look", _as("hitchpost", "hitchpost@localhost"))
        except HitchpostError as error:
            refusal = str(error)
        base = into or default_base(tree.common, branch)
        merge = None if base is None else _merge(home, view, base, source)
    return Plan(branch, found, merge, push_to(tree.common, branch), refusal)


def commit(home: str, workspace: Workspace, message: str) -> str | None:
    """Commit everything that is not ignored, on the workspace's branch; None where there is nothing to commit.

    Raises ``Refused`` when there is something that cannot be committed without programs of the repository.
    """
    tree = store.tree(home, workspace)
    who = identity(tree.common)
    with View(tree, writing=True) as view, IndexLock(tree) as lock:
        branch, old = _branch(view, workspace), str(view.head.commit)
        if not seen(view).count:
            return None
        new = _commit(view, message, who)
        own = {"GIT_INDEX_FILE": view.agents_index()}
        view.run("read-tree", "--reset", new, env=own)
        view.run("update-index", "-q", "--refresh", env=own, check=False, timeout_s=git.WRITE_S)
        _move(tree.common, branch, new, old, "commit of a finished session")
        lock.install(own["GIT_INDEX_FILE"])
    return new


def merge(home: str, workspace: Workspace, into: str, message: str) -> str | None:
    """Merge what is committed on the workspace's branch; None where ``into`` has all of it.

    Either all of it is done, or nothing: raises ``Refused`` where it conflicts, or where files would be overwritten.
    """
    tree = store.tree(home, workspace)
    with View(tree, writing=True) as view:
        _branch(view, workspace)
        source = str(view.head.commit)
        found = _merge(home, view, into, source)
        if found.kind == UP_TO_DATE:
            return None
        if found.refusal:
            raise Refused(found.refusal)
        old = str(refs.commit(tree.common, f"refs/heads/{into}"))
        new = source
        if found.kind == MERGED:
            whole = view.run("merge-tree", "--write-tree", old, source).line
            words = ("commit-tree", "-p", old, "-p", source, "-m", message, whole)
            new = view.run(*words, env=identity(tree.common)).line
    if found.folder is None:
        _move(tree.common, into, new, old, "merge of a finished session")
    else:
        _move_with_files(home, tree.common, found.folder, into, new, old)
    return new


def push(home: str, workspace: Workspace, branch: str, progress: Progress = silent) -> Push:
    """Push a branch of the workspace's repository, with your own settings and credentials. Never by force."""
    tree = store.tree(home, workspace)
    where, new = push_to(tree.common, branch), refs.commit(tree.common, f"refs/heads/{branch}")
    if where is None or new is None:
        raise Refused(f"{tree.common} has no remote repository to push {branch} to")
    if ALLOWED_URL.fullmatch(where.url) is None or "::" in where.url:
        raise Refused(f"{where.address!r}, the address of {where.remote}, is none that can be pushed to")
    folder = scratch_folder(home, PUSH_ROOM_BYTES)
    try:
        env = own_folder(folder, tree.objects, new)
        mine = {name: env[name] for name in ("GIT_DIR", "GIT_OBJECT_DIRECTORY")}
        here = (f"--receive-pack={RECEIVE}",) if where.url.startswith(IN_A_FOLDER) else ()
        words = ("push", "--quiet", "--no-verify", *here, "--", where.url, f"{new}:refs/heads/{branch}")
        how = {"env": {**mine, "GIT_ALLOW_PROTOCOL": PROTOCOLS}, "timeout_s": PUSH_S, "progress": progress}
        git.run("/", *words, hooks="", **how)  # type: ignore[arg-type]
    finally:
        shutil.rmtree(folder)
    remote = f"refs/remotes/{where.remote}/{branch}"
    if refs.is_name(remote):
        git.run("/", "update-ref", remote, new, git_dir=tree.common, check=False)
    return where


def default_base(common: str, branch: str) -> str | None:
    """The branch that is checked out in the main worktree, or has a usual name, and is another than ``branch``."""
    try:
        first = refs.head(common).branch
    except Refused:
        first = None
    for name in (first, *USUAL_BASES):
        if name and name != branch and refs.commit(common, f"refs/heads/{name}"):
            return name
    return None


def push_to(common: str, branch: str) -> Push | None:
    """Where a branch goes, as the repository's settings say."""
    names = [_setting(common, key) for key in (f"branch.{branch}.pushRemote", "remote.pushDefault")]
    names.append(_setting(common, f"branch.{branch}.remote"))
    for remote in (*names, "origin"):
        if remote and remote != ".":
            url = _setting(common, f"remote.{remote}.pushurl") or _setting(common, f"remote.{remote}.url")
            if url:
                return Push(remote, url)
    return None


def identity(common: str) -> dict[str, str]:
    """The person whose commits these are. Raises ``Refused`` when git does not know who that is."""
    name, email = _setting(common, "user.name"), _setting(common, "user.email")
    if not name or not email:
        raise Refused("git does not know your name and e-mail address; set user.name and user.email with git config")
    return _as(name, email)


def _as(name: str, email: str) -> dict[str, str]:
    who = {"NAME": name, "EMAIL": email}
    return {f"GIT_{role}_{key}": text for role in ("AUTHOR", "COMMITTER") for key, text in who.items()}


def _setting(common: str, key: str) -> str:
    return git.run("/", "config", "--get", key, git_dir=common, check=False).line


def _branch(view: View, workspace: Workspace) -> str:
    """The workspace's own branch, which is checked out, and has a commit. Raises ``Refused``."""
    _, branch = workspace.origin
    if view.head.branch != branch:
        now = f"branch {view.head.branch}" if view.head.branch else "a detached head"
        raise Refused(f"{workspace.path} is on {now}, not on its own branch {branch}; check {branch} out there first")
    if view.head.commit is None:
        raise Refused(f"branch {branch} has no commit yet")
    return branch


def _commit(view: View, message: str, who: dict[str, str]) -> str:
    stored = write_tree(view)
    _refuse_filters(view, stored)
    return view.run("commit-tree", "-p", str(view.head.commit), "-m", message, stored, env=who).line


def _refuse_filters(view: View, stored: str) -> None:
    """A filter is a program: it is not run on an agent's files, and without it what is stored would be wrong."""
    known = git.run("/", "config", "--name-only", "--get-regexp", r"^filter\.", git_dir=view.tree.common, check=False)
    if known.code != 0:
        return
    paths = view.run("ls-tree", "-r", "-z", "--name-only", stored).items
    of_tree = [path for path in paths if os.path.basename(path) == ".gitattributes"]
    found = of_tree and view.run("grep", "-q", "-e", "filter", stored, "--", *of_tree, check=False).code == 0
    try:
        found = found or b"filter" in refs.read_below(view.tree.common, "info/attributes", 1 << 20)
    except OSError:
        pass
    if found:
        raise Refused(
            f"{view.tree.top} has files that go through a filter of git, such as Git LFS: no filter is run on an "
            "agent's files; commit and merge there yourself"
        )


def _merge(home: str, view: View, into: str, source: str) -> Merge:
    common = view.tree.common
    old = refs.commit(common, f"refs/heads/{into}")
    if old is None:
        raise Refused(f"there is no branch {into!r} to merge into")
    if view.run("merge-base", "--is-ancestor", source, old, check=False).code == 0:
        return Merge(into, UP_TO_DATE)
    count = int(view.run("rev-list", "--count", source, f"^{old}").line)
    new, kind = source, FAST_FORWARD
    if view.run("merge-base", "--is-ancestor", old, source, check=False).code != 0:
        done = view.run("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", old, source, check=False)
        if done.code not in (0, 1):
            raise git.failure(view.tree.top, "merge-tree", done)
        if done.code == 1:
            files = tuple(done.items[1:])
            what = f"merging {view.head.branch} into {into} conflicts in {_some(files)}; nothing was changed"
            return Merge(into, CONFLICTS, count, files, refusal=what)
        new, kind = done.items[0], MERGED
    folder, refusal = _where(home, view.tree, into)
    if folder is not None and not refusal:
        refusal = _in_the_way(home, view, folder, old, new)
    try:
        _refuse_filters(view, new)
    except Refused as error:
        refusal = refusal or str(error)
    return Merge(into, kind, count, (), folder, refusal)


def _where(home: str, tree: Tree, branch: str) -> tuple[str | None, str]:
    """The main worktree where it has the branch checked out; or why a branch cannot be moved."""
    top = os.path.join(tree.common, "worktrees")
    for name in os.listdir(top) if os.path.isdir(top) else ():
        try:
            taken = refs.head(tree.common, f"worktrees/{name}").branch == branch
        except Refused:
            continue
        if taken:
            return None, f"branch {branch} is checked out in another worktree ({name}); merge there yourself"
    main = git.Repository(tree.common, None).main
    if main is None or refs.head(tree.common).branch != branch or not os.path.isdir(os.path.join(main, ".git")):
        return None, ""
    return main, ""


def _main(home: str, common: str, folder: str) -> Tree:
    from hitchpost.workspaces import container_writes

    if container_writes.could_write(home, common):
        raise container_writes.not_yours(common)
    found = described(folder, common, "")
    if found is None:
        raise Refused(f"{folder} is not the main worktree of {common}")
    return found


def _in_the_way(home: str, view: View, folder: str, old: str, new: str) -> str:
    """Why files of the main worktree cannot follow; empty when they can."""
    changed = set(view.run("diff", "--name-only", "-z", "--no-renames", old, new).items)
    there = changes(_main(home, view.tree.common, folder))
    if found := sorted(changed.intersection((*there.changed, *there.untracked))):
        return f"{folder} has changes of its own in {_some(tuple(found))}; commit or stash them first"
    return ""


def _move_with_files(home: str, common: str, folder: str, branch: str, new: str, old: str) -> None:
    """Move a branch that is checked out in the main worktree, and its files with it; what is not committed stays."""
    main = _main(home, common, folder)
    with View(main, writing=True) as view, IndexLock(main) as lock:
        if (view.head.branch, view.head.commit) != (branch, old):
            raise Refused(f"{folder} has just been changed; try again")
        own = {"GIT_INDEX_FILE": view.agents_index()}
        view.run("update-index", "-q", "--refresh", env=own, check=False, timeout_s=git.WRITE_S)
        try:
            view.run("read-tree", "-n", "-m", "-u", old, new, env=own, timeout_s=git.WRITE_S)
        except GitFailed as error:
            raise Refused(f"the files in {folder} cannot follow: {error}; nothing was changed") from None
        _move(common, branch, new, old, "merge of a finished session")
        try:
            view.run("read-tree", "-m", "-u", old, new, env=own, timeout_s=git.WRITE_S)
        except BaseException:
            _move(common, branch, old, new, "the files could not follow")
            raise
        lock.install(own["GIT_INDEX_FILE"])


def _move(common: str, branch: str, new: str, old: str, why: str) -> None:
    git.run("/", "update-ref", "-m", f"hitchpost: {why}", f"refs/heads/{branch}", new, old, git_dir=common)


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown
