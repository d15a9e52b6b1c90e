"""The keeper's process: take over the locks, start, keep, leave."""

from __future__ import annotations

import os
import sys
import time

from hitchpost import lightjson, wire
from hitchpost.keeper.agent import StartFailed
from hitchpost.keeper.complaint import complain
from hitchpost.keeper.ending import Ending
from hitchpost.keeper.journal import NotWritten
from hitchpost.keeper.keeper import Keeper
from hitchpost.keeper.spec import Spec, read_spec
from hitchpost.keeper.stopping import ROUND_S
from hitchpost.model import run as runs
from hitchpost.state import files

LONGEST_ERROR_PAUSE_S = 1.0


def main(argv: list[str]) -> int:
    if os.fork():
        os._exit(0)  # the starter waits for this process only; the keeper is nobody's child
    run_folder, spec_fd = argv[1], int(argv[2])
    spec = read_spec(spec_fd)
    handed = (spec.lock_fd, spec.ready_fd, *spec.lease_fds)
    for fd in handed:
        os.set_inheritable(fd, False)
    _close_strays(handed)
    os.ftruncate(spec.lock_fd, 0)
    os.pwrite(spec.lock_fd, f"{os.getpid()} {files.process_start(os.getpid())} {files.boot_id()}\n".encode(), 0)
    keeper = Keeper(spec, run_folder)
    try:
        keeper.start()
    except (StartFailed, NotWritten, OSError) as error:
        text = f"cannot start the agent: {error}" if isinstance(error, OSError) else str(error)
        _fail_start(keeper, text)
        _say_ready(spec, {"ok": False, "error": text})
        return 1
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
    return 0


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
    ending = Ending(error=text, ended_at=files.stamp())
    ending.write(keeper.run_folder)
    keeper.journal.change(runs.FAILED, text, {"error": text})
    keeper.journal.give_back()
    files.discard(os.path.join(keeper.run_folder, wire.SOCKET))
