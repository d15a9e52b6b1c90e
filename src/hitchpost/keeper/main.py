"""The keeper's process: take over the locks, start, keep, leave."""

from __future__ import annotations

import os
import sys
import time

from hitchpost import lightjson, wire
from hitchpost.keeper.adopted import Adopted
from hitchpost.keeper.agent import StartFailed
from hitchpost.keeper.boxed import Boxed
from hitchpost.keeper.complaint import complain
from hitchpost.keeper.journal import NotWritten
from hitchpost.keeper.keeper import Keeper
from hitchpost.keeper.pane import Pane
from hitchpost.keeper.spec import Spec, read_spec, receive_spec
from hitchpost.keeper.stopping import ROUND_S
from hitchpost.model import run as runs
from hitchpost.store import files, runfiles
from hitchpost.system import process

LONGEST_ERROR_PAUSE_S = 1.0


def main(argv: list[str]) -> int:
    run_folder, how = argv[1:3]
    if how == wire.IN_PANE:
        _complain_to(os.path.join(run_folder, wire.KEEPER_LOG))
        spec = receive_spec(run_folder)
    else:
        if os.fork():
            os._exit(0)  # the starter waits for this process only; the keeper is nobody's child
        spec = read_spec(int(how))
    handed = (spec.lock_fd, spec.ready_fd, *spec.lease_fds)
    for fd in handed:
        os.set_inheritable(fd, False)
    _close_strays(handed)
    os.ftruncate(spec.lock_fd, 0)
    name = f"{os.getpid()} {process.start_time(os.getpid())} {process.boot_id()} {process.pid_namespace()}\n"
    os.pwrite(spec.lock_fd, name.encode(), 0)
    kind = Boxed if spec.container else Adopted if spec.adopt_pane else Keeper
    keeper = kind(spec, run_folder)
    try:
        keeper.start()
    except (StartFailed, NotWritten, OSError) as error:
        text = f"cannot start the agent: {error}" if isinstance(error, OSError) else str(error)
        if spec.takes_over:
            complain(f"cannot take over: {text}")  # the agent and its run stay as they were
            files.discard(os.path.join(run_folder, wire.SOCKET))
        else:
            _fail_start(keeper, text)
        _say_ready(spec, {"ok": False, "error": text})
        if keeper.pane is not None:
            keeper.pane.close_with_us()
        return 1
    if not spec.takes_over:
        keeper.readiness.began = time.monotonic()
    _say_ready(spec, {"ok": True, "pid": keeper.pid})
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
        leave_pane(keeper, keeper.pane)
    return 0


def leave_pane(keeper: Keeper, pane: Pane) -> None:
    """The run is over and written down; the pane is the user's now. Never returns when there is a shell to become."""
    pane.farewell(keeper.last_words)
    pane.close_with_us()
    for fd in (keeper.spec.lock_fd, *keeper.spec.lease_fds):
        os.close(fd)
    if not pane.lost:
        pane.become_shell()


def _complain_to(path: str) -> None:
    """A pane's error output is on the screen; ours goes to the log."""
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


def _say_ready(spec: Spec, value: dict[str, object]) -> None:
    try:
        files.write_all(spec.ready_fd, lightjson.dumps(value).encode() + b"\n")
    except OSError:
        complain("the starter is gone")
    os.close(spec.ready_fd)


def _fail_start(keeper: Keeper, text: str) -> None:
    """No command ran, or one runs and we cannot say so: end what there is and write the reason."""
    while keeper.pid and keeper.tree.kill():
        keeper.reap()
        time.sleep(ROUND_S)
    keeper.cage.remove()
    ending = runfiles.Ending(error=text, ended_at=files.stamp())
    ending.write(keeper.run_folder)
    keeper.journal.change(runs.FAILED, text, {"error": text})
    runfiles.give_back(keeper.run_folder)
    files.discard(os.path.join(keeper.run_folder, wire.SOCKET))
