"""The local runtime: a keeper on this machine, the agent below it. There is no sandbox."""

from __future__ import annotations

import _signal
import os
import time

from hitchpost import lightjson, wire
from hitchpost.runspec import RunSpec
from hitchpost.runtimes import keepers
from hitchpost.runtimes.base import Health, Leftovers, OwnClient, Sandbox, Started
from hitchpost.runtimes.kept import kept
from hitchpost.store import files
from hitchpost.store.home import home_path, run_folder
from hitchpost.store.runfiles import read_run
from hitchpost.system import process
from hitchpost.system.readable import readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hitchpost.system.cgroup import ControlGroups

READY_TIMEOUT_S = 30.0
END_TIMEOUT_S = 5.0
LAST_BYTES = 64 * 1024


class Local:
    name = "local"
    ends_with_keeper = True
    cannot_start_again = ""
    has_own_screen = False
    rests_in_place = True

    def start(self, spec: RunSpec, sandbox: Sandbox | None = None) -> Started:
        return self.spawn(spec)

    def spawn(self, spec: RunSpec, then: Callable[[], None] = lambda: None) -> Started:
        """Start a keeper of its own. ``then`` is what it waits for."""
        folder = run_folder(spec.session_folder, spec.run)
        ready, ready_write = os.pipe()
        handed = os.memfd_create("hitchpost-spec")
        try:
            files.write_all(handed, spec.to_bytes())
            keepers.give_run(folder, (handed, spec.lock_fd, ready_write, *spec.lease_fds))
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

    def check(self, session_folder: str = "") -> None:
        """Nothing can be missing."""

    def clear_away(self, session_folder: str) -> None:
        """A keeper leaves nothing behind."""

    def tear_down(self, session_folder: str) -> None:
        """There is no sandbox."""

    def give_up(self, session_folder: str) -> None:
        """Everything can be reached."""

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
                return Leftovers(len(ended), f"{len(left)} processes did not end: {', '.join(map(str, sorted(left)))}")
            group.kill()
            for pid in left:
                process.send(pid, _signal.SIGKILL)
            ended |= left
            time.sleep(0.005)
        group.remove()
        return Leftovers(len(ended), _not_known(group))


def _not_known(group: ControlGroups) -> str:
    return "" if group.tier == "cgroup2" else "processes that cleared their environment could not be found"


def left_over(session_folder: str, run: int) -> tuple[ControlGroups, set[int]]:
    """The run's control groups and its live processes, this one excepted. Those of a copied home are not among them."""
    from hitchpost.store import process_marks
    from hitchpost.system import cgroup

    found = set(marked(session_folder, run))
    group = cgroup.find(process_marks.group_name(session_folder, run))
    older = cgroup.find(process_marks.old_group_name(session_folder, run))
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


def answer(ready: int, folder: str) -> Started:
    """What the keeper says once the agent runs, or why it does not. A keeper may die without a word."""
    text = b""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not text.endswith(b"\n"):
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not readable([ready], left_s):
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
    return f"its last words: {lines[-1]}" if lines else "it left no message"
