"""``workspace.json``: what is known of each workspace. Reading, writing, finding."""

from __future__ import annotations

import os

from hitchpost.errors import AmbiguousWorkspace, NoSuchWorkspace, Refused
from hitchpost.store import files, locks
from hitchpost.store.home import check_folder, is_id, new_id
from hitchpost.values import asdict, replace, value
from hitchpost.workspaces.folders import erase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.workspaces.tree import Tree

WORKSPACES, FILE, SLOTS, SETUP_LOG, MAKING = "workspaces", "workspace.json", "slots", "setup.log", "making"
NEW, REMOVED, SEEN_INDEX = ".new-", ".removed-", ".seen-index"
OURS = (FILE, SLOTS, SETUP_LOG, MAKING, files.LOCK)
CREATE_WAIT_S = 30.0


@value
class Workspace:
    """One folder to work in. ``made`` is False while its worktree is being made; a removed one waits for a restore.

    ``repo`` is the git folder that all worktrees of the repository share, ``base`` the commit it started from, ``own``
    the worktree's own git folder, below ``repo``. ``inside`` is the git folder that a container has in the place of
    ``repo``; ``contained`` says that an agent in a container has worked there.
    """

    id: str
    name: str
    path: str
    created_at: str
    dev: int = 0
    ino: int = 0
    repo: str | None = None
    branch: str | None = None
    base: str | None = None
    capacity: int = 1
    managed: bool = True
    made: bool = True
    setup_done: bool = False
    removed_at: str | None = None
    own: str = ""
    repo_id: str = ""
    objects_id: str = ""
    inside: str = ""
    contained: bool = False

    @property
    def origin(self) -> tuple[str, str]:
        """The git folder and the branch of its worktree. Raises ``Refused`` for a folder that is nobody's worktree."""
        if self.repo is None or self.branch is None:
            raise Refused(f"{self.path} is not a worktree on a branch")
        return self.repo, self.branch

    @property
    def is_present(self) -> bool:
        """Whether the folder is there and is the one that was leased or made.

        File systems give the inode number of a deleted folder to the next one, so a worktree must also be one of the
        repository's.
        """
        try:
            here = os.stat(self.path)
            same = (here.st_dev, here.st_ino) == (self.dev, self.ino)
            return same and (not self.managed or self._is_worktree())
        except OSError:
            return False

    def _is_worktree(self) -> bool:
        text = files.read_bytes(os.path.join(self.path, ".git"), 4096).removesuffix(b"\n")
        target = os.path.realpath(os.path.join(self.path, os.fsdecode(text.removeprefix(b"gitdir: "))))
        return text.startswith(b"gitdir: ") and os.path.dirname(target) == f"{self.repo}/worktrees"

    @property
    def word(self) -> str:
        """What a person types into a shell to mean this workspace: its name where that can be shown and typed."""
        import shlex

        return shlex.quote(self.name) if self.name.isprintable() and not self.name.startswith("-") else self.id


_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "str": (str,),
    "bool": (bool,),
    "str | None": (str, type(None)),
}


def tree(home: str, workspace: Workspace) -> Tree:
    """The worktree, for a look. Raises ``Refused`` when the workspace is none, or is in no repository any more."""
    from hitchpost.workspaces import container_writes
    from hitchpost.workspaces.tree import Tree

    repo, own = workspace.repo, workspace.own or own_folder(workspace)
    if repo is not None and not os.path.isdir(repo):
        raise Refused(f"the repository of {workspace.path} is gone: {repo}", "move it back there")
    if repo is None or not own:
        raise Refused(f"git no longer knows {workspace.path}")
    if container_writes.could_write(home, repo):
        raise container_writes.not_yours(repo)
    ids = [workspace.repo_id or files.folder_id(repo), workspace.objects_id or files.folder_id(f"{repo}/objects")]
    inside = workspace.inside if os.path.isdir(workspace.inside) else ""
    top_id = f"{workspace.dev:x}-{workspace.ino:x}"
    return Tree(workspace.path, top_id, repo, ids[0], ids[1], own, folder_of(home, workspace.id), inside)


def own_folder(workspace: Workspace) -> str:
    """Where git keeps its notes about the worktree, below the repository's git folder; empty when it has none."""
    top = os.path.join(workspace.repo or "/nowhere", "worktrees")
    try:
        names = os.listdir(top)
    except OSError:
        return ""
    for name in names:
        try:
            text = files.read_bytes(os.path.join(top, name, "gitdir"), 4096)
        except OSError:
            continue
        if os.fsdecode(text.removesuffix(b"\n")) == os.path.join(workspace.path, ".git"):
            return f"worktrees/{name}"
    return ""


def placed(workspace: Workspace) -> Workspace:
    """With the folder and the repository as they are at this moment, right after git has made the worktree."""
    place = os.stat(workspace.path)
    repo = str(workspace.repo)
    return replace(
        workspace,
        dev=place.st_dev,
        ino=place.st_ino,
        own=own_folder(workspace),
        repo_id=files.folder_id(repo),
        objects_id=files.folder_id(f"{repo}/objects"),
        inside="",
    )


def top_folder(home: str) -> str:
    return os.path.join(home, WORKSPACES)


def folder_of(home: str, workspace: str) -> str:
    return os.path.join(home, WORKSPACES, workspace)


def open_top(home: str) -> str:
    """The folder of all workspaces, made where it is not there and checked where it is."""
    top = top_folder(home)
    try:
        os.mkdir(top, 0o700)
    except FileExistsError:
        check_folder(top)
    return top


def top_lock(home: str) -> locks.Lock:
    """Held while a workspace is begun: names and branches are given out one at a time."""
    return locks.Lock(os.path.join(open_top(home), ".lock"), CREATE_WAIT_S)


def lock(home: str, workspace: str, timeout_s: float = locks.LOCK_TIMEOUT_S) -> locks.SessionLock:
    """The lock of one workspace. Raises ``locks.Removed`` when it is gone."""
    return locks.SessionLock(folder_of(home, workspace), timeout_s)


def read(home: str, workspace: str) -> Workspace:
    """Raises ``files.CannotRead``. Unknown keys are ignored."""
    path = os.path.join(folder_of(home, workspace), FILE)
    stored = files.read_object(path)
    known = {}
    for name, kind in Workspace.__annotations__.items():
        if name not in stored:
            continue
        item, allowed = stored[name], _TYPES[kind]
        if not isinstance(item, allowed) or (isinstance(item, bool) and bool not in allowed):
            raise files.Unreadable(path, f"expected {name} to be {kind}, but got {item!r}")
        known[name] = item
    try:
        found = Workspace(**known)  # type: ignore[arg-type]
    except TypeError as error:
        raise files.Unreadable(path, str(error)) from None
    if found.id != workspace or found.capacity < 1 or not os.path.isabs(found.path):
        raise files.Unreadable(path, "its id, capacity or path is invalid")
    return found


def write(home: str, workspace: Workspace) -> Workspace:
    """The caller holds the workspace's lock."""
    stored = {"schema": files.SCHEMA, **asdict(workspace)}
    files.write_object(os.path.join(folder_of(home, workspace.id), FILE), stored)
    return workspace


def everything(home: str) -> list[Workspace]:
    """Every workspace that can be read, the oldest first; those being made and removed ones too."""
    found = []
    for name in ids(home):
        try:
            found.append(read(home, name))
        except files.Unusable:
            continue
    return sorted(found, key=lambda workspace: (workspace.created_at, workspace.id))


def listed(home: str) -> list[Workspace]:
    """The workspaces that are made and not removed."""
    return [workspace for workspace in everything(home) if workspace.made and workspace.removed_at is None]


def ids(home: str) -> list[str]:
    try:
        return sorted(filter(is_id, os.listdir(top_folder(home))))
    except FileNotFoundError:
        return []


def find(home: str, word: str, *, removed: bool = False) -> Workspace:
    """By id, name, path, then the unique beginning of an id. ``removed`` looks among removed ones too, last."""
    everyone = [
        workspace for workspace in everything(home) if workspace.made and (removed or workspace.removed_at is None)
    ]
    everyone.sort(key=lambda workspace: workspace.removed_at is not None)
    exact = [workspace for workspace in everyone if workspace.id == word] or [
        workspace for workspace in everyone if workspace.name == word
    ]
    if exact:
        return exact[0]
    path = os.path.abspath(word)
    there = [workspace for workspace in everyone if word and workspace.path in (path, os.path.realpath(path))]
    if there:
        return next((workspace for workspace in there if workspace.is_present), there[0])
    fitting = [workspace for workspace in everyone if word and workspace.id.startswith(word)]
    if len(fitting) > 1:
        raise AmbiguousWorkspace(word, sorted(workspace.id for workspace in fitting))
    if not fitting:
        raise NoSuchWorkspace(word)
    return fitting[0]


def at(home: str, dev: int, ino: int) -> Workspace | None:
    """The workspace that is this very folder, however it is named.

    Inode numbers are used again, so a workspace whose own path is gone is nobody's folder.
    """
    return next(
        (
            workspace
            for workspace in listed(home)
            if (workspace.dev, workspace.ino) == (dev, ino) and workspace.is_present
        ),
        None,
    )


def around(home: str, path: str) -> Workspace | None:
    """The innermost workspace that the folder is in."""
    found = [workspace for workspace in listed(home) if is_below(path, workspace.path) and workspace.is_present]
    return max(found, key=lambda workspace: len(workspace.path), default=None)


def is_below(path: str, folder: str) -> bool:
    """Whether it is the folder, or in it."""
    return os.path.join(path, "").startswith(os.path.join(folder, ""))


def of_branch(home: str, repo: str, branch: str) -> Workspace | None:
    """The workspace of a repository's branch, also one that is just being made."""
    for workspace in everything(home):
        if workspace.managed and workspace.removed_at is None and (workspace.repo, workspace.branch) == (repo, branch):
            return workspace
    return None


def free_name(home: str, proposed: str, but: str = "") -> str:
    """``proposed``, or with a number behind it when another workspace has it."""
    taken = {workspace.name for workspace in everything(home) if workspace.removed_at is None and workspace.id != but}
    name, number = proposed, 2
    while name in taken:
        name, number = f"{proposed}-{number}", number + 1
    return name


class begun:
    """Make the folder of a new workspace, whole or not at all, and hold its lock. The caller holds ``top_lock``."""

    def __init__(self, home: str, workspace: Workspace) -> None:
        self.home, self.workspace = home, workspace

    def __enter__(self) -> locks.Lock:
        made = os.path.join(top_folder(self.home), NEW + self.workspace.id)
        os.mkdir(made, 0o700)
        try:
            os.mkdir(os.path.join(made, SLOTS), 0o700)
            self._held = locks.Lock(os.path.join(made, files.LOCK)).__enter__()
            try:
                files.write_object(os.path.join(made, FILE), {"schema": files.SCHEMA, **asdict(self.workspace)})
                os.rename(made, folder_of(self.home, self.workspace.id))
                files.sync_folder(top_folder(self.home))
            except BaseException:
                self._held.__exit__(None, None, None)
                raise
        except BaseException:
            erase(made)
            raise
        return self._held

    def __exit__(self, *_: object) -> None:
        self._held.__exit__(None, None, None)


def register(home: str, folder: str) -> Workspace:
    """The workspace of a plain folder, made known where it is not. The folder itself is not touched."""
    place = os.stat(folder)
    with top_lock(home):
        known = at(home, place.st_dev, place.st_ino)
        if known is not None:
            return known
        name = free_name(home, os.path.basename(folder) or "root")
        workspace = Workspace(
            new_id(), name, folder, files.stamp(), dev=place.st_dev, ino=place.st_ino, managed=False, setup_done=True
        )
        with begun(home, workspace):
            return workspace


def forget(home: str, workspace: Workspace) -> None:
    """Remove what we know of a workspace. A folder with anything in it that is not ours stays.

    The caller holds the workspace's lock.
    """
    folder = folder_of(home, workspace.id)
    if strangers := [name for name in os.listdir(folder) if not _is_ours(name)]:
        raise OSError(39, f"not empty: {', '.join(strangers)}", folder)
    gone = os.path.join(top_folder(home), REMOVED + workspace.id)
    os.rename(folder, gone)
    files.sync_folder(top_folder(home))
    erase(gone)


def _is_ours(name: str) -> bool:
    return name in OURS or name.startswith(SEEN_INDEX) or files.is_temp(name)


def sweep_folders(home: str) -> None:
    """Finish what was cut short while a record was begun or forgotten. The caller holds ``top_lock``."""
    top = top_folder(home)
    for name in os.listdir(top):
        if name.startswith((NEW, REMOVED)):
            erase(os.path.join(top, name))


def unfinished(home: str) -> list[Workspace]:
    """Workspaces that somebody is making, or was making when it was killed."""
    return [workspace for workspace in everything(home) if not workspace.made]


def changed(home: str, workspace: Workspace, **changes: object) -> Workspace:
    """Write other values for some fields. The caller holds the workspace's lock."""
    return write(home, replace(read(home, workspace.id), **changes))
