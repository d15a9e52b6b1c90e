"""Where a measurement plays: a fresh state folder, the small C programs, sessions, and the end of all of them."""

from __future__ import annotations

import atexit
import compileall
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import hitchpost
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.sessions.start import start
from hitchpost.ops.sessions.stop import stop
from hitchpost.runtimes.link import Link, is_kept
from hitchpost.runtimes.tmux import Tmux
from hitchpost.settings import Settings
from hitchpost.store import files, records
from hitchpost.store.home import run_folder, session_folder
from tests.undisturbed import undisturbed

STRANGE = ("HITCHPOST_", "TMUX", "PYTHON")
"""Beginnings of variables that would make hitch behave as it does not for a user."""
ENOUGH_S = 60.0


class Session:
    """One session on the stage; ``run`` counts its runs."""

    def __init__(self, stage: Stage, session: str) -> None:
        self.stage, self.id = stage, session
        self.run = 0

    @property
    def folder(self) -> str:
        return session_folder(self.stage.home, self.id)

    @property
    def run_folder(self) -> str:
        return run_folder(self.folder, self.run)

    def start(self, *argv: str) -> None:
        """Start the next run, of another command when one is given."""
        begun = start(
            self.stage.home,
            self.id,
            self.stage.settings,
            caller=os.environ,
            argv=argv or None,
            actor="test",
            until_ready=False,
        )
        self.run = begun.seen.facts.run

    def stop(self) -> None:
        stop(self.stage.home, self.id, grace_s=0, actor="test")

    def link(self) -> Link:
        return Link.connect(self.run_folder)

    def wait_for_keeper_to_leave(self) -> None:
        wait_until(lambda: is_kept(self.run_folder) is not True, "the keeper to leave")

    def keeper(self) -> int:
        """The keeper's pid."""
        value = files.read_object(os.path.join(self.run_folder, "run.json"))["keeper"]
        assert isinstance(value, dict)
        return int(value["pid"])


class Stage:
    """A state folder of its own. Everything that was started on it has ended, and the folder is gone, at its close."""

    def __init__(self, *, quick: bool = False, log_cap_mib: int = 64) -> None:
        self.quick = quick
        self.settings = Settings(log_cap_mib=log_cap_mib)
        self.folder = tempfile.mkdtemp(prefix="hitchpost-bench-")
        self.home = os.path.join(self.folder, "home")
        self.work = os.path.join(self.folder, "work")
        self._environment = dict(os.environ)

    def __enter__(self) -> Stage:
        compiled_package()
        for path in (self.home, os.path.join(self.home, "sessions"), self.work):
            os.mkdir(path, 0o700)
        for name in list(os.environ):
            if name.startswith(STRANGE):
                del os.environ[name]
        os.environ["HITCHPOST_HOME"] = self.home
        os.environ["SHELL"] = "/bin/sh"  # what the user's own shell does at its start is not measured
        os.environ["HITCHPOST_CONFIG"] = os.path.join(self.folder, "no-config.toml")
        return self

    def __exit__(self, *_: object) -> None:
        with undisturbed():
            try:
                self.end()
            finally:
                os.environ.clear()
                os.environ.update(self._environment)
                shutil.rmtree(self.folder, ignore_errors=True)

    def session(self, *argv: str, settings: Settings | None = None, runtime: str = "local") -> Session:
        """A session that is not started yet."""
        spec = SessionSpec(self.work, command=argv, runtime=runtime)
        made = create(self.home, spec, settings or self.settings, actor="test")
        return Session(self, made.id)

    def sessions(self, count: int, *argv: str, runtime: str = "local") -> list[Session]:
        """Many started sessions."""

        def started(_: int) -> Session:
            session = self.session(*argv, runtime=runtime)
            session.start()
            return session

        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(started, range(count)))

    def end(self) -> None:
        """Stop what still runs, and wait until no keeper is left."""
        kept = []
        for session in records.ids(self.home):
            runs = os.path.join(self.home, "sessions", session, "runs")
            newest = max(map(int, os.listdir(runs)), default=0) if os.path.isdir(runs) else 0
            if newest and is_kept(os.path.join(runs, str(newest))):
                kept.append((session, os.path.join(runs, str(newest))))
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda item: stop(self.home, item[0], grace_s=0, actor="test"), kept))
        wait_until(lambda: not any(is_kept(folder) for _, folder in kept), "the keepers to leave")
        for session in records.ids(self.home):
            Tmux().clear_away(session_folder(self.home, session))


@cache
def compiled_package() -> None:
    """An installed hitch has its byte code; a working copy that was just edited may not."""
    compileall.compile_dir(os.path.dirname(hitchpost.__file__), quiet=1)


@cache
def program() -> str:
    """The compiled ``programs.c``; see there for what it can do. Compiled once, removed at the end."""
    folder = tempfile.mkdtemp(prefix="hitchpost-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "programs")
    source = Path(__file__).with_name("programs.c")
    subprocess.run(["gcc", "-O2", "-o", path, source, "-lutil"], check=True)
    return path


def hitch() -> str:
    """The console script of the environment that runs us."""
    return os.path.join(os.path.dirname(sys.executable), "hitch")


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = ENOUGH_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout_s:g} s in vain for {what}")
        time.sleep(0.002)


def command_s(*argv: str) -> float:
    """How long a command takes, from the call to its end; what it prints goes nowhere."""
    null = os.open(os.devnull, os.O_RDWR)
    try:
        began = time.perf_counter()
        actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]
        pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
        _, status = os.waitpid(pid, 0)
        took_s = time.perf_counter() - began
    finally:
        os.close(null)
    if status:
        raise RuntimeError(f"{' '.join(argv)} ended with status {status}")
    return took_s


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * int(share * 1000) // 1000) - 1)]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def cpu_s(pid: int) -> float:
    """Seconds that the threads of a process have spent on a processor so far."""
    return sum(int(file.read_text().split()[0]) / 1e9 for file in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def end_children(children: Sequence[subprocess.Popen[bytes]]) -> None:
    for child in children:
        child.send_signal(signal.SIGKILL)
    for child in children:
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
