"""Where a session works: a workspace, or a plain folder. Chosen before it is created, checked before each run."""

from __future__ import annotations

import os

from hitchpost.errors import HitchpostError, NoSuchWorkspace, Refused, UsageError
from hitchpost.model import run as runs
from hitchpost.ops.sessions.create import working_folder
from hitchpost.ops.views.observe import Observation
from hitchpost.store import locks, records
from hitchpost.store.session import Session
from hitchpost.text import readable
from hitchpost.values import replace, value
from hitchpost.workspaces import store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hitchpost.store.records import StoredTree
    from hitchpost.workspaces.store import Workspace

    Progress = Callable[[float], None]


CLONED_FOLDER, EMPTY = "/workspace", "work"
"""A session on another machine works below its volume, which is root's: git wants a folder of its own user."""
SCHEMES = ("https", "http", "ssh", "git", "file")


@value
class Cloned:
    """A repository that is cloned for the session where it runs. No ``url``: an empty folder."""

    url: str
    branch: str | None


@value
class Place:
    """A folder to work in. ``base`` is the commit that is checked out there; ``notes`` are for the person.

    ``git`` describes the worktree that a folder is in which is no workspace's; ``cloned`` a folder on another machine.
    """

    folder: str
    workspace: Workspace | None = None
    base: str | None = None
    notes: tuple[str, ...] = ()
    git: StoredTree | None = None
    cloned: Cloned | None = None

    @property
    def workspace_id(self) -> str | None:
        return None if self.workspace is None else self.workspace.id

    @property
    def branch(self) -> str | None:
        if self.cloned is not None:
            return self.cloned.branch
        return None if self.workspace is None else self.workspace.branch

    @property
    def repository(self) -> str:
        """The folder of the repository that it belongs to, or the address of one that is cloned; empty outside git."""
        if self.cloned is not None:
            return self.cloned.url
        common = (self.workspace and self.workspace.repo) or (self.git and self.git.common) or ""
        return common.removesuffix("/.git")


def choose_elsewhere(
    repository: str,
    *,
    branch: str | None = None,
    workspace: str | None = None,
    exclusive: bool = False,
    share: bool = False,
) -> Place:
    """The place of a session on another machine: a volume of its own. Raises ``UsageError``."""
    if workspace is not None or exclusive or share:
        raise UsageError(
            "a session in a pod has a workspace of its own: --workspace, --exclusive and --share do not fit"
        )
    if branch is not None and not repository:
        raise UsageError("--branch needs the repository that it belongs to: --repo URL", field="branch")
    if branch is not None:
        from hitchpost.workspaces.git import check_branch

        check_branch(branch)
    if repository:
        check_address(repository)
    return Place(f"{CLONED_FOLDER}/{folder_name(repository)}", cloned=Cloned(repository, branch))


def folder_name(url: str) -> str:
    """What a clone is called, as git calls it."""
    last = url.rstrip("/").replace(":", "/").rpartition("/")[2].removesuffix(".git")
    plain = "".join(letter for letter in last if letter.isascii() and (letter.isalnum() or letter in "._-"))
    return plain.lstrip(".-") or EMPTY


def check_address(url: str) -> None:
    """Raises ``UsageError`` for what git would not clone, or has a secret in it that would be stored and shown."""
    from urllib.parse import urlsplit

    expected = "expected the address of a repository, such as https://host/team/shop.git or git@host:team/shop.git"
    is_plain = url.isascii() and url.isprintable() and " " not in url and not url.startswith("-")
    try:
        parts = urlsplit(url)
        user, secret = parts.username, parts.password
    except ValueError:
        raise UsageError(expected, field="repository") from None
    has_scheme = "://" in url
    host, colon, path = url.partition(":")
    is_short = not has_scheme and bool(colon and path and "/" not in host and host)
    if not is_plain or not (is_short or (has_scheme and parts.scheme in SCHEMES)):
        raise UsageError(expected, field="repository")
    if secret is not None or (user is not None and parts.scheme in ("http", "https")):
        raise UsageError(
            "the address of the repository has a name or a password in it, which would be stored and shown",
            "leave it out; the cluster's Secret for git has them",
            field="repository",
        )


def choose(
    home: str,
    folder: str,
    *,
    branch: str | None = None,
    workspace: str | None = None,
    exclusive: bool = False,
    share: bool = False,
    session: str = "",
    progress: Progress = lambda waited_s: None,
) -> Place:
    """The place that a person asks for, ready to work in. ``folder`` is where that person is.

    ``session`` is the one that asks, when there is one already. Raises ``WorkspaceBusy`` when the place is leased,
    unless ``share``.
    """
    if branch is not None:
        from hitchpost.workspaces import worktree

        made = worktree.make(home, folder, branch, progress=progress)
        return _ready(home, made.workspace, made.notes, share, session, progress)
    known = None if workspace is None else _named(home, workspace)
    if known is None:
        wanted = folder if workspace is None else workspace
        where, place = working_folder(wanted)
        known = store.at(home, place.st_dev, place.st_ino) or store.around(home, where)
        if known is None and exclusive:
            _refuse_neighbours(home, where)
            known = store.register(home, where)
        if known is None:
            return _in_folder(home, Place(where))
        if known.path != where and store.is_below(where, known.path):
            below = replace(_ready(home, known, (), share, session, progress), folder=where)
            return below if known.managed else _in_folder(home, below)
    return _ready(home, known, (), share, session, progress)


def _ready(
    home: str, workspace: Workspace, notes: tuple[str, ...], share: bool, session: str, progress: Progress
) -> Place:
    from hitchpost.workspaces import lease, project, worktree

    if not workspace.is_present:
        raise worktree.gone(workspace)
    if not share:
        lease.check_free(home, workspace, session)
        workspace, more = project.set_up(home, workspace, progress)
        notes += tuple(more)
    if not workspace.managed:
        return _in_folder(home, Place(workspace.path, workspace, notes=notes))
    return Place(workspace.path, workspace, store.tree(home, workspace).head().commit, notes)


def _in_folder(home: str, place: Place) -> Place:
    """With the worktree that the folder is in, if it is in one, and the commit that is checked out there."""
    from hitchpost.workspaces import tree
    from hitchpost.workspaces.container_writes import unused

    found = tree.discover(place.folder, home)
    try:
        base = None if found is None else found.head().commit
    except HitchpostError:
        base = None
    return replace(place, base=base, git=tree.stored(found), notes=(*place.notes, *unused(home, place.folder)))


def _named(home: str, word: str) -> Workspace | None:
    """The workspace that ``word`` names; None when it names a folder instead, also one where a leased one was."""
    try:
        known = store.find(home, word)
    except NoSuchWorkspace:
        if os.path.lexists(word) or os.path.dirname(word):
            return None
        raise
    was_here = not known.managed and not known.is_present and os.path.isdir(word)
    return None if was_here else known


def _refuse_neighbours(home: str, folder: str) -> None:
    """A lease keeps out who comes later; who is there already has none."""
    from hitchpost.ops.views.listing import listing

    for row in listing(home, shapes=True):
        if row.shape["state"] in runs.LIVE and store.is_below(row.shape["workspace"]["path"], readable(folder)):
            raise Refused(f"cannot lease {folder}: session {row.shape['name']} ({row.shape['id']}) works there")


def move(home: str, seen: Observation, place: Place, *, actor: str) -> None:
    """Give a session that has ended another place. Its history stays."""
    from hitchpost.workspaces.tree import keep_index, read

    where = os.stat(place.folder)
    with locks.SessionLock(seen.folder):
        record = records.read(seen.folder)
        reason = f"from {record.folder} to {place.folder}"
        stored = Session(seen.folder, actor=actor)
        stored.tell("moved", run=seen.facts.run, reason=reason)
        moved = replace(
            record,
            folder=place.folder,
            folder_dev=where.st_dev,
            folder_ino=where.st_ino,
            workspace_id=place.workspace_id,
            branch=place.branch,
            repository=place.repository,
            base=place.base,
            git=place.git,
        )
        stored.save(moved)
    if (tree := read(place.git)) is not None:
        keep_index(replace(tree, keep=seen.folder), tree.index)
