"""Who is at the other end of a Unix socket. Only this user's processes, and root's, that share our process namespace
may speak: a process in a container does not, even where the socket got into it."""

from __future__ import annotations

import os
from _socket import AF_UNIX, SO_PEERCRED, SOCK_STREAM, SOL_SOCKET, socket

from hitchpost.system import process

SO_PEERPIDFD = 77
"""Since Linux 6.5: the peer itself, also when its number was given to another process meanwhile."""


def why_refused(fd: int) -> str:
    """Why the peer of this connection may not speak; empty when it may. What cannot be known is refused."""
    peer = socket(AF_UNIX, SOCK_STREAM, 0, fd)
    try:
        pid, uid = _credentials(peer)
        if uid not in (os.geteuid(), 0):
            return f"it belongs to user {uid}, not to user {os.geteuid()}"
        if pid == 0:  # how the kernel names a process that cannot be seen from here
            return "it is in another process namespace, as in a container"
        try:
            depth = _depth(_pidfd(peer, pid))
            if depth == 0:
                return "its process namespace is not known"
            ours = _depth(os.pidfd_open(os.getpid()))
        except OSError:
            return "its process namespace is not known"
    finally:
        peer.detach()
    return "" if depth == ours else "it is in another process namespace, as in a container"


def pid(fd: int) -> int:
    """The number of the process that made this connection; 0 when it cannot be seen from here."""
    peer = socket(AF_UNIX, SOCK_STREAM, 0, fd)
    try:
        return _credentials(peer)[0]
    finally:
        peer.detach()


def _credentials(peer: socket) -> tuple[int, int]:
    found = peer.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)
    return int.from_bytes(found[:4], "little"), int.from_bytes(found[4:8], "little")


def _pidfd(peer: socket, pid: int) -> int:
    try:
        return int.from_bytes(peer.getsockopt(SOL_SOCKET, SO_PEERPIDFD, 4), "little")
    except OSError:
        return os.pidfd_open(pid)


def _depth(pidfd: int) -> int:
    """In how many namespaces, from that of ``/proc`` on, the process has a number; 0 when it is gone.

    One that we can see is in our namespace or in one below, so an equal depth is the same namespace. The links in
    ``/proc/PID/ns`` would say it too, but not about root's processes to somebody else.
    """
    try:
        text = process.read(f"/proc/self/fdinfo/{pidfd}").decode()
    finally:
        os.close(pidfd)
    numbers = next((line.split()[1:] for line in text.splitlines() if line.startswith("NSpid:")), ["1"])
    return len(numbers) if int(numbers[0]) > 0 else 0
