"""Starting the agent: a session leader on a new PTY, in exactly the folder that was meant."""

from __future__ import annotations

import errno
import fcntl
import os
import termios
from _signal import SIG_DFL, SIG_SETMASK, SIGKILL, pthread_sigmask, signal
from ctypes import CDLL

from hitchpost.errors import HitchpostError
from hitchpost.keeper.spec import Spec
from hitchpost.system.cgroup import ControlGroups

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
IUTF8 = 0o40000
SIGNALS = range(1, 65)
OOM_SCORE = b"300"

libc = CDLL(None, use_errno=True)


class StartFailed(HitchpostError):
    """Raised when the agent could not be started. The text says which program or folder, and why."""


def become_subreaper() -> None:
    """Orphans below this process become its children. Survives ``exec``, is not inherited by ``fork``."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def set_size(fd: int, cols: int, rows: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, rows.to_bytes(2, "little") + cols.to_bytes(2, "little") + bytes(4))


def open_folder(spec: Spec) -> int:
    """The working folder, opened, and checked to be the one that was meant."""
    try:
        fd = os.open(spec.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.stat(os.path.join(spec.folder, "."))  # a folder that may be read and not entered
    except OSError as error:
        raise StartFailed(f"cannot enter the folder {spec.folder}: {os.strerror(error.errno or 0)}") from None
    here = os.fstat(fd)
    if (here.st_dev, here.st_ino) != (spec.folder_dev, spec.folder_ino):
        os.close(fd)
        raise StartFailed(f"{spec.folder} is another folder than the one that the session was created in")
    return fd


def start(spec: Spec, cage: ControlGroups) -> tuple[int, int, int]:
    """Start the agent. Returns its pid, the PTY's master side, which does not block, and its slave side.

    While the slave side stays open here, an agent that closes its terminal for a while does not lose it.
    """
    folder = open_folder(spec)
    master, slave = os.openpty()
    report, result = os.pipe()
    try:
        attributes = termios.tcgetattr(slave)
        attributes[0] |= IUTF8
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        set_size(master, spec.cols, spec.rows)
        keeper = os.getpid()
        pid = os.fork()
        if pid == 0:
            _become_agent(spec, cage, keeper, folder, slave, result)
        os.close(result)
        result = -1
        failure = os.read(report, 16)
        if failure:
            os.waitpid(pid, 0)
            raise StartFailed(_failure_text(spec, int(failure)))
    except BaseException:
        os.close(master)
        os.close(slave)
        raise
    finally:
        for fd in (folder, report, result):
            if fd >= 0:
                os.close(fd)
    os.set_blocking(master, False)
    return pid, master, slave


def _become_agent(spec: Spec, cage: ControlGroups, keeper: int, folder: int, slave: int, result: int) -> None:
    """In the child: never returns."""
    try:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for fd in (0, 1, 2):
            os.dup2(slave, fd)
        cage.enter()
        _prefer_for_oom()
        libc.prctl(PR_SET_PDEATHSIG, int(SIGKILL), 0, 0, 0)
        if os.getppid() != keeper:
            os._exit(127)
        for number in SIGNALS:
            try:
                signal(number, SIG_DFL)
            except (OSError, ValueError):
                continue
        pthread_sigmask(SIG_SETMASK, ())
        os.fchdir(folder)
        _exec(spec)
    except OSError as error:
        os.write(result, str(error.errno).encode())
    finally:
        os._exit(127)


def _prefer_for_oom() -> None:
    """When memory runs out, the kernel takes an agent before it takes a keeper."""
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(fd, OOM_SCORE)
        os.close(fd)
    except OSError:
        return


def _exec(spec: Spec) -> None:
    """Replace this process. Raises ``OSError`` with the most telling reason when no candidate could be executed."""
    program = spec.argv[0]
    if b"/" in program:
        os.execve(program, spec.argv, spec.env)
    telling = OSError(errno.ENOENT, "")
    for place in spec.env.get(b"PATH", b"/usr/local/bin:/usr/bin:/bin").split(b":"):
        try:
            os.execve(os.path.join(place or b".", program), spec.argv, spec.env)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                telling = error
    raise telling


def _failure_text(spec: Spec, number: int) -> str:
    program = os.fsdecode(spec.argv[0])
    if number == errno.ENOENT:
        if "/" in program and os.path.isfile(os.path.join(spec.folder, program)):
            return f"the interpreter named in the first line was not found: {program}"
        where = "" if "/" in program else " on PATH"
        return f"program not found{where}: {program}"
    if number == errno.EACCES:
        return f"program is not executable: {program}"
    if number == errno.ENOEXEC:
        return f"program is in no format that can be executed (a script without a first line #!…?): {program}"
    return f"cannot execute {program}: {os.strerror(number)}"
