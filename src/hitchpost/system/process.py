"""Processes: which one is meant, whether it lives, what is below it, and signals that hit no other.

A process is named for ever by its boot, its pid and its start time.
"""

from __future__ import annotations

import os
from _signal import (
    SIG_DFL,
    SIG_SETMASK,
    SIGHUP,
    SIGINT,
    SIGKILL,
    SIGTERM,
    pidfd_send_signal,
    pthread_sigmask,
    signal,
)

PF_EXITING = 0x4
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GONE = (b"Z", b"X")
CHILDREN_ARE_LISTED = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
READ_BYTES = 1 << 20
SIGNALS = range(1, 65)
_boot: list[str] = []
"""The name of this boot, once it was read: no process outlives it, and the kernel takes long to say it."""


def boot_id() -> str:
    """Names this boot of the machine. ``HITCHPOST_BOOT_ID`` stands in for it where a test plays a reboot."""
    if not _boot:
        _boot.append(read("/proc/sys/kernel/random/boot_id").decode().strip())
    return os.environ.get("HITCHPOST_BOOT_ID") or _boot[0]


def forget_signals() -> None:
    """What this process becomes gets every signal as usual: none is ignored or blocked."""
    for number in SIGNALS:
        try:
            signal(number, SIG_DFL)
        except (OSError, ValueError):
            continue  # SIGKILL, SIGSTOP, and two of the C library
    pthread_sigmask(SIG_SETMASK, ())


def pid_namespace() -> str:
    """Names the set of processes that this one can see."""
    return str(os.stat("/proc/self/ns/pid").st_ino)


def read(path: str) -> bytes:
    """A file of ``/proc`` or ``/sys``, whole. Raises ``OSError`` when its process is gone."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = bytearray()
        while part := os.read(fd, READ_BYTES):
            parts += part
        return bytes(parts)
    finally:
        os.close(fd)


def stat(pid: int) -> list[bytes] | None:
    """``/proc/PID/stat`` from the state letter on; None when there is no such process or it is a zombie's ghost."""
    try:
        text = read(f"/proc/{pid}/stat")
    except OSError:
        return None
    return text[text.rindex(b")") + 2 :].split()


def start_time(pid: int) -> int | None:
    """In clock ticks since boot; None when there is no such process."""
    fields = stat(pid)
    return None if fields is None else int(fields[19])


def parent(pid: int) -> int:
    """0 when there is no such process."""
    fields = stat(pid)
    return 0 if fields is None else int(fields[1])


def terminal(pid: int) -> int:
    """The device number of its controlling terminal; 0 when it has none, or there is no such process."""
    fields = stat(pid)
    return 0 if fields is None else int(fields[4])


def is_alive(pid: int, start: int) -> bool:
    """Whether a process is the same one, and more than its entry in the table."""
    fields = stat(pid)
    return fields is not None and int(fields[19]) == start and fields[0] not in GONE


def is_running(pid: int, start: int) -> bool:
    """Whether a process is the same one and has not begun to end. The first one of a container begins to before the
    kernel ends the others for it, so none of them is ever found dead while this still says yes."""
    fields = stat(pid)
    return fields is not None and int(fields[19]) == start and not int(fields[6]) & PF_EXITING


def has_live_thread(pid: int) -> bool:
    """Whether any thread of ``pid`` is alive: the first one may have ended before the others."""
    fields = stat(pid)
    return fields is not None and (fields[0] not in GONE or int(fields[17]) > 1)


def send(pid: int, number: int) -> bool:
    """Signal one process through a descriptor, so a reused number is never hit between the look and the signal."""
    before = start_time(pid)
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if before is None or start_time(pid) != before:
            return False
        pidfd_send_signal(fd, number)
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


def become_subreaper(on: bool = True) -> None:
    """Orphans below this process become its children. Survives ``exec``, is not inherited by ``fork``."""
    _prctl(PR_SET_CHILD_SUBREAPER, int(on))


def die_with_parent(number: int) -> None:
    """The kernel sends this process ``number`` when its parent ends."""
    _prctl(PR_SET_PDEATHSIG, int(number))


def _prctl(option: int, item: int) -> None:
    from _ctypes import call_function, dlopen, dlsym  # what ctypes itself calls; a tenth of the keeper's start lighter

    whole = dlopen(None, os.RTLD_NOW)  # type: ignore[arg-type]
    call_function(dlsym(whole, "prctl"), (option, item, 0, 0, 0))


def ignores(pid: int, number: int) -> bool:
    try:
        return bool(_signals(pid, b"SigIgn") & _bit(number))
    except OSError:
        return False


def is_dying(pid: int) -> bool:
    """Whether a process is just ending, or a signal waits for it that will end it: a terminal's end sends one."""
    fields = stat(pid)
    if fields is None or int(fields[6]) & PF_EXITING:
        return True
    try:
        waiting = _signals(pid, b"SigPnd") | _signals(pid, b"ShdPnd")
        kept_off = _signals(pid, b"SigIgn") | _signals(pid, b"SigCgt") | _signals(pid, b"SigBlk")
    except OSError:
        return True
    return bool(waiting & ~kept_off & FATAL)


def _signals(pid: int, kind: bytes) -> int:
    """The set of signals that ``/proc/PID/status`` has under this word. Raises ``OSError`` when the process is gone."""
    _, _, rest = read(f"/proc/{pid}/status").partition(kind + b":")
    mask = rest.split(b"\n", 1)[0].strip()
    return int(mask, 16) if mask else 0


def _bit(number: int) -> int:
    return 1 << (number - 1)


FATAL = _bit(SIGHUP) | _bit(SIGINT) | _bit(SIGKILL) | _bit(SIGTERM)


def children(pid: int) -> list[int]:
    """The children of all threads of ``pid``, the dead among them. Where the kernel keeps no list, all are asked."""
    found: list[int] = []
    try:
        if CHILDREN_ARE_LISTED:
            for thread in os.listdir(f"/proc/{pid}/task"):
                found.extend(map(int, read(f"/proc/{pid}/task/{thread}/children").split()))
        else:
            for name in os.listdir("/proc"):
                fields = stat(int(name)) if name.isdigit() else None
                if fields is not None and int(fields[1]) == pid:
                    found.append(int(name))
    except OSError:
        return found
    return found


def below(pid: int) -> list[int]:
    """The live descendants of any process."""
    found: list[int] = []
    todo = children(pid)
    while todo:
        descendant = todo.pop()
        if has_live_thread(descendant):
            found.append(descendant)
        todo.extend(children(descendant))
    return found
