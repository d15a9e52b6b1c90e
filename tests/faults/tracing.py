"""Faults in the system calls of one process: what it asks of the disk is listed, and any one of it can be hit.

``strace -p`` follows just the process it is given: neither its children nor their children are touched. SIGKILL is
sent when the call is entered, and the kernel then skips the call; an error is returned in its place.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.faults.traced import wait_for_tracer, watch

DISK = (
    "openat,creat,write,pwrite64,writev,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,"
    "mkdirat,rmdir,fsync,fdatasync,ftruncate,truncate,fallocate,chmod,fchmod,bind"
)
KILL = "KILL"
LIMIT_S = 60.0
WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")
LINE = re.compile(r"^(?P<name>\w+)\((?P<arguments>.*)$")


@dataclass(frozen=True, slots=True)
class Call:
    """The ``ordinal``-th system call of that name in a process's life, and the line that strace printed, and where."""

    name: str
    ordinal: int
    line: str
    position: int

    def fault(self, kind: str) -> str:
        """What strace is told, to hit this call with SIGKILL or an error."""
        how = f"signal={kind}" if kind == KILL else f"error={kind}"
        return f"inject={self.name}:{how}:when={self.ordinal}"

    def __str__(self) -> str:
        return f"{self.name} #{self.ordinal}: {self.line[:160]}"


@dataclass(frozen=True, slots=True)
class Done:
    """How a process ended; ``code`` is negative for a signal, None when it had to be ended."""

    code: int | None
    out: str
    err: str


def strace(pid: int, log: Path, fault: str | None = None) -> list[str]:
    words = ["strace", "-qq", "-y", "-s", "64", "-p", str(pid), "-o", str(log), "-e", f"trace={DISK},flock,close"]
    return [*words, "-e", fault] if fault else words


def calls(log: Path, folder: Path) -> list[Call]:
    """The calls that would change something below ``folder``."""
    found = []
    counts: Counter[str] = Counter()
    for position, line in enumerate(log.read_text(errors="replace").splitlines()):
        parts = LINE.match(line)
        if not parts:
            continue
        name = parts["name"]
        counts[name] += 1
        if _touches(line, name, folder):
            found.append(Call(name, counts[name], line, position))
    return found


def hit(log: Path, call: Call, folder: Path) -> bool:
    """Whether the fault came to a call like ``call``, below ``folder``, and not to another."""
    same = [line for line in log.read_text(errors="replace").splitlines() if line.startswith(f"{call.name}(")]
    if len(same) < call.ordinal:
        return False
    return _touches(same[call.ordinal - 1], call.name, folder)


def _touches(line: str, name: str, folder: Path) -> bool:
    if name not in DISK.split(","):
        return False
    if name == "bind":
        return "/proc/self/fd/" in line  # the keeper's socket, by way of its open folder
    return str(folder) in line.partition(" = ")[0] and (name != "openat" or WRITES.search(line) is not None)


def process(deed: Callable[[], int | None], log: Path | None = None, fault: str | None = None) -> Done:
    """Do ``deed`` in a new process, a copy of this one. With ``log``, its system calls are traced, and hit."""
    out, err = os.memfd_create("out"), os.memfd_create("err")
    sys.stdout.flush()
    sys.stderr.flush()
    watched = None if log is None else watch(str(log))
    pid = os.fork()
    if pid == 0:
        _become(deed, out, err, watched)
    tracer = None
    if log is not None and watched is not None:
        os.close(watched)
        tracer = subprocess.Popen(strace(pid, log, fault), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        code = _wait(pid)
        if tracer is not None:
            tracer.wait(LIMIT_S)
        return Done(code, _text(out), _text(err))
    finally:
        os.close(out)
        os.close(err)


def _become(deed: Callable[[], int | None], out: int, err: int, watched: int | None) -> None:
    """In the child: never returns."""
    code: object = 1
    try:
        if watched is not None:
            wait_for_tracer(watched)
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        for old, new in ((null, 0), (out, 1), (err, 2)):
            os.dup2(old, new)
        code = deed()
    except SystemExit as left:
        code = left.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _wait(pid: int) -> int | None:
    descriptor = os.pidfd_open(pid)
    try:
        watch = select.poll()
        watch.register(descriptor, select.POLLIN)
        late = not watch.poll(LIMIT_S * 1000)
        if late:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        return None if late else os.waitstatus_to_exitcode(status)
    finally:
        os.close(descriptor)


def _text(descriptor: int) -> str:
    return os.pread(descriptor, 1 << 20, 0).decode(errors="replace")
