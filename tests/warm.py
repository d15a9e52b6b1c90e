"""Hubs and commands that are there at once: a process that has imported everything forks one whenever a test wants one.

A hub takes a second of a core to start, its emulator a third of one, a command a tenth, nearly all of it for importing.
What runs in the fork is the same code, in a process of its own. Starts with another loader, locale or wrapper, and
those whose cost is looked at, are made from nothing; so are the hubs of ``hitch up``.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import resource
import runpy
import secrets
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from tests.support import BEFORE, LASTING

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLD = ("PYTHON", "LD_", "LC_", "LANG", "TZ")
"""Variables that a process reads only when it starts begin with these."""
LATER = (
    "uvloop",
    "aiodocker",
    "pydantic.v1",
    "uvicorn.protocols.http.h11_impl",
    "uvicorn.protocols.http.httptools_impl",
)
"""Modules that a hub imports only while it starts."""
PACKAGES = (
    "agents",
    "cli",
    "fleet",
    "hub",
    "keeper",
    "model",
    "ops",
    "pod",
    "runtimes",
    "store",
    "system",
    "terminal",
    "tui",
    "workspaces",
)
READY: list[str] = []
"""The emulator's program, once all that it needs is loaded."""
LIMITS = [value for name, value in vars(resource).items() if name.startswith("RLIMIT_")]


LONGEST_LOOK_S = 0.1
"""How long one thread may wait for the end of a process before another one that asks has its turn."""


class WarmProcess:
    """A forked process, with what a ``subprocess.Popen`` has."""

    def __init__(self, told: int) -> None:
        self.returncode: int | None = None
        self._told = told
        self._text = b""
        self._asking = threading.Lock()
        """Two threads that ask at once would both close the pipe, and the second one whatever has its number then."""
        while b"\n" not in self._text:
            self._read()
        self.pid = int(self._text.split(b"\n")[0])

    def _read(self) -> None:
        chunk = os.read(self._told, 100)
        if not chunk:
            os.close(self._told)
            raise RuntimeError("the process that forks others has gone")
        self._text += chunk

    def poll(self, wait_s: float = 0) -> int | None:
        with self._asking:
            while self.returncode is None:
                if self._text.count(b"\n") == 2:
                    self.returncode = int(self._text.split(b"\n")[1])
                    os.close(self._told)
                elif select.select([self._told], [], [], wait_s)[0]:
                    self._read()
                else:
                    break
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        left = LONGEST_LOOK_S
        while self.poll(min(left, LONGEST_LOOK_S)) is None:
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def forget(self) -> None:
        """It goes on, and nobody here will ask for its end."""
        os.close(self._told)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it may end in this very moment
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


Process = WarmProcess | subprocess.Popen[bytes]
Standard = tuple[int, int, int]


START_ENV = {name: value for name, value in BEFORE.items() if name.startswith(COLD)}
SHARED = "PYTEST_WARM"
"""Names the process that all workers of a run share: each would take two seconds of a core for its own."""
_begun: list[subprocess.Popen[bytes]] = []


def share() -> None:
    """Begin the process for the workers that this one starts. It ends with this one."""
    os.environ[SHARED] = _begin()


def _begin() -> str:
    name = f"hitchpost-tests-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(f"\0{name}")
        door.listen(64)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.warm", str(door.fileno())],
            pass_fds=[door.fileno()],
            cwd=ROOT,
            env={"PATH": BEFORE["PATH"], **START_ENV},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
    _begun.append(process)
    assert process.stdin is not None
    assert process.stdout is not None
    LASTING.update((process.stdin.fileno(), process.stdout.fileno()))
    return name


class Stable:
    """Where the forks come from."""

    def __init__(self) -> None:
        self._ours = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        LASTING.add(self._ours.fileno())
        self._ours.connect(f"\0{BEFORE.get(SHARED) or _begin()}")

    def takes(self, env: dict[str, str]) -> bool:
        return {name: value for name, value in env.items() if name.startswith(COLD)} == START_ENV

    def start(
        self, module: str, argv: list[str], env: dict[str, str], cwd: str, standard: Standard, session: bool
    ) -> WarmProcess:
        told, tell = os.pipe()
        limits = {str(number): resource.getrlimit(number) for number in LIMITS}
        order = {"module": module, "argv": argv, "env": env, "cwd": cwd, "session": session}
        order |= {"umask": _umask(), "limits": limits}
        try:
            socket.send_fds(self._ours, [json.dumps(order).encode()], [*standard, tell])
        finally:
            os.close(tell)
        return WarmProcess(told)


_stable: list[Stable] = []


def spawn(
    module: str,
    argv: Sequence[str],
    env: dict[str, str],
    standard: Standard,
    *,
    cwd: str | os.PathLike[str] = os.curdir,
    session: bool = False,
    wrapper: Sequence[str] = (),
    warm: bool = True,
) -> Process:
    """Start ``python -m MODULE ARGV`` with this standard input, output and error.

    ``session``: in a session of its own, whose terminal is its standard input, if that is one. ``wrapper`` is a command
    that becomes the one behind it.
    """
    if not _stable:
        _stable.append(Stable())
    if warm and not wrapper and _stable[0].takes(env):
        return _stable[0].start(module, list(argv), env, os.path.abspath(cwd), standard, session)
    stdin, stdout, stderr = standard
    return subprocess.Popen(
        [*wrapper, sys.executable, "-m", module, *argv],
        env=env,
        cwd=cwd,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=session,
        preexec_fn=_take_terminal if session and os.isatty(stdin) else None,
    )


def call(
    argv: Sequence[str],
    stdin: bytes,
    env: dict[str, str],
    cwd: str | os.PathLike[str],
    timeout_s: float,
    module: str = "hitchpost",
) -> tuple[int, bytes, bytes]:
    """``python -m MODULE ARGV`` to its end, and until nobody holds its output any more: exit code, output and errors.

    Raises ``subprocess.TimeoutExpired``.
    """
    (theirs_in, feed), (out, theirs_out), (err, theirs_err) = (os.pipe() for _ in range(3))
    try:
        os.write(feed, stdin)
        process = spawn(module, argv, env, (theirs_in, theirs_out, theirs_err), cwd=cwd)
    finally:
        for fd in (theirs_in, feed, theirs_out, theirs_err):
            os.close(fd)
    texts: dict[int, bytes] = {out: b"", err: b""}
    still = {out, err}
    deadline = time.monotonic() + timeout_s
    try:
        while still:
            ready = select.select(still, [], [], max(0, deadline - time.monotonic()))[0]
            if not ready:
                process.kill()
                raise subprocess.TimeoutExpired(module, timeout_s, texts[out], texts[err])
            for fd in ready:
                part = os.read(fd, 1 << 20)
                texts[fd] += part
                if not part:
                    still.discard(fd)
        code = process.wait(max(1, deadline - time.monotonic()))
    finally:
        os.close(out)
        os.close(err)
    return code, texts[out], texts[err]


def _umask() -> int:
    with open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("Umask")).split()[1], 8)


def _import_all() -> dict[str, Any]:
    import hitchpost
    from hitchpost.terminal import emulator

    hub = importlib.import_module("hitchpost.hub.__main__")
    del sys.modules["rich"]  # which a hub does without, and the dashboard does not
    for package in PACKAGES:
        for module in pkgutil.iter_modules([f"{hitchpost.__path__[0]}/{package}"], f"hitchpost.{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    for name in LATER:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    try:
        from hitchpost.terminal.emulator.drawing import warm_up
    except (ImportError, OSError):  # there is none for this platform
        pass
    else:
        warm_up()
        READY.append(emulator.__path__[0] + "/__main__.py")
    return {
        "hitchpost.hub": hub.main,
        "hitchpost": importlib.import_module("hitchpost.cli.main").main,
        "hitchpost.pod": importlib.import_module("hitchpost.pod.first").main,
        "tests.fleet.linker": importlib.import_module("tests.fleet.linker").main,
        "tests.fleet.replica_process": lambda: importlib.import_module("tests.fleet.replica_process").main(),
        "tests.boxes": lambda: importlib.import_module("tests.boxes").main(),
    }


def main() -> None:
    """Fork until the process that has begun this one is gone."""
    gc.disable()
    entries = _import_all()
    gc.freeze()
    door = socket.socket(fileno=int(sys.argv[1]))
    callers: dict[int, socket.socket] = {}
    children: dict[int, tuple[int, int]] = {}
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(door, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == 0:
                os._exit(0)
            if fd == door.fileno():
                caller, _ = door.accept()
                callers[caller.fileno()] = caller
                poll.register(caller, select.POLLIN)
                continue
            if fd in children:
                poll.unregister(fd)
                pid, tell = children.pop(fd)
                _, status = os.waitpid(pid, 0)
                _say(tell, os.waitstatus_to_exitcode(status))
                os.close(tell)
                os.close(fd)
                continue
            order, descriptors, _, _ = socket.recv_fds(callers[fd], 1 << 20, 4)
            if not order:
                poll.unregister(fd)
                callers.pop(fd).close()
                continue
            pid = os.fork()
            if pid == 0:
                _become(entries, json.loads(order), descriptors)
            *standard, tell = descriptors
            for one in standard:
                os.close(one)
            handle = os.pidfd_open(pid)
            children[handle] = (pid, tell)
            poll.register(handle, select.POLLIN)
            _say(tell, pid)


def _say(tell: int, number: int) -> None:
    try:
        os.write(tell, f"{number}\n".encode())
    except BrokenPipeError:
        pass  # whoever wanted to know is gone


def _become(entries: dict[str, Any], order: dict[str, Any], descriptors: list[int]) -> None:
    for number, fd in enumerate(descriptors[:3]):
        os.dup2(fd, number)
    os.closerange(3, 1 << 16)
    os.environ.clear()
    os.environ.update(order["env"])
    os.umask(order["umask"])
    for number, limits in order["limits"].items():
        if resource.getrlimit(int(number)) != tuple(limits):
            resource.setrlimit(int(number), tuple(limits))
    os.chdir(order["cwd"])
    sys.argv = [order["module"], *order["argv"]]
    if order["session"]:
        os.setsid()
        if os.isatty(0):
            _take_terminal()
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    if READY and (order["module"] == "hitchpost.hub" or order["argv"][:1] == ["attach"]):
        _have_emulator_ready()
    if order["module"] == "hitchpost":
        gc.enable()
    _end_after(entries[order["module"]])


def _have_emulator_ready() -> None:
    """Fork the process that draws, which waits until this one would start it. A second one is made from nothing."""
    from hitchpost.terminal import emulators

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        _become_emulator(theirs)
    theirs.close()
    spawn_emulator = emulators._spawn

    def lend(orders_fd: int) -> int:
        emulators._spawn = spawn_emulator
        try:
            socket.send_fds(ours, [b"draw"], [orders_fd])
            ours.detach()  # and stays open: a test that counts descriptors must not find one that became free
        except OSError:
            os.waitpid(pid, 0)
            return spawn_emulator(orders_fd)
        return pid

    emulators._spawn = lend


def _become_emulator(wanted: socket.socket) -> None:
    code = 1
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        os.environ.clear()
        _, descriptors, _, _ = socket.recv_fds(wanted, 100, 1)
        if descriptors:
            sys.argv = [*READY, str(descriptors[0])]
            runpy.run_path(READY[0])
        code = 0
    finally:
        os._exit(code)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _end_after(entry: Callable[[], None]) -> None:
    """End as Python does, but for taking everything apart that was imported: that takes longer than most commands."""
    code = 0
    try:
        entry()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = 120
    os._exit(code)


if __name__ == "__main__":
    main()
