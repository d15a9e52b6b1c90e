"""Stands in for the keeper's program, and lets strace in before the keeper's first step.

Started as ``python -I -S traced_keeper.py KEEPER LOG FAULT RUN_FOLDER CHANNEL``, where KEEPER is the path of the real
program. It makes the fork that the keeper's program makes to detach itself, so that the traced process is the keeper.
"""

import os
import sys

keeper, log, fault, run_folder, channel = sys.argv[1:]
sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(keeper))))
sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from hitchpost.keeper import main as keeper_main  # noqa: E402
from tests.faults.traced import wait_for_tracer, watch  # noqa: E402


def let_strace_in(pid: int) -> None:
    from pathlib import Path

    from tests.faults.tracing import strace

    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 2)
    # a descriptor that strace held would keep the run's lock after the keeper's death
    os.closerange(3, 1 << 16)
    argv = strace(pid, Path(log), fault if fault != "-" else None)
    os.posix_spawn("/usr/bin/strace", argv, {})


watched = watch(log)
child = os.fork()
if child:
    let_strace_in(child)
    os._exit(0)
wait_for_tracer(watched)
sys.exit(keeper_main.main([keeper, run_folder, channel]))
