"""What a session's container is to be like: as a person asks for it, and as a run needs it."""

from __future__ import annotations

import os

from hitchpost.errors import HitchpostError, UsageError
from hitchpost.model.facts import WITHOUT_SANDBOX
from hitchpost.settings import Settings, environment
from hitchpost.state.records import Record
from hitchpost.values import value

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


def in_folder(known: dict[str, object] | None, folder: str) -> dict[str, object] | None:
    """What a record says of a container, for a session that works there from now on."""
    return known if known is None else {**known, "git": git_folder(folder)}


def git_folder(folder: str) -> str | None:
    """The git folder that a worktree needs inside. Asked for once: later the agent could say what it is."""
    from hitchpost.workspaces import git

    try:
        return git.repository(folder).common
    except HitchpostError:
        return None


def of_run(
    record: Record, settings: Settings, extra_env: Mapping[str, str], workspace: Workspace | None
) -> dict[str, object] | None:
    """For a launch: with the names of the variables that may go inside."""
    if record.runtime in WITHOUT_SANDBOX:
        return None
    known = dict(record.sandbox or {})
    names = known.get("env_names")
    kept = names if isinstance(names, list) else []
    known["env_names"] = sorted({*map(str, kept), *environment(settings), *extra_env})
    if workspace is not None and workspace.repo is not None and record.folder == workspace.path:
        known["git"] = workspace.repo
    return known


def memory(text: str) -> int:
    """``512m`` and ``4g`` in bytes."""
    import re

    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?)b?", text.strip().lower())
    size = int(float(found[1]) * UNITS[found[2]]) if found is not None else 0
    if size < SMALLEST_MEMORY:
        raise UsageError(f"expected a memory size such as 512m or 4g, but got {text!r}")
    return size
