"""The owner's side of the emulator's processes: starting them, asking them about a screen, and noticing their death."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from importlib.util import find_spec

import hitchpost
from hitchpost import wire
from hitchpost.errors import HitchpostError
from hitchpost.terminal.emulator import frames

START_TIMEOUT_S = 60.0
ANSWER_TIMEOUT_S = 60.0
"""A process that computes too long is ended by the kernel much earlier. This is for one that does not compute."""
NEEDED = ("pyghostty", "cffi", "_cffi_backend", "pycparser")


class NoEmulator(HitchpostError):
    """Raised when no emulator can be had: there is none for this platform, or it does not start."""


class ScreenLost(HitchpostError):
    """Raised when the process of a screen died, did not answer in time, or could not answer."""


class Warm:
    """The process that has loaded the emulator and forks others. May be used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._pid = _spawn(theirs.fileno())
        self._orders.settimeout(START_TIMEOUT_S)

    def order(self, order: bytes, *descriptors: int) -> bytes:
        """Its answer. Raises ``OSError`` when there is none; then it has ended, with all that it forked."""
        with self._lock:
            try:
                try:
                    socket.send_fds(self._orders, [order], descriptors)
                    answer = self._orders.recv(4096)
                except ConnectionError:  # it left before it read the order, and has said why
                    answer = self._orders.recv(4096)
                if answer:
                    return answer
                raise ConnectionResetError("its process has ended")
            except OSError:
                self._end()
                raise

    def close(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        self._orders.close()
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0


class Emulators:
    """Makes screens, each in a process of its own. May be used by several threads.

    Nothing runs before ``start`` or the first screen; all of it ends with the owner.
    """

    def __init__(self) -> None:
        self._lock, self._preparing = threading.Lock(), threading.Lock()
        self._warm: Warm | None = None
        self._spare: EmulatedScreen | None = None
        self._missing = ""

    def __enter__(self) -> Emulators:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> Warm:
        """Begin to load the emulator: the first screen then need not wait for all of it. Raises ``NoEmulator``."""
        with self._lock:
            if self._warm is None:
                try:
                    self._warm = Warm()
                except (FileNotFoundError, PermissionError) as error:
                    raise NoEmulator(f"the emulator does not start: {error}") from None
            return self._warm

    def prepare(self) -> None:
        """Have a process ready for the next screen: a new one is slow until it has touched its memory once.

        Raises ``NoEmulator`` or ``ScreenLost``.
        """
        if self._preparing.acquire(blocking=False):
            try:
                if self._spare is None:
                    spare = self._fork(80, 24)
                    spare.snapshot()
                    self._spare = spare
            finally:
                self._preparing.release()

    def open(self, cols: int, rows: int) -> EmulatedScreen:
        """Raises ``NoEmulator``."""
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is not None:
            try:
                spare.resize(cols, rows)
                return spare
            except ScreenLost:
                pass  # it was of no use to anybody yet
        return self._fork(cols, rows)

    def _fork(self, cols: int, rows: int) -> EmulatedScreen:
        for tries_left in (1, 0):
            if self._missing:
                break
            warm = self.start()
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    answer = warm.order(frames.FORK + frames.pack(cols, rows), theirs.fileno())
            except OSError as error:
                ours.close()
                with self._lock:
                    self._warm = None if self._warm is warm else self._warm
                if not tries_left:
                    raise NoEmulator(f"the emulator does not start: {error}") from None
                continue
            if not answer.startswith(frames.NO_EMULATOR):
                return EmulatedScreen(warm, ours, int(answer), cols, rows)
            ours.close()
            self._missing = answer[1:].decode(errors="replace")
        raise NoEmulator(self._missing)

    def close(self) -> None:
        with self._lock:
            if self._spare is not None:
                self._spare.close()
            if self._warm is not None:
                self._warm.close()
            self._spare = self._warm = None


def _spawn(orders_fd: int) -> int:
    """Start the warm process: of all that the owner has, it gets one socket."""
    folders: dict[str, None] = {}
    for name in NEEDED:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            is_package = spec.submodule_search_locations is not None
            folders[os.path.dirname(os.path.dirname(spec.origin) if is_package else spec.origin)] = None
    package = os.path.dirname(os.path.abspath(hitchpost.__file__))
    program = os.path.join(package, "terminal", "emulator", "__main__.py")
    argv = [os.path.realpath(sys.executable), "-I", "-S", program, str(orders_fd), *map(os.path.abspath, folders)]
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, null, number) for number in range(3)]
        # a duplicate onto itself is inherited, without ever being inheritable to what another thread starts
        actions.append((os.POSIX_SPAWN_DUP2, orders_fd, orders_fd))
        return os.posix_spawn(argv[0], argv, {}, file_actions=actions, setsid=True)
    finally:
        os.close(null)


class EmulatedScreen:
    """A ``Screen`` in a process of its own. Every call raises ``ScreenLost`` when that process is of no more use."""

    can_paint = True

    def __init__(self, warm: Warm, sock: socket.socket, pid: int, cols: int, rows: int) -> None:
        self.cols, self.rows = cols, rows
        self.pid = pid
        self._warm, self._socket = warm, sock
        self._ended = ""

    def feed(self, data: bytes) -> None:
        for at in range(0, len(data), frames.MOST_FEED_BYTES):
            self._send(frames.FEED, data[at : at + frames.MOST_FEED_BYTES])

    def resize(self, cols: int, rows: int) -> None:
        self.cols, self.rows = cols, rows
        self._send(frames.RESIZE, frames.pack(cols, rows))

    def snapshot(self, *, history: bool = True) -> bytes:
        return self._ask(frames.SNAPSHOT, bytes([history]))

    def lines(self, left: int, top: int, cols: int, rows: int) -> list[bytes]:
        return frames.unpack_lines(self._ask(frames.LINES, frames.pack(left, top, cols, rows)))

    def text(self, *, unwrap: bool = False) -> str:
        return self._ask(frames.TEXT, bytes([unwrap])).decode("utf-8", "replace")

    def cursor(self) -> tuple[int, int]:
        column, row = frames.unpack(self._ask(frames.CURSOR))
        return column, row

    def alternate(self) -> bool:
        return self._ask(frames.ALTERNATE) == b"\1"

    def input_modes(self) -> bytes:
        return self._ask(frames.INPUT_MODES)

    def close(self) -> None:
        self._end()

    def memory_bytes(self) -> int:
        """What its process takes, what it shares with others not counted."""
        try:
            with open(f"/proc/{self.pid}/statm") as file:
                _, resident, shared, *_ = map(int, file.read().split())
        except OSError:
            return 0
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")

    def _send(self, kind: bytes, payload: bytes) -> None:
        try:
            self._socket.settimeout(ANSWER_TIMEOUT_S)
            self._socket.sendall(wire.frame(kind, payload))
        except TimeoutError:
            raise self._lost("it hangs") from None
        except OSError:
            raise self._lost("") from None

    def _ask(self, kind: bytes, payload: bytes = b"") -> bytes:
        self._send(kind, payload)
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        header = self._read(wire.HEADER_BYTES, deadline)
        size = int.from_bytes(header[:4], "big")
        if size > frames.MOST_ANSWER_BYTES:
            raise self._lost(f"its answer has {size} bytes")
        answer = self._read(size, deadline)
        if header[4:] != frames.GOOD:
            raise self._lost(answer[:200].decode("utf-8", "replace"))
        return answer

    def _read(self, size: int, deadline: float) -> bytes:
        buffer = bytearray(size)
        view = memoryview(buffer)
        while view:
            left_s = deadline - time.monotonic()
            try:
                self._socket.settimeout(max(left_s, 0.001))
                got = self._socket.recv_into(view)
            except TimeoutError:
                raise self._lost("it hangs") from None
            except OSError:
                got = 0
            if not got:
                raise self._lost("")
            view = view[got:]
        return bytes(buffer)

    def _lost(self, why: str) -> ScreenLost:
        """``why``, unless it died: then how."""
        self._end()
        return ScreenLost(why or self._ended)

    def _end(self) -> None:
        """End the process, once: its number may soon be another's. How it ended says whether it had before."""
        if self._ended:
            return
        self._socket.close()
        try:
            code = int(self._warm.order(frames.END + b"%d" % self.pid))
        except OSError:
            self._ended = "all emulators are gone"
            return
        self._ended = f"it died of signal {-code}" if code < 0 else f"it ended with code {code}"
        if code == -signal.SIGXCPU:
            self._ended = "it computed for too long"
