"""What tests share: waiting for a condition, running the command, and finding what a test left behind."""

from __future__ import annotations

import gc
import io
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

TEMP_PREFIX = "hitchpost-"
KEEPER = "hitchpost/keeper/__main__.py"
THE_COMMAND = (sys.executable, "-m", "hitchpost")
BEFORE = dict(os.environ)
"""The environment before any test has changed it."""
LASTING: set[int] = set()
"""Descriptors that the test process keeps for as long as it lives."""
MEMORY = "/dev/shm"
LEAST_MEMORY_BYTES = 4 << 30


def place_in_memory(least_bytes: int = LEAST_MEMORY_BYTES) -> str:
    """For folders with many small files: in memory, if there is room, and nothing is forbidden there; else /tmp."""
    try:
        there = os.statvfs(MEMORY)
    except OSError:
        return "/tmp"
    usable = os.access(MEMORY, os.W_OK) and not there.f_flag & (os.ST_NOEXEC | os.ST_NODEV)
    return MEMORY if usable and there.f_bavail * there.f_frsize >= least_bytes else "/tmp"


def eventually(condition: Callable[[], T | None], timeout_s: float = 60, what: str = "") -> T:
    """Call ``condition`` until it gives something true, and return that.

    An ``AssertionError`` from it means "not yet"; any other error ends the wait at once. After ``timeout_s`` the test
    fails with ``what`` was awaited, the last value and the last error.
    """
    started = time.monotonic()
    pause_s = 0.001
    while True:
        value, error = None, None
        try:
            value = condition()
            if value:
                return value
        except AssertionError as raised:
            error = raised
        if time.monotonic() - started >= timeout_s:
            last = f"last error: {error}" if error else f"last value: {value!r}"
            name = what or getattr(condition, "__qualname__", repr(condition))
            raise AssertionError(f"waited {timeout_s:g} s in vain for {name}; {last}") from error
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.05)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one call of ``hitch`` gave back."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def checked(self, check: bool | int) -> Answer:
        if check is not False:
            wanted = 0 if check is True else check
            assert self.code == wanted, f"expected exit code {wanted} from {self}"
        return self

    def __str__(self) -> str:
        return f"hitch {' '.join(self.argv)}\nexit code {self.code}\n--- out\n{self.out}\n--- err\n{self.err}"


@dataclass(frozen=True, slots=True)
class Hitch:
    """Runs the command in a process of its own, with the environment that the test has at that moment."""

    command: tuple[str, ...] = THE_COMMAND

    def __call__(
        self,
        *args: str | os.PathLike[str],
        check: bool | int = True,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout_s: float = 60,
    ) -> Answer:
        """Run ``hitch ARGS`` to its end.

        ``check``: True wants exit code 0, False takes any, a number wants exactly that one. ``env`` comes on top of the
        test's environment. The call also waits for the output to be closed: a keeper that holds on to it is a timeout.
        """
        argv = tuple(os.fspath(arg) for arg in args)
        whole = self.environment() | dict(env or {})
        try:
            code, out, err = self._call(argv, stdin.encode("utf-8", "surrogateescape"), whole, cwd, timeout_s)
        except subprocess.TimeoutExpired as late:
            shown = "".join(
                f"\n--- {name}\n{(text or b'').decode(errors='replace')}"
                for name, text in (("out", late.stdout), ("err", late.stderr))
            )
            raise AssertionError(f"hitch {' '.join(argv)} did not end in {timeout_s:g} s{shown}") from None
        texts = (part.decode("utf-8", "surrogateescape").replace("\r\n", "\n") for part in (out, err))
        return Answer(argv, code, *texts).checked(check)

    def _call(
        self,
        argv: tuple[str, ...],
        stdin: bytes,
        env: dict[str, str],
        cwd: str | os.PathLike[str] | None,
        timeout_s: float,
    ) -> tuple[int, bytes, bytes]:
        from tests import warm

        if self.command == THE_COMMAND and len(stdin) < select.PIPE_BUF:
            return warm.call(argv, stdin, env, cwd or os.curdir, timeout_s)
        done = subprocess.run(
            [*self.command, *argv], input=stdin, capture_output=True, env=env, cwd=cwd, timeout=timeout_s, check=False
        )
        return done.returncode, done.stdout, done.stderr

    def here(
        self, *args: str | os.PathLike[str], check: bool | int = True, cwd: str | os.PathLike[str] = "."
    ) -> Answer:
        """The same in the test's own process, a tenth of the cost: for one of many calls that start no session.

        What the command does not catch itself is raised.
        """
        from hitchpost.cli.group import cli

        argv = tuple(os.fspath(arg) for arg in args)
        out = io.TextIOWrapper(io.BytesIO(), "utf-8", "strict", newline="", write_through=True)
        err = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", newline="", write_through=True)
        with redirect_stdout(out), redirect_stderr(err), chdir(cwd), pytest.raises(SystemExit) as ended:
            cli(argv, prog_name="hitch")
        out.seek(0)
        err.seek(0)
        assert isinstance(ended.value.code, int)
        return Answer(argv, ended.value.code, out.read(), err.read()).checked(check)

    @staticmethod
    def environment() -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


@dataclass(frozen=True, slots=True, order=True)
class Process:
    """A process as /proc showed it. Pid and start time together are its identity."""

    pid: int
    start_ticks: int
    parent: int = field(compare=False)
    state: str = field(compare=False)
    argv: tuple[str, ...] = field(compare=False)

    @classmethod
    def read(cls, pid: int) -> Process | None:
        try:
            stat = _read(f"/proc/{pid}/stat")
            argv = _read(f"/proc/{pid}/cmdline")
        except OSError:
            return None
        name, _, rest = stat.rpartition(b")")
        fields = rest.split()
        words = argv.rstrip(b"\0").split(b"\0") if argv else [name.partition(b"(")[2]]
        return cls(
            pid=pid,
            start_ticks=int(fields[19]),
            parent=int(fields[1]),
            state=fields[0].decode(),
            argv=tuple(os.fsdecode(word) for word in words),
        )

    @classmethod
    def all(cls) -> Iterator[Process]:
        """Every process but this one."""
        for pid in _pids():
            process = cls.read(pid)
            if process:
                yield process

    @property
    def is_zombie(self) -> bool:
        return self.state in "ZX"

    @property
    def is_keeper(self) -> bool:
        return any(word.endswith(KEEPER) for word in self.argv)

    @property
    def is_tmux(self) -> bool:
        return os.path.basename(self.argv[0]).startswith("tmux")

    def belongs_to(self, folder: Path) -> bool:
        """Whether ``folder`` is named in the process's arguments or environment, or holds its working folder."""
        if self.is_zombie:
            return False
        mark = os.fspath(folder)
        if any(mark in word for word in self.argv):
            return True
        try:
            here = os.readlink(f"/proc/{self.pid}/cwd")
            environment = _read(f"/proc/{self.pid}/environ")
        except OSError:
            return False
        return Path(here).is_relative_to(folder) or os.fsencode(mark) in environment

    def __str__(self) -> str:
        return f"process {self.pid} ({self.state}): {' '.join(self.argv)}"


class Census:
    """The processes of one moment, to tell those that began later. Only these are looked at: a look at all takes long.

    Numbers are given in a circle, so what has the number of an older process may be new if the circle has passed it.
    """

    def __init__(self) -> None:
        self._pids = set(_pids())
        self._last = _last_pid()
        self._ticks = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))

    def later(self) -> Iterator[Process]:
        first, last = self._last, _last_pid()
        for pid in _pids():
            passed = first < pid <= last if first <= last else pid > first or pid <= last
            if pid not in self._pids or passed:
                process = Process.read(pid)
                if process and (pid not in self._pids or process.start_ticks > self._ticks):
                    yield process


def end(processes: Sequence[Process], grace_s: float = 5, at_once: Sequence[Process] = ()) -> None:
    """End ``processes``: SIGTERM to all, SIGKILL to those that are still there after ``grace_s``, and wait for both.

    Those in ``at_once`` get SIGKILL right after the others were asked.

    A process is signalled through a pidfd whose start time was checked, so a reused pid is never hit.
    """
    waiting = select.poll()
    held: dict[int, Process] = {}
    try:
        for process in (*processes, *at_once):
            try:
                descriptor = os.pidfd_open(process.pid)
            except ProcessLookupError:
                continue
            if Process.read(process.pid) == process:
                held[descriptor] = process
                waiting.register(descriptor, select.POLLIN)
            else:
                os.close(descriptor)
        left = set(held)
        for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
            for descriptor in [descriptor for descriptor in held if descriptor in left]:
                _send(descriptor, signal.SIGKILL if held[descriptor] in at_once else number)
                _send(descriptor, signal.SIGCONT)
            deadline = time.monotonic() + patience_s
            while left and (remaining_s := deadline - time.monotonic()) > 0:
                for descriptor, _ in waiting.poll(remaining_s * 1000):
                    waiting.unregister(descriptor)
                    left.discard(descriptor)
        for process in held.values():
            if process.parent == os.getpid():
                _reap(process.pid)
    finally:
        for descriptor in held:
            os.close(descriptor)


def halt(pid: int) -> None:
    """SIGSTOP, and until it has taken effect: on a busy machine a process runs on for a moment."""
    os.kill(pid, signal.SIGSTOP)
    eventually(
        lambda: (found := Process.read(pid)) is None or found.state in "TtZX", what=f"process {pid} to stand still"
    )


def _send(descriptor: int, number: signal.Signals) -> None:
    try:
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        pass


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass


def end_home(home: Path, census: Census | None = None) -> None:
    """End the keepers and tmux servers of the state folder ``home``, without the help of ``hitch``.

    With a ``census`` from before the folder was made, only what began later is looked at.
    Agents are killed as soon as their keepers are asked to end: a shell would let them wait for three seconds.
    """
    mark = os.fspath(home)
    processes = list(census.later() if census else Process.all())
    held = [
        process
        for process in processes
        if (process.is_keeper or process.is_tmux) and any(mark in word for word in process.argv)
    ]
    keepers = {process.pid for process in held if process.is_keeper}
    end(held, at_once=[process for process in processes if process.parent in keepers and process not in held])


class LeakWatch:
    """Remembers how things were before a test, and says what the test left behind.

    ``scratch`` is the test's own temp folder. ``folders`` are those whose processes belong to the test.
    """

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.folders: list[Path] = [scratch]
        self.census = Census()
        self._descriptors = _descriptors()

    def processes(self) -> list[Process]:
        return sorted(
            process
            for process in self.census.later()
            if _is_child(process) or any(process.belongs_to(folder) for folder in self.folders)
        )

    def descriptors(self) -> list[str]:
        if self._new_descriptors():
            gc.collect()  # what nobody refers to any more, but for a circle, is closed by this
        return [f"descriptor {number}: {target}" for number, target in self._new_descriptors()]

    def _new_descriptors(self) -> list[tuple[int, str]]:
        return [
            (number, target)
            for number, target in sorted(_descriptors().items())
            if self._descriptors.get(number) != target and number not in LASTING
        ]

    def temp_files(self) -> list[str]:
        return [f"temp file {path}" for path in sorted(self.scratch.glob(f"{TEMP_PREFIX}*"))]

    def close(self, patience_s: float = 2) -> list[str]:
        """End the processes that are left, and return a line for each thing that was left behind.

        What is just about to go has ``patience_s`` to do so.
        """
        deadline = time.monotonic() + patience_s
        while (left := self.processes() or self.temp_files() or self.descriptors()) and time.monotonic() < deadline:
            time.sleep(0.01)
        processes = self.processes() if left else []
        end(processes, grace_s=1)
        return [*map(str, processes), *self.descriptors(), *self.temp_files()]


def _pids() -> Iterator[int]:
    """Of every process but this one."""
    own = os.getpid()
    return (int(entry) for entry in os.listdir("/proc") if entry.isdigit() and int(entry) != own)


def _last_pid() -> int:
    return int(_read("/proc/loadavg").split()[-1])


def _is_child(process: Process) -> bool:
    # The standard library, and tests.warm, keep these for as long as Python runs.
    kept = any("resource_tracker" in word or word == "tests.warm" for word in process.argv)
    return process.parent == os.getpid() and not kept


def _descriptors() -> dict[int, str]:
    found = {}
    for entry in os.listdir("/proc/self/fd"):
        try:
            found[int(entry)] = os.readlink(f"/proc/self/fd/{entry}")
        except FileNotFoundError:  # the descriptor of this very listing
            continue
    return found


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
