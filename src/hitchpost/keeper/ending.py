"""The truth about a run's end, as it goes to ``exit.json`` and ``exit_status``."""

from __future__ import annotations

import _signal
import os
import time

from hitchpost import wire
from hitchpost.model import run as runs
from hitchpost.state import files

NOBODY_KNOWS = 1 << 32
KILLED = 137
"""By SIGKILL; or a shell says so of what it ran."""
RETRY_S = 3.0


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
        oom_kills: int = 0,
        usage: object = None,
    ) -> None:
        """``lost_bytes`` is None when nobody counted them."""
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
        self.out_of_memory = oom_kills > 0 and self.shell_code == KILLED

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
                os.path.join(run_folder, wire.EXIT_STATUS), status, spare=_spare(run_folder, 1), durable=False
            )
        except OSError as error:
            refusal = error  # the smaller file must not keep the greater one from being written
        files.write_object(os.path.join(run_folder, wire.EXIT), self.fields(), spare=_spare(run_folder, 0))
        if refusal is not None:
            raise refusal


def _spare(run_folder: str, position: int) -> str | None:
    path = os.path.join(run_folder, wire.SPARES[position])
    return path if os.path.exists(path) else None


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
