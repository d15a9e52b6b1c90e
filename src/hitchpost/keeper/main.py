"""The keeper's process: take over the locks, start, keep, leave."""

from __future__ import annotations

import gc
import os
import sys
import time
from _socket import AF_UNIX, CMSG_SPACE, MSG_CMSG_CLOEXEC, SOCK_STREAM, socket

from hitchpost import lightjson, wire
from hitchpost.errors import FAILURES
from hitchpost.keeper import own_log
from hitchpost.keeper.keeper import Keeper
from hitchpost.runspec import RunSpec
from hitchpost.store import files
from hitchpost.system import cgroup, process
from hitchpost.system.shortpath import ShortPath
from hitchpost.values import replace

LONGEST_ERROR_PAUSE_S = 1.0
MOST_FDS = 64


def main(argv: list[str]) -> int:
    run_folder, how = argv[1:3]
    if how == wire.IN_PANE:
        _log_to(os.path.join(run_folder, wire.KEEPER_LOG))
        spec = receive_spec(find_starter(run_folder))
    else:
        spec = receive_spec(socket(AF_UNIX, SOCK_STREAM, 0, int(how)))
    if spec is None:
        return 0  # there is no run to keep
    handed = (spec.lock_fd, spec.ready_fd, *spec.lease_fds)
    for fd in handed:
        os.set_inheritable(fd, False)
    _close_strays(handed)
    os.ftruncate(spec.lock_fd, 0)
    pid = os.getpid()
    name = f"{pid} {process.start_time(pid)} {process.boot_id()} {process.pid_namespace()}\n"
    os.pwrite(spec.lock_fd, name.encode(), 0)
    process.become_subreaper()
    cgroup.leave_foreign_group()
    keeper = Keeper(spec, run_folder)
    try:
        _log_to(os.path.join(run_folder, wire.KEEPER_LOG))  # there may have been no folder when this process began
        keeper.start()
    except FAILURES as error:
        text = f"cannot start the agent: {_why(error)}" if isinstance(error, OSError) else str(error)
        if spec.takes_over:
            own_log.note(f"cannot take over: {text}")  # the agent and its run stay as they were
            files.discard(os.path.join(run_folder, wire.SOCKET))
        else:
            keeper.fail(text)
        _say_ready(spec, {"ok": False, "error": text})
        if keeper.pane is not None:
            keeper.pane.close_with_us()
        return 1
    if not spec.takes_over:
        keeper.readiness.began = time.monotonic()
    _say_ready(spec, {"ok": True, "pid": keeper.pid})
    gc.freeze()
    gc.enable()
    pause_s = 0.01
    while not keeper.done:
        try:
            keeper.keep()
        except Exception:
            # an error in one event must not end the agent; it is told, and the next event is taken
            sys.excepthook(*sys.exc_info())
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_ERROR_PAUSE_S)
    if keeper.pane is not None:
        keeper.pane.leave(keeper.last_words)
    return 0


def read_spec(fd: int) -> RunSpec:
    """Read the spec and close its descriptor."""
    parts = bytearray()
    os.lseek(fd, 0, os.SEEK_SET)
    while part := os.read(fd, 1 << 20):
        parts += part
    os.close(fd)
    return RunSpec.from_bytes(bytes(parts))


def find_starter(run_folder: str) -> socket:
    """A pane inherits nothing: the starter waits at a socket of its own."""
    starter = socket(AF_UNIX, SOCK_STREAM, 0)
    with ShortPath(run_folder, wire.START_SOCKET) as path:
        starter.connect(path)
    return starter


def receive_spec(starter: socket) -> RunSpec | None:
    """The spec, when there is a run. Descriptors come with it. None when the starter is gone, or needs no keeper."""
    try:
        word, messages, _, _ = starter.recvmsg(1, CMSG_SPACE(4 * MOST_FDS), MSG_CMSG_CLOEXEC)
    finally:
        starter.close()
    if not word:
        return None
    fds = [int.from_bytes(data[at : at + 4], "little") for _, _, data in messages for at in range(0, len(data), 4)]
    if len(fds) < 3:
        raise ValueError(f"expected the spec, the lock and the answer's pipe, but got {len(fds)} descriptors")
    return replace(read_spec(fds[0]), lock_fd=fds[1], ready_fd=fds[2], lease_fds=tuple(fds[3:]))


def _log_to(path: str) -> None:
    """Our error output goes to our log: that of a pane is on the screen, that of a keeper started ahead nowhere."""
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    os.dup2(log, 2)
    os.close(log)


def _close_strays(handed: tuple[int, ...]) -> None:
    """What the starter's own caller left open is not ours to hold, and must not reach the agent."""
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd > 2 and fd not in handed:
            try:
                os.close(fd)
            except OSError:
                continue  # the listing's own


def _say_ready(spec: RunSpec, value: dict[str, object]) -> None:
    try:
        files.write_all(spec.ready_fd, lightjson.dumps(value).encode() + b"\n")
    except OSError:
        own_log.note("the starter is gone")
    os.close(spec.ready_fd)


def _why(error: OSError) -> str:
    """In words, without the number."""
    if error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"
