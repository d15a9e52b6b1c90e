"""What a session's container is to be like: as a person asks for it, and as a run needs it."""

from __future__ import annotations

import os

from hitchpost.errors import UsageError
from hitchpost.model.facts import has_container as runs_in_container
from hitchpost.ops.sessions.spec import SandboxOptions
from hitchpost.ops.views.workplace import tree_of
from hitchpost.runtimes.base import GitFolder, Sandbox
from hitchpost.settings import Settings, environment
from hitchpost.store.home import session_folder
from hitchpost.store.records import Record
from hitchpost.store.session import Session
from hitchpost.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hitchpost.store.sandbox import MountSource, StoredSandbox
    from hitchpost.workspaces.store import Workspace

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
SMALLEST_MEMORY = 6 << 20


def to_store(
    runtime: str, asked: SandboxOptions, settings: Settings, env_names: tuple[str, ...]
) -> StoredSandbox | None:
    """For the record. None for a runtime without a sandbox. Raises ``UsageError``."""
    if not runs_in_container(runtime):
        if asked.anything:
            raise UsageError("--image, --mount, --network, --memory, --cpus and the like need --runtime docker")
        return None
    from hitchpost.runtimes import mount_sources
    from hitchpost.runtimes.container_config import parse_mount
    from hitchpost.store.sandbox import StoredSandbox

    for mount in asked.mounts:
        parse_mount(mount)
    if asked.cpus is not None and asked.cpus <= 0:
        raise UsageError(f"expected --cpus to be more than 0, but got {asked.cpus:g}")
    if asked.config is not None and not os.path.isdir(asked.config):
        raise UsageError(f"--config {asked.config}: it is not a folder")
    config = os.path.abspath(asked.config) if asked.config is not None else None
    return StoredSandbox(
        image=asked.image or settings.image,
        mounts=tuple(asked.mounts),
        network=asked.network or settings.network,
        memory_bytes=memory(asked.memory or settings.memory),
        cpus=asked.cpus,
        config=config,
        sources=mount_sources.describe(config, asked.mounts),
        env_names=env_names,
        keep_failed=asked.keep_failed,
    )


def refuse_mounts(
    home: str, box: StoredSandbox | None, folder: str | None = None, workspace: Workspace | None = None
) -> None:
    """Raise ``MountRefused`` for anything that must not get into a container, or is not what was written down;
    ``folder`` is where it works."""
    if box is None:
        return
    from hitchpost.runtimes import mount_sources
    from hitchpost.runtimes.mounts import refuse_mount

    if folder is not None:
        own = workspace.path if workspace is not None and workspace.managed else None
        refuse_mount(home, f"the folder {folder}", folder, own)
    sources = mount_sources.of(box)
    for source in sources:
        refuse_mount(home, source.what, source.path, writable=source.is_writable)
    mount_sources.compare(sources, folder)


def of_run(
    home: str,
    record: Record,
    settings: Settings,
    extra_env: Mapping[str, str],
    workspace: Workspace | None,
    env_flags: tuple[tuple[str, str], ...],
) -> Sandbox | None:
    """For a run: with the names of the variables that may go inside, and the git folder that does.

    Raises ``Refused`` when something that is to go inside is not what was written down.
    """
    if not runs_in_container(record.runtime):
        if workspace is not None and workspace.inside:
            take_back(home, workspace)
        return None
    from hitchpost.runtimes import mount_sources
    from hitchpost.store.sandbox import StoredSandbox

    stored = record.sandbox or StoredSandbox()
    sources = mount_sources.of(stored)
    if record.sandbox is not None and stored.sources is None:
        _write_sources(session_folder(home, record.id), sources)
    return Sandbox(
        image=stored.image or settings.image,
        network=stored.network or settings.network,
        sources=sources,
        memory_bytes=memory(settings.memory) if stored.memory_bytes is None else stored.memory_bytes,
        cpus=stored.cpus,
        env_names=tuple(sorted({*stored.env_names, *environment(settings), *extra_env})),
        env_flags=env_flags,
        keep_failed=stored.keep_failed,
        git=_git_inside(home, record, workspace),
    )


def _write_sources(folder: str, sources: tuple[MountSource, ...]) -> None:
    """A session of an older version: from now on what it has mounted is compared."""
    session = Session(folder, actor="")
    with session.lock():
        record = session.record()
        if record.sandbox is not None:
            session.save(replace(record, sandbox=replace(record.sandbox, sources=sources)))


def _git_inside(home: str, record: Record, workspace: Workspace | None) -> GitFolder | None:
    """The git folder for the container, made ready; None where git finds no repository in the session's folder."""
    from hitchpost.workspaces import container_commits, container_git, container_writes, store

    tree = tree_of(home, record)
    copied = os.path.join(tree.top, ".git") if tree is not None and tree.top == record.folder else None
    container_writes.note_folders(home, record.folder, copied, _writable(record.sandbox))
    if workspace is not None and workspace.managed:
        with store.lock(home, workspace.id):
            workspace = store.changed(home, workspace, contained=True)
    if tree is None or tree.top != record.folder:
        return None
    container_git.check(tree)
    folder = session_folder(home, record.id)
    path = os.path.join(folder, container_git.FOLDER)
    tree = replace(tree, inside=path if os.path.isdir(path) else "")
    if tree.inside and not container_git.is_of(tree):
        tree = replace(tree, inside="")
    if tree.inside:
        container_commits.bring_out(tree)
        if not container_commits.is_current(tree):
            tree = replace(tree, inside="")
        elif not has_container(folder):
            container_git.refresh(tree)
    if not tree.inside:
        container_git.make(tree, folder)
    if workspace is not None and workspace.managed and workspace.inside != path:
        with store.lock(home, workspace.id):
            store.changed(home, workspace, inside=path)
    at = tree.common if tree.own else f"{container_git.WORKSPACE}/.git"
    pointer = os.path.join(folder, container_git.POINTER) if tree.own else ""
    return GitFolder(path, at, tree.objects, container_git.OBJECTS, pointer)


def _writable(box: StoredSandbox | None) -> list[str]:
    """What else a container can write."""
    if box is None:
        return []
    mounts = [text.split(":") for text in box.mounts]
    found = [parts[0] for parts in mounts if parts[-1] != "ro"]
    return found if box.config is None else [*found, box.config]


def has_container(folder: str) -> bool:
    from hitchpost.runtimes.container_file import read_box

    box = read_box(folder)
    return box is not None and box.alive


def take_back(home: str, workspace: Workspace) -> None:
    """From now on somebody works there without a container, with the repository's own git folder."""
    from hitchpost.workspaces import container_commits, store

    tree = store.tree(home, workspace)
    if tree.inside:
        container_commits.bring_out(tree)
    with store.lock(home, workspace.id):
        store.changed(home, workspace, inside="")


def bring_out(home: str, record: Record, progress: Callable[[float], None] = lambda waited_s: None) -> list[str]:
    """What a session's container has committed, into the repository; what a person should know."""
    from hitchpost.workspaces import container_commits, container_git

    path = os.path.join(session_folder(home, record.id), container_git.FOLDER)
    if not os.path.isdir(path):
        return []
    tree = tree_of(home, record)
    return [] if tree is None else container_commits.bring_out(replace(tree, inside=path), progress=progress)


def not_brought(home: str, record: Record) -> list[str]:
    """What a session's containers have committed and could not be copied into the repository, in words."""
    if not runs_in_container(record.runtime):
        return []
    from hitchpost.workspaces import container_git

    return container_git.left_inside(session_folder(home, record.id))


def memory(text: str) -> int:
    """``512m`` and ``4g`` in bytes."""
    import re

    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?)b?", text.strip().lower())
    size = int(float(found[1]) * UNITS[found[2]]) if found is not None else 0
    if size < SMALLEST_MEMORY:
        raise UsageError(f"expected a memory size such as 512m or 4g, but got {text!r}")
    return size
