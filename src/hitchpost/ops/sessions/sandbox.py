"""What a session's container is to be like: as a person asks for it, and as a run needs it."""

from __future__ import annotations

import os

from hitchpost.errors import UsageError
from hitchpost.model.facts import has_sandbox
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
    from collections.abc import Mapping

    from hitchpost.workspaces.store import Workspace

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
SMALLEST_MEMORY = 6 << 20


def to_store(
    runtime: str, asked: SandboxOptions, settings: Settings, env_names: tuple[str, ...]
) -> dict[str, object] | None:
    """For the record. None for a runtime without a sandbox. Raises ``UsageError``."""
    if not has_sandbox(runtime):
        if asked.anything:
            raise UsageError("--image, --mount, --network, --memory, --cpus and the like need --runtime docker")
        return None
    from hitchpost.runtimes import mount_sources
    from hitchpost.runtimes.docker import parse_mount

    for mount in asked.mounts:
        parse_mount(mount)
    if asked.cpus is not None and asked.cpus <= 0:
        raise UsageError(f"expected --cpus to be more than 0, but got {asked.cpus:g}")
    if asked.config is not None and not os.path.isdir(asked.config):
        raise UsageError(f"--config {asked.config}: it is not a folder")
    config = os.path.abspath(asked.config) if asked.config is not None else None
    return {
        "image": asked.image or settings.image,
        "mounts": list(asked.mounts),
        "network": asked.network or settings.network,
        "memory_bytes": memory(asked.memory or settings.memory),
        "cpus": asked.cpus,
        "config": config,
        mount_sources.KEY: mount_sources.stored(mount_sources.describe(config, asked.mounts)),
        "env_names": list(env_names),
        "keep_failed": asked.keep_failed,
    }


def refuse_mounts(
    home: str, box: dict[str, object] | None, folder: str | None = None, workspace: Workspace | None = None
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
    for source in mount_sources.of(box):
        refuse_mount(home, source.what, source.path)
    mount_sources.check(box, folder)


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
    if not has_sandbox(record.runtime):
        if workspace is not None and workspace.inside:
            _take_back(home, workspace)
        return None
    from hitchpost.runtimes import mount_sources

    stored = record.sandbox or {}
    mounted = tuple(mount_sources.of(stored))
    if record.sandbox is not None and mount_sources.KEY not in record.sandbox:
        _write_sources(session_folder(home, record.id), mount_sources.stored(mounted))
    memory_bytes, cpus = stored.get("memory_bytes"), stored.get("cpus")
    return Sandbox(
        image=str(stored.get("image") or settings.image),
        network=str(stored.get("network") or settings.network),
        sources=mounted,
        memory_bytes=memory_bytes if isinstance(memory_bytes, int) else memory(settings.memory),
        cpus=float(cpus) if isinstance(cpus, (int, float)) else None,
        env_names=tuple(sorted({*_texts(stored, "env_names"), *environment(settings), *extra_env})),
        env_flags=env_flags,
        keep_failed=stored.get("keep_failed") is True,
        git=_git_inside(home, record, workspace),
    )


def _write_sources(folder: str, sources: object) -> None:
    """A session of an older version: from now on what it has mounted is compared."""
    session = Session(folder, actor="")
    with session.lock():
        record = session.record()
        session.save(replace(record, sandbox={**(record.sandbox or {}), "sources": sources}))


def _texts(stored: Mapping[str, object], key: str) -> tuple[str, ...]:
    found = stored.get(key)
    return tuple(map(str, found)) if isinstance(found, (list, tuple)) else ()


def _git_inside(home: str, record: Record, workspace: Workspace | None) -> GitFolder | None:
    """The git folder for the container, made ready; None where git finds no repository in the session's folder."""
    from hitchpost.workspaces import bringing, contained, inside, store

    tree = tree_of(home, record)
    copied = os.path.join(tree.top, ".git") if tree is not None and tree.top == record.folder else None
    contained.note_folders(home, record.folder, copied, _writable(record.sandbox or {}))
    if workspace is not None and workspace.managed:
        with store.lock(home, workspace.id):
            workspace = store.changed(home, workspace, contained=True)
    if tree is None or tree.top != record.folder:
        return None
    inside.check(tree)
    folder = session_folder(home, record.id)
    path = os.path.join(folder, inside.FOLDER)
    tree = replace(tree, inside=path if os.path.isdir(path) else "")
    if tree.inside and not inside.is_of(tree):
        tree = replace(tree, inside="")
    if tree.inside:
        bringing.bring_out(tree)
        if not bringing.is_current(tree):
            tree = replace(tree, inside="")
        elif not has_container(folder):
            inside.refresh(tree)
    if not tree.inside:
        inside.make(tree, folder)
    if workspace is not None and workspace.managed and workspace.inside != path:
        with store.lock(home, workspace.id):
            store.changed(home, workspace, inside=path)
    at = tree.common if tree.own else f"{inside.WORKSPACE}/.git"
    pointer = os.path.join(folder, inside.POINTER) if tree.own else ""
    return GitFolder(path, at, tree.objects, inside.OBJECTS, pointer)


def _writable(box: dict[str, object]) -> list[str]:
    """What else a container can write."""
    mounts, config = box.get("mounts"), box.get("config")
    told = [str(text).split(":") for text in mounts] if isinstance(mounts, list) else []
    found = [parts[0] for parts in told if parts[-1] != "ro"]
    return [*found, config] if isinstance(config, str) else found


def has_container(folder: str) -> bool:
    from hitchpost.runtimes.docker import read_box

    box = read_box(folder)
    return box is not None and box.alive


def _take_back(home: str, workspace: Workspace) -> None:
    """From now on somebody works there without a container, with the repository's own git folder."""
    from hitchpost.workspaces import bringing, store

    tree = store.tree(home, workspace)
    if tree.inside:
        bringing.bring_out(tree)
    with store.lock(home, workspace.id):
        store.changed(home, workspace, inside="")


def bring_out(home: str, record: Record) -> list[str]:
    """What a session's container has committed, into the repository; what a person should know."""
    from hitchpost.workspaces import bringing, inside

    path = os.path.join(session_folder(home, record.id), inside.FOLDER)
    if not os.path.isdir(path):
        return []
    tree = tree_of(home, record)
    return [] if tree is None else bringing.bring_out(replace(tree, inside=path))


def not_brought(home: str, record: Record) -> list[str]:
    """What a session's containers have committed and could not be brought into the repository, in words."""
    if not has_sandbox(record.runtime):
        return []
    from hitchpost.workspaces import inside

    return inside.left_inside(session_folder(home, record.id))


def memory(text: str) -> int:
    """``512m`` and ``4g`` in bytes."""
    import re

    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?)b?", text.strip().lower())
    size = int(float(found[1]) * UNITS[found[2]]) if found is not None else 0
    if size < SMALLEST_MEMORY:
        raise UsageError(f"expected a memory size such as 512m or 4g, but got {text!r}")
    return size
