"""A keeper's process: it is started, waits for its run, and is given it.

It may be started ahead of its run, and loads its code while the run's record is written. The command line does that
first of all, so this module imports nothing slow.
"""

from __future__ import annotations

import errno
import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket, socketpair

from hitchpost import wire

PASSED_ON = ("LANG", "LC_ALL", "HITCHPOST_BOOT_ID", "HITCHPOST_TIER")
"""All that a keeper has of its starter's environment."""


def program() -> list[str]:
    import hitchpost

    package = os.path.dirname(os.path.abspath(hitchpost.__file__))
    return [os.path.realpath(sys.executable), "-I", "-S", os.path.join(package, "keeper", "__main__.py")]


class Waiting:
    """A keeper that waits for the run in ``folder``, which need not be there yet. It ends by itself when it is given
    none: when this process ends, or dismisses it. Until it is given the run's lock, nobody takes it for a keeper."""

    def __init__(self, folder: str, *, ahead: bool = False) -> None:
        """Start it with no descriptor but its own. It detaches itself. Raises ``OSError``.

        One that is ``ahead`` of its run writes nothing into the folder: nobody has looked yet whose that is.
        """
        self._channel, theirs = socketpair(AF_UNIX, SOCK_STREAM)
        channel = theirs.fileno()
        argv = [*program(), folder, str(channel)]
        env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        env[wire.KEEPER_MARK] = folder
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        log = -1
        try:
            log = -1 if ahead else _log(folder)
            if channel <= 2:
                raise OSError(errno.EBADF, "standard descriptors are closed")
            # a duplicate onto itself is inherited, without ever being inheritable to what another thread starts
            places = ((null, 0), (null, 1), (null if log < 0 else log, 2), (channel, channel))
            actions = [(os.POSIX_SPAWN_DUP2, old, new) for old, new in places]
            self._pid = os.posix_spawn(argv[0], argv, env, file_actions=actions, setsid=True)
        except BaseException:
            self._channel.close()
            raise
        finally:
            theirs.close()
            for fd in (null, log):
                if fd >= 0:
                    os.close(fd)

    def give(self, fds: tuple[int, ...]) -> bool:
        """Give it its run; False when it is gone."""
        try:
            send_descriptors(self._channel, fds)
        except (BrokenPipeError, ConnectionResetError):
            return False
        finally:
            self.dismiss()
        return True

    def dismiss(self) -> None:
        self._channel.close()
        os.waitpid(self._pid, 0)  # it was there to detach the keeper


_ahead: dict[str, Waiting] = {}


class Ahead:
    """Within it, the keeper of the run that is to be made in ``folder`` is started already, once.

    One that cannot be started yet is started when its run is there, and one that has got no run is dismissed.
    """

    def __init__(self, folder: str, *, wanted: bool = True) -> None:
        self.folder, self.wanted = folder, wanted
        self._is_ours = False

    def __enter__(self) -> None:
        if self.wanted and self.folder not in _ahead:
            try:
                waiting = Waiting(self.folder, ahead=True)
            except OSError:
                return
            self._is_ours = _ahead.setdefault(self.folder, waiting) is waiting
            if not self._is_ours:
                waiting.dismiss()  # another thread was faster

    def __exit__(self, *_: object) -> None:
        if self._is_ours and (waiting := _ahead.pop(self.folder, None)):
            waiting.dismiss()


def give_run(folder: str, fds: tuple[int, ...]) -> None:
    """Give the run in ``folder`` to a keeper, as descriptors of its spec, its lock, the answer's pipe and its leases.

    Raises ``OSError``.
    """
    waiting = _ahead.pop(folder, None)
    if waiting is None or not waiting.give(fds):
        Waiting(folder).give(fds)


def send_descriptors(channel: socket, fds: tuple[int, ...]) -> None:
    channel.sendmsg([b"!"], [(SOL_SOCKET, SCM_RIGHTS, b"".join(fd.to_bytes(4, "little") for fd in fds))])


def _log(folder: str) -> int:
    """The keeper's own log; -1 while there is no such folder."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(f"{folder}/{wire.KEEPER_LOG}", flags, 0o600)
    except FileNotFoundError:
        return -1
