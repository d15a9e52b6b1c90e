"""A run's files: ``run.json``, ``exit.json`` with ``exit_status``, ``intent.json``, ``attention.json``.

Nobody else reads or writes them. The keeper imports this module, so it stays light.
"""

from __future__ import annotations

import _signal
import os
import time

from hitchpost import wire
from hitchpost.model import run as runs
from hitchpost.store import files
from hitchpost.system import process
from hitchpost.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ALL = (wire.RUN, wire.EXIT, wire.INTENT, wire.ATTENTION)
NOBODY_KNOWS = 1 << 32
KILLED = 137
"""By SIGKILL; or a shell says so of what it ran."""
RETRY_S = 3.0


# What runs ------------------------------------------------------------------------------------------------------


@value
class Process:
    """A process, named for ever on this boot of the machine."""

    pid: int
    start: int

    @property
    def is_alive(self) -> bool:
        return process.is_alive(self.pid, self.start)


@value
class Run:
    """``run.json``: the processes of a run, what they were started with, and where the agent runs: its place and pane
    in a container, or the socket and pane of somebody's tmux.

    ``home`` is the id of the home that it was started in; empty in older files. Texts are empty where they are missing.
    """

    agent: Process
    keeper: Process | None
    boot_id: str
    argv: tuple[str, ...]
    env_names: tuple[str, ...]
    started_at: str
    tier: str
    container_folder: str
    pane: str
    home: str
    socket: str

    @property
    def same_boot(self) -> bool:
        return self.boot_id == process.boot_id()


def this_process() -> Process:
    return Process(os.getpid(), process.start_time(os.getpid()) or 0)


def write_run(folder: str, agent: Process, fields: dict[str, object]) -> None:
    """The agent runs, below this process."""
    written: dict[str, object] = {"schema": files.SCHEMA, **fields}
    written |= {"boot_id": process.boot_id(), "keeper": _named(this_process()), "agent": _named(agent)}
    files.write_object(_path(folder, wire.RUN), {**written, "started_at": files.stamp(), "protocol": wire.VERSION})


def write_keeper(folder: str) -> None:
    """The run goes on as it was written down, under this process. Raises ``OSError`` or ``Unreadable``."""
    path = _path(folder, wire.RUN)
    run = files.read_object(path)
    files.write_object(path, {**run, "keeper": _named(this_process()), "protocol": wire.VERSION})


def read_run(folder: str) -> Run | None:
    """None when it is not written down which process the agent is, or that cannot be read."""
    found = read(folder, wire.RUN)
    agent = _process(found.get("agent"))
    if agent is None:
        return None
    texts = (str(found.get(key, "")) for key in ("started_at", "tier", "place", "pane", "home", "socket"))
    boot_id, names = str(found.get("boot_id")), _texts(found.get("env_names"))
    return Run(agent, _process(found.get("keeper")), boot_id, _texts(found.get("argv")), names, *texts)


def _named(identity: Process) -> dict[str, object]:
    return {"pid": identity.pid, "start": identity.start}


def _process(found: object) -> Process | None:
    if not isinstance(found, dict):
        return None
    pid, start = found.get("pid"), found.get("start")
    return Process(pid, start) if isinstance(pid, int) and isinstance(start, int) else None


def _texts(found: object) -> tuple[str, ...]:
    return tuple(map(str, found)) if isinstance(found, list) else ()


# Who asked for the end, and what the agent said ------------------------------------------------------------------


def write_intent(folder: str, by: str, reason: str, grace_s: float) -> None:
    """On disk before any signal is sent. Raises ``OSError``."""
    asked: dict[str, object] = {"schema": files.SCHEMA, "by": by, "at": files.stamp(), "reason": reason}
    files.write_object(_path(folder, wire.INTENT), {**asked, "grace_s": grace_s}, spare=spare(folder, SPARE_INTENT))


def read_intent(folder: str) -> dict[str, object]:
    """Empty when nobody has asked."""
    return read(folder, wire.INTENT)


def write_report(folder: str, report: dict[str, object] | None) -> None:
    """The agent's newest report about itself; a fact that changes often, so it is not forced to the disk."""
    files.write_object(
        _path(folder, wire.ATTENTION), report or {"schema": files.SCHEMA, "state": "clear"}, durable=False
    )


def read_report(folder: str) -> dict[str, object]:
    """What the agent last reported; empty when that is nothing."""
    report = read(folder, wire.ATTENTION)
    return {} if report.get("state") in (None, "clear") else report


# Room that is set aside for the day when the disk is full ---------------------------------------------------------

SPARE_EXIT, SPARE_STATUS, SPARE_STATE, SPARE_INTENT = wire.SPARES


def reserve(folder: str) -> None:
    for name in wire.SPARES:
        files.reserve(_path(folder, name))


def give_back(folder: str) -> None:
    for name in wire.SPARES:
        files.discard(_path(folder, name))


def spare(folder: str, name: str) -> str | None:
    path = _path(folder, name)
    return path if os.path.exists(path) else None


# The end ----------------------------------------------------------------------------------------------------------


class Ending:
    def __init__(
        self,
        *,
        wait_status: int | None = None,
        intent: str | None = None,
        error: str | None = None,
        ended_at: str = "",
        ended_at_known: bool = True,
        survivors: int = 0,
        attention: str | None = None,
        lost_bytes: int | None = 0,
        oom_kills: Callable[[], int] = lambda: 0,
        usage: object = None,
    ) -> None:
        """``lost_bytes`` is None when nobody counted them. ``oom_kills`` is asked about what was killed only."""
        self.wait_status = wait_status
        self.intent, self.error, self.ended_at, self.ended_at_known = intent, error, ended_at, ended_at_known
        self.survivors, self.attention, self.lost_bytes = survivors, attention, lost_bytes
        self.usage = usage
        self.code: int | None = None
        self.signal_number: int | None = None
        self.core_dumped = False
        if wait_status is not None:
            if os.WIFSIGNALED(wait_status):
                self.signal_number = os.WTERMSIG(wait_status)
                self.core_dumped = os.WCOREDUMP(wait_status)
            else:
                self.code = os.WEXITSTATUS(wait_status)
        self.out_of_memory = self.shell_code == KILLED and oom_kills() > 0

    @property
    def signal(self) -> str | None:
        return None if self.signal_number is None else signal_name(self.signal_number)

    @property
    def shell_code(self) -> int:
        text = runs.exit_status(self.code, self.signal_number)
        return int(text) if text else NOBODY_KNOWS

    def verdict(self) -> tuple[str, str]:
        return runs.verdict(self.code, self.signal, self.intent, self.error, self.out_of_memory)

    def evidence(self) -> dict[str, object]:
        return {"code": self.code, "signal": self.signal, "wait_status": self.wait_status, "survivors": self.survivors}

    def fields(self) -> dict[str, object]:
        usage = self.usage
        return {
            "schema": files.SCHEMA,
            "code": self.code,
            "signal": self.signal,
            "signal_number": self.signal_number,
            "core_dumped": self.core_dumped,
            "wait_status": self.wait_status,
            "out_of_memory": self.out_of_memory,
            "intent": self.intent,
            "error": self.error,
            "attention": self.attention,
            "survivors": self.survivors,
            "lost_output_bytes": self.lost_bytes,
            "rusage": None
            if usage is None
            else {
                "user_s": getattr(usage, "ru_utime", 0.0),
                "system_s": getattr(usage, "ru_stime", 0.0),
                "max_rss_kb": getattr(usage, "ru_maxrss", 0),
            },
            "ended_at": self.ended_at,
            "ended_at_known": self.ended_at_known,
        }

    def write(self, run_folder: str) -> None:
        """Write both files. A disk that refuses is tried again for a while; then what could be written must do."""
        deadline = time.monotonic() + RETRY_S
        while True:
            try:
                self._write(run_folder)
                return
            except OSError:
                if time.monotonic() > deadline:
                    return
                time.sleep(0.2)

    def _write(self, run_folder: str) -> None:
        status = runs.exit_status(self.code, self.signal_number).encode()
        refusal: OSError | None = None
        try:
            files.replace_file(
                os.path.join(run_folder, wire.EXIT_STATUS), status, spare=spare(run_folder, SPARE_STATUS), durable=False
            )
        except OSError as error:
            refusal = error  # the smaller file must not keep the greater one from being written
        files.write_object(os.path.join(run_folder, wire.EXIT), self.fields(), spare=spare(run_folder, SPARE_EXIT))
        if refusal is not None:
            raise refusal


def has_exit(folder: str) -> bool:
    return os.path.exists(_path(folder, wire.EXIT))


def read_exit(folder: str) -> dict[str, object]:
    """Empty when it is not written down how the run ended. Raises ``NewerSchema``: nobody may guess at an end."""
    try:
        return files.read_object(_path(folder, wire.EXIT))
    except files.NewerSchema:
        raise
    except files.CannotRead:
        return {}


def write_exit(folder: str, fields: dict[str, object]) -> None:
    """What a keeper has told of the end and could not write itself."""
    files.write_object(_path(folder, wire.EXIT), fields)


def amend_exit(folder: str, **more: object) -> None:
    """What is seen of a run after its end is written beside it. Raises ``OSError`` or ``Unreadable``."""
    path = _path(folder, wire.EXIT)
    files.write_object(path, {**files.read_object(path), **more})


def read(folder: str, name: str) -> dict[str, object]:
    """Empty when the file is not there, or cannot be read: ``hitch doctor`` tells of that."""
    try:
        return files.read_object(_path(folder, name))
    except files.CannotRead:
        return {}


def _path(folder: str, name: str) -> str:
    return f"{folder}/{name}"


def status_of(text: str) -> int | None:
    """A wait status of what is in ``exit_status``: ``wait N`` is one; a shell gives a code, which is 128 and more for
    a death by signal, and which an agent may also just have said."""
    kind, _, number = text.strip().rpartition(" ")
    if not number.isdigit():
        return None
    return int(number) & 0xFFFF if kind == "wait" else (int(number) & 0xFF) << 8


ALIASES = ("SIGCLD", "SIGIOT", "SIGPOLL", "SIGRTMIN", "SIGRTMAX")
SIGNAL_NAMES = {
    int(number): name
    for name, number in vars(_signal).items()
    if name.startswith("SIG") and not name.startswith("SIG_") and name not in ALIASES
}


def signal_name(number: int) -> str:
    """``SIGSEGV`` for 11. Real-time signals have numbers only."""
    return SIGNAL_NAMES.get(number) or f"SIG{number}"
