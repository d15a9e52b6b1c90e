"""Stands in for the keeper's program, and lets strace in before the keeper's first step.

Started as ``python -I -S traced_keeper.py KEEPER LOG FAULT RUN_FOLDER SPEC_FD``, where KEEPER is the path of the real
program. It makes the fork that the keeper would make to detach itself, so that the traced process is the keeper.
"""

import os
import sys

keeper, log, fault, run_folder, spec = sys.argv[1:]
sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(keeper))))
sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from hitchpost.keeper import main as keeper_main  # noqa: E402


def let_strace_in(pid: int) -> None:
    from pathlib import Path

    from tests.faults.tracing import strace

    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 2)
    # a descriptor that strace held would keep the run's lock after the keeper's death
    os.closerange(3, 1 << 16)
    argv = strace(pid, Path(log), fault if fault != "-" else None)
    os.posix_spawn("/usr/bin/strace", argv, {})


def wait_for_tracer() -> None:
    while True:
        with open("/proc/self/status", "rb") as file:
            if b"TracerPid:\t0\n" not in file.read():
                return
        os.sched_yield()


child = os.fork()
if child:
    let_strace_in(child)
    os._exit(0)
wait_for_tracer()
fork = os.fork


def already_forked() -> int:
    os.fork = fork
    return 0


os.fork = already_forked
sys.exit(keeper_main.main([keeper, run_folder, spec]))
