"""What a session's container is to be like: as a person asks for it, and as a run needs it."""

from __future__ import annotations

import os

from hitchpost.errors import UsageError
from hitchpost.model.facts import WITHOUT_SANDBOX
from hitchpost.ops.views.workplace import tree_of
from hitchpost.settings import Settings, environment
from hitchpost.store.home import session_folder
from hitchpost.store.records import Record
from hitchpost.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from hitchpost.workspaces.store import Workspace

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
SMALLEST_MEMORY = 6 << 20


@value
class Asked:
    """The options of ``hitch run --runtime docker``; None and empty mean the settings' own."""

    image: str | None = None
    mounts: tuple[str, ...] = ()
    network: str | None = None
    memory: str | None = None
    cpus: float | None = None
    config: str | None = None
    keep_failed: bool = False

    @property
    def anything(self) -> bool:
        return self != Asked()


def wanted(runtime: str, asked: Asked, settings: Settings, env_names: tuple[str, ...]) -> dict[str, object] | None:
    """For the record. None for a runtime without a sandbox. Raises ``UsageError``."""
    if runtime in WITHOUT_SANDBOX:
        if asked.anything:
            raise UsageError("--image, --mount, --network, --memory, --cpus and their like go with --runtime docker")
        return None
    from hitchpost.runtimes.docker import parse_mount

    for mount in asked.mounts:
        parse_mount(mount)
    if asked.cpus is not None and asked.cpus <= 0:
        raise UsageError(f"expected --cpus to be more than 0, but got {asked.cpus:g}")
    if asked.config is not None and not os.path.isdir(asked.config):
        raise UsageError(f"--config {asked.config}: it is not a folder")
    return {
        "image": asked.image or settings.image,
        "mounts": list(asked.mounts),
        "network": asked.network or settings.network,
        "memory_bytes": memory(asked.memory or settings.memory),
        "cpus": asked.cpus,
        "config": os.path.realpath(asked.config) if asked.config is not None else None,
        "env_names": list(env_names),
        "keep_failed": asked.keep_failed,
    }


def refuse_mounts(
    home: str, box: dict[str, object] | None, folder: str | None = None, workspace: Workspace | None = None
) -> None:
    """Raise ``MountRefused`` for anything that must not get into a container; ``folder`` is where it works."""
    if box is None:
        return
    from hitchpost.runtimes.docker import parse_mount
    from hitchpost.runtimes.mounts import refuse_mount

    if folder is not None:
        own = workspace.path if workspace is not None and workspace.managed else None
        refuse_mount(home, f"the folder {folder}", folder, own)
    if isinstance(config := box.get("config"), str):
        refuse_mount(home, f"--config {config}", config)
    mounts = box.get("mounts")
    for text in mounts if isinstance(mounts, list) else []:
        refuse_mount(home, f"--mount {text}", parse_mount(str(text))["Source"])


def of_run(
    home: str, record: Record, settings: Settings, extra_env: Mapping[str, str], workspace: Workspace | None
) -> dict[str, object] | None:
    """For a launch: with the names of the variables that may go inside, and the git folder that does.

    Raises ``Refused`` when something that is to go inside is not what was written down.
    """
    if record.runtime in WITHOUT_SANDBOX:
        if workspace is not None and workspace.inside:
            _take_back(home, workspace)
        return None
    known = dict(record.sandbox or {})
    names = known.get("env_names")
    kept = names if isinstance(names, list) else []
    known["env_names"] = sorted({*map(str, kept), *environment(settings), *extra_env})
    known["git"] = _git_inside(home, record, workspace)
    return known


def _git_inside(home: str, record: Record, workspace: Workspace | None) -> dict[str, str] | None:
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
    return {"folder": path, "at": at, "objects": tree.objects, "objects_at": inside.OBJECTS, "pointer": pointer}


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
    if record.runtime in WITHOUT_SANDBOX:
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
