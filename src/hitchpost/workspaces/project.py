"""``.hitchpost.toml``: the commands with which a repository sets its worktrees up and takes them down."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
import tomllib

from hitchpost.errors import MALFORMED, BadSettings, SetupFailed
from hitchpost.store import files
from hitchpost.values import value
from hitchpost.workspaces import container_writes, git, lease, store, trust
from hitchpost.workspaces.git import Progress, silent
from hitchpost.workspaces.store import SETUP_LOG, Workspace

FILE = ".hitchpost.toml"
LIMIT_S = 3600.0
PROGRESS_EVERY_S = 1.0
MOST_BYTES = 16 << 20
BETWEEN = r"[\s;&|=:,'\"()<>`$]+"

Commands = tuple[tuple[str, ...], ...]


@value
class Project:
    """What the file says. ``content`` is what is trusted: its bytes, and the files of the folder that it names."""

    content: bytes
    setup: Commands = ()
    teardown: Commands = ()
    named: tuple[str, ...] = ()


def read(folder: str) -> Project | None:
    """The file in ``folder``; None when there is none. Raises ``BadSettings``."""
    path = os.path.join(folder, FILE)
    try:
        content = files.read_bytes(path, MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadSettings(f"cannot read {path}: {os.strerror(error.errno or 0).lower()}") from None
    try:
        table = tomllib.loads(content.decode())
    except MALFORMED as error:
        raise BadSettings(f"cannot read {path}: {error}") from None
    table = table.get("workspace", {})
    if not isinstance(table, dict):
        raise BadSettings(f"{path}: expected workspace to be a table")
    setup, teardown = _commands(path, table, "setup"), _commands(path, table, "teardown")
    named = _named(folder, (*setup, *teardown))
    parts = [b"\0".join((os.fsencode(name), trust.digest(_script(folder, name)).encode())) for name in named]
    return Project(b"\0".join((content, *parts)), setup, teardown, named)


def _named(folder: str, commands: Commands) -> tuple[str, ...]:
    """The files below ``folder`` that the commands name, in whatever way."""
    pieces = {piece for argv in commands for word in argv for piece in (word, *re.split(BETWEEN, word)) if piece}
    paths = {os.path.normpath(os.path.join(folder, piece)) for piece in pieces if "\0" not in piece}
    below = os.path.join(folder, "")
    there = [path for path in paths if path.startswith(below) and os.path.lexists(path) and not os.path.isdir(path)]
    return tuple(sorted(path.removeprefix(below) for path in there))


def _script(folder: str, name: str) -> bytes:
    path = os.path.join(folder, name)
    try:
        return files.read_bytes(path, MOST_BYTES, follow=True)
    except OSError as error:
        raise BadSettings(f"cannot read {path}, which {FILE} names: {error.strerror or error}") from None


def _commands(path: str, table: dict[str, object], key: str) -> Commands:
    told = table.get(key, [])
    if not isinstance(told, list):
        raise BadSettings(f"{path}: expected {key} to be a list of commands, but got {told!r}")
    found = []
    for command in told:
        try:
            words = shlex.split(command) if isinstance(command, str) else command
        except ValueError as error:
            raise BadSettings(f"{path}: cannot split {command!r} of {key}: {error}") from None
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            raise BadSettings(
                f"{path}: expected a command of {key} to be a text or a list of texts, but got {command!r}"
            )
        found.append(tuple(words))
    return tuple(found)


def set_up(home: str, workspace: Workspace, progress: Progress = silent) -> tuple[Workspace, list[str]]:
    """Run the setup commands, once, as the workspace's writer; what a person should know.

    Raises ``SetupFailed``, ``WorkspaceBusy`` or ``BadSettings``. What has failed is tried again the next time.
    """
    if workspace.setup_done or not workspace.managed:
        return workspace, []
    project = read(workspace.path)
    if project is not None and project.setup and (why := _not_ours(home, workspace, "setup")):
        return workspace, [why]
    if project is not None and project.setup:
        if not trust.is_trusted(home, workspace.repo or "", project.content):
            return workspace, [_untrusted(workspace, "setup")]
        held = lease.take(home, workspace, session="", name=f"its setup (process {os.getpid()})")
        try:
            _run_all(home, workspace, "setup", project.setup, progress)
        finally:
            os.close(held)
    with store.lock(home, workspace.id):
        return store.changed(home, workspace, setup_done=True), []


def take_down(home: str, workspace: Workspace, progress: Progress = silent) -> list[str]:
    """Run the teardown commands. The caller sees to it that nobody works there."""
    project = read(workspace.path)
    if project is None or not project.teardown:
        return []
    if why := _not_ours(home, workspace, "teardown"):
        return [why]
    if not trust.is_trusted(home, workspace.repo or "", project.content):
        return [_untrusted(workspace, "teardown")]
    _run_all(home, workspace, "teardown", project.teardown, progress)
    return []


def _not_ours(home: str, workspace: Workspace, kind: str) -> str:
    """Why commands are not run here: an agent in a container may have written what they run. Empty when none has."""
    if workspace.contained:
        who = "an agent in a container may have changed what it runs"
        return f"the {kind} of {FILE} was not run: {who}; run it yourself"
    made = container_writes.made_inside(home, workspace.repo or "", store.tree(home, workspace).head().commit)
    if made is None:
        return ""
    todo = f"look at it, then hitch workspace trust {workspace.word}"
    return f"the {kind} of {FILE} was not run: an agent in a container made commit {made[:12]}; {todo}"


def _untrusted(workspace: Workspace, kind: str) -> str:
    todo = f"look at it with hitch workspace trust {workspace.word}"
    return f"the {kind} of {FILE} was not run: it is not trusted; {todo}"


def _run_all(home: str, workspace: Workspace, kind: str, commands: Commands, progress: Progress) -> None:
    log = os.path.join(store.folder_of(home, workspace.id), SETUP_LOG)
    env = git.environment() | {
        "PWD": workspace.path,
        "HITCHPOST_WORKSPACE": workspace.path,
        "HITCHPOST_BRANCH": workspace.branch or "",
        "HITCHPOST_REPOSITORY": workspace.repo or "",
    }
    for argv in commands:
        how = _run(argv, workspace.path, env, log, progress)
        if how:
            raise SetupFailed(kind, shlex.join(argv), how, log)


def _run(argv: tuple[str, ...], folder: str, env: dict[str, str], log: str, progress: Progress) -> str:
    """Run one command to its end; how it failed, or nothing."""
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        files.write_all(fd, f"$ {shlex.join(argv)}\n".encode("utf-8", "surrogateescape"))
        process = subprocess.Popen(
            argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=fd, stderr=fd, start_new_session=True
        )
    except OSError as error:
        return f"cannot be started ({os.strerror(error.errno or 0).lower()})"
    finally:
        os.close(fd)
    began = time.monotonic()
    try:
        while True:
            try:
                code = process.wait(PROGRESS_EVERY_S)
                break
            except subprocess.TimeoutExpired:
                waited_s = time.monotonic() - began
            if waited_s > LIMIT_S:
                _kill(process)
                return f"did not end within {LIMIT_S:g} s"
            progress(waited_s)
    except BaseException:
        _kill(process)
        raise
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"exited with code {code}" if code else ""


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the command and what it started in its group."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
