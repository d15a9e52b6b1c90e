"""The local runtime: a keeper on this machine, the agent below it. There is no sandbox."""

from __future__ import annotations

import _signal
import errno
import os
import select
import sys
import time

from hitchpost import lightjson, wire
from hitchpost.runspec import RunSpec
from hitchpost.runtimes.base import Health, Leftovers, OwnClient, Sandbox, Started
from hitchpost.runtimes.kept import kept
from hitchpost.store import files, marks
from hitchpost.store.home import home_path, run_folder
from hitchpost.store.runfiles import read_run
from hitchpost.system import process
from hitchpost.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hitchpost.system.cgroup import ControlGroups

READY_TIMEOUT_S = 30.0
END_TIMEOUT_S = 5.0
LAST_BYTES = 64 * 1024
PASSED_ON = ("LANG", "LC_ALL", "HITCHPOST_BOOT_ID", "HITCHPOST_TIER")
"""All that a keeper has of its starter's environment."""


class Local:
    name = "local"
    ends_with_keeper = True
    cannot_start_again = ""
    has_own_screen = False

    def start(self, spec: RunSpec, sandbox: Sandbox | None = None) -> Started:
        return self.spawn(spec)

    def spawn(self, spec: RunSpec, then: Callable[[], None] = lambda: None) -> Started:
        """Start a keeper of its own. ``then`` is what it waits for."""
        folder = run_folder(spec.session_folder, spec.run)
        ready, ready_write = os.pipe()
        handed = os.memfd_create("hitchpost-spec")
        try:
            files.write_all(handed, replace(spec, ready_fd=ready_write).to_bytes())
            _spawn(folder, handed, (spec.lock_fd, ready_write, *spec.lease_fds))
        finally:
            os.close(handed)
            os.close(ready_write)
        try:
            then()
            return answer(ready, folder)
        finally:
            os.close(ready)

    def health(self, session_folder: str, run: int, *, session: str) -> Health:
        folder = run_folder(session_folder, run)
        keeper = kept(folder)
        return Health(
            keeper_alive=keeper.alive,
            sandbox_alive=None,
            session_alive=None,
            probe_failed=keeper.doubt != "",
            process_stopped=keeper.alive is True and _is_stopped(folder),
            keeper_stopped=keeper.stopped,
            doubt=keeper.doubt,
        )

    def attach_command(self, session_folder: str, run: int, read_only: bool) -> OwnClient | None:
        return None

    def explain(self, session_folder: str, run: int, *, over: bool) -> list[tuple[str, str, str]]:
        return []

    def check(self) -> None:
        """Nothing can be missing."""

    def clear_away(self, session_folder: str) -> None:
        """A keeper leaves nothing behind."""

    def tear_down(self, session_folder: str) -> None:
        """There is no sandbox."""

    def unpause(self, session_folder: str) -> None:
        """There is no sandbox."""

    def take_over(self, spec: RunSpec) -> Started:
        return Started(None, "an agent of this runtime ends with its keeper", kept=False)

    def leftovers(self, session_folder: str, run: int) -> Leftovers:
        group, left = left_over(session_folder, run)
        return Leftovers(len(left), _not_known(group))

    def end_leftovers(self, session_folder: str, run: int, *, session: str) -> Leftovers:

        ended: set[int] = set()
        deadline = time.monotonic() + END_TIMEOUT_S
        while True:
            group, left = left_over(session_folder, run)
            if not left:
                break
            if time.monotonic() > deadline:
                return Leftovers(len(ended), f"{len(left)} processes do not end: {', '.join(map(str, sorted(left)))}")
            group.kill()
            for pid in left:
                process.send(pid, _signal.SIGKILL)
            ended |= left
            time.sleep(0.005)
        group.remove()
        return Leftovers(len(ended), _not_known(group))


def _not_known(group: ControlGroups) -> str:
    return "" if group.tier == "cgroup2" else "processes that emptied their environment could not be looked for"


def left_over(session_folder: str, run: int) -> tuple[ControlGroups, set[int]]:
    """The run's control groups and its live processes, this one excepted. Those of a copied home are not among them."""
    from hitchpost.system import cgroup

    found = set(marked(session_folder, run))
    group = cgroup.find(marks.group_name(session_folder, run))
    older = cgroup.find(marks.old_group_name(session_folder, run))
    if not older.pids() or found & set(older.pids()):
        group = cgroup.ControlGroups(group.folders + older.folders)
    live = {pid for pid in group.pids() if process.has_live_thread(pid)}
    return group, (found | live) - {os.getpid()}


def marked(session_folder: str, run: int) -> list[int]:
    """The live processes that carry the marks of this home's session and run in their environment."""
    session, home = os.path.basename(session_folder), files.home_id(session_folder)
    marks = {f"{wire.SESSION_MARK}={session}".encode(), f"{wire.RUN_MARK}={run}".encode()}
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            texts = files.read_bytes(f"/proc/{name}/environ").split(b"\0")
        except OSError:
            continue
        if marks <= set(texts) and _home_of(texts) == home:
            fields = process.stat(int(name))
            if fields is not None and fields[0] not in (b"Z", b"X"):
                found.append(int(name))
    return found


def _home_of(texts: list[bytes]) -> str | None:
    """The id of the home that a marked process belongs to. An older keeper's says only where its caller's home was."""
    environment = dict(os.fsdecode(text).split("=", 1) for text in texts if b"=" in text)
    if wire.HOME_MARK in environment:
        return environment[wire.HOME_MARK]
    try:
        return files.folder_id(home_path(environment))
    except OSError:
        return None


def _is_stopped(folder: str) -> bool:
    """Whether the agent's first process is stopped by a signal (state T)."""
    run = read_run(folder)
    stat = process.stat(run.agent.pid) if run is not None else None
    return run is not None and stat is not None and stat[0] == b"T" and int(stat[19]) == run.agent.start


def keeper_program() -> list[str]:
    import hitchpost

    package = os.path.dirname(os.path.abspath(hitchpost.__file__))
    return [os.path.realpath(sys.executable), "-I", "-S", os.path.join(package, "keeper", "__main__.py")]


def _spawn(folder: str, spec: int, kept: tuple[int, ...]) -> None:
    """Start the keeper with just these descriptors. It detaches itself; the process waited for is gone at once."""
    if min(spec, *kept) <= 2:
        raise OSError(errno.EBADF, "standard descriptors are closed")
    argv = [*keeper_program(), folder, str(spec)]
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    log = os.open(
        os.path.join(folder, wire.KEEPER_LOG),
        os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW,
        0o600,
    )
    env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    env[wire.KEEPER_MARK] = folder
    # a duplicate onto itself is inherited, without ever being inheritable to what another thread starts
    actions = [(os.POSIX_SPAWN_DUP2, old, new) for old, new in ((null, 0), (null, 1), (log, 2))]
    actions += [(os.POSIX_SPAWN_DUP2, fd, fd) for fd in (spec, *kept)]
    try:
        pid = os.posix_spawn(argv[0], argv, env, file_actions=actions, setsid=True)
        os.waitpid(pid, 0)
    finally:
        os.close(null)
        os.close(log)


def answer(ready: int, folder: str) -> Started:
    """What the keeper says once the agent runs, or why it does not. A keeper may die without a word."""
    text = b""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not text.endswith(b"\n"):
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not select.select([ready], [], [], left_s)[0]:
            return Started(None, f"the keeper did not answer within {READY_TIMEOUT_S:g} s")
        part = os.read(ready, 65536)
        if not part:
            return Started(None, f"the keeper ended at once; {_last_words(folder)}")
        text += part
    answer = lightjson.loads(text)
    if isinstance(answer, dict) and answer.get("ok") is True:
        return Started(int(str(answer.get("pid"))))
    return Started(None, str(answer.get("error")) if isinstance(answer, dict) else "the keeper's answer is unreadable")


def _last_words(folder: str) -> str:
    try:
        text = files.read_ends(os.path.join(folder, wire.KEEPER_LOG), 0, LAST_BYTES)
        lines = text.decode("utf-8", "replace").strip().splitlines()
    except OSError:
        lines = []
    return f"its last words: {lines[-1]}" if lines else "it left no word"
