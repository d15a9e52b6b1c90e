"""What an engine is told to make a container of, and what a program in it gets."""

from __future__ import annotations

import os
from typing import Any

from hitchpost import wire
from hitchpost.errors import UsageError
from hitchpost.runspec import RunSpec
from hitchpost.runtimes import engine
from hitchpost.runtimes.base import GitFolder, Sandbox
from hitchpost.runtimes.engine import Users
from hitchpost.store.home import home_of

HOME = "home"
PIDS_LIMIT = 1024
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), wire.INSIDE)
PLACES = {"workspace": "/workspace", "config": "/config", "programs": wire.PROGRAMS, "shared": wire.SHARED}
MARKS = (wire.SESSION_MARK, wire.RUN_MARK, wire.HOME_MARK)
PASSED_ON = ("TERM", "COLORTERM", "LANG", "LC_ALL", "CLAUDE_PERMISSION_MODE", *MARKS)


def configuration(spec: RunSpec, sandbox: Sandbox, users: Users) -> dict[str, Any]:
    """What the engine is told. Nothing secret is in it, and nothing of the engine's own reaches the container."""
    mounts = [
        _mount(spec.folder, PLACES["workspace"]),
        _mount(shared_folder(spec.session_folder), PLACES["shared"]),
        _mount(PROGRAMS, PLACES["programs"], read_only=True),
        *_git_mounts(sandbox.git),
    ]
    for source in sandbox.sources:
        if source.target:
            mounts.append(parse_mount(f"{source.path}{source.target}"))
        else:
            mounts.append(_mount(source.path, PLACES["config"], read_only=True))
    return {
        "Image": sandbox.image,
        "Entrypoint": [],
        "Cmd": list(engine.FIRST_PROGRAM),
        "User": users.inside,
        "WorkingDir": PLACES["workspace"],
        "Labels": {engine.SESSION_LABEL: spec.session, engine.HOME_LABEL: home_of(spec.session_folder)},
        "HostConfig": {
            "Init": True,
            "Mounts": mounts,
            "NetworkMode": sandbox.network,
            "UsernsMode": users.namespace,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "PidsLimit": PIDS_LIMIT,
            "Memory": sandbox.memory_bytes,
            "NanoCpus": int((sandbox.cpus or 0.0) * 1e9),
        },
    }


def mounted(spec: RunSpec, sandbox: Sandbox) -> str:
    more = [] if sandbox.git is None else [sandbox.git.folder]
    places = [os.stat(path) for path in (spec.folder, PROGRAMS, *more)]
    return " ".join(f"{place.st_dev}:{place.st_ino}" for place in places)


def parse_mount(text: str) -> dict[str, Any]:
    """``/host:/inside`` or ``/host:/inside:ro``. Raises ``UsageError``; ``mounts`` says what may be mounted."""
    source, _, rest = text.partition(":")
    target, _, how = rest.partition(":")
    if not source.startswith("/") or not target.startswith("/") or how not in ("", "ro", "rw"):
        raise UsageError(f"expected --mount /HOST/PATH:/INSIDE[:ro], but got {text!r}")
    if target in PLACES.values() or target.startswith("/hitchpost"):
        raise UsageError(f"--mount {text}: {target} is used by Hitchpost in the container")
    if not os.path.exists(source):
        raise UsageError(f"--mount {text}: {source} is not there")
    return _mount(source, target, read_only=how == "ro")


def environment(spec: RunSpec, sandbox: Sandbox) -> dict[str, str]:
    """The settings' and those that the person named; nothing else of the caller's is meant for a container."""
    names = {*PASSED_ON, *sandbox.env_names}
    env = {os.fsdecode(name): os.fsdecode(text) for name, text in spec.env.items()}
    env = {name: text for name, text in env.items() if name in names}
    return env | {"HOME": f"{PLACES['shared']}/{HOME}", "PWD": PLACES["workspace"], "TERM": "xterm-256color"}


def shared_folder(session_folder: str) -> str:
    return os.path.join(session_folder, wire.INSIDE)


def _mount(source: str, target: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only}


def _git_mounts(git: GitFolder | None) -> list[dict[str, Any]]:
    """The session's own git folder, in the place of the repository's, and the repository's objects to read."""
    if git is None:
        return []
    mounts = [_mount(git.folder, git.at), _mount(git.objects, git.objects_at, read_only=True)]
    return [*mounts, _mount(git.pointer, f"{PLACES['workspace']}/.git", read_only=True)] if git.pointer else mounts
