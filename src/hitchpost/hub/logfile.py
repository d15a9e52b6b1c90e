"""The hub's log: one JSON object on each line of standard error, whoever wrote it, and at most two files of them."""

from __future__ import annotations

import logging
import os
import stat
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import structlog

MOST_BYTES = 4 << 20
MOST_ALIKE, ALIKE_S, MOST_KINDS = 10, 60.0, 1000
STDOUT, STDERR = 1, 2

log = structlog.get_logger()
FIELDS: dict[str, str] = {}
"""What every line has, such as the replica of a fleet that wrote it."""


class LogFile:
    """Standard error. A disk that takes no more of it does not stop what it tells of.

    When it is the file ``path`` and has grown to ``most_bytes``, it becomes ``path``.1 and a new one is begun.
    """

    def __init__(self, path: str, most_bytes: int = MOST_BYTES) -> None:
        self.path, self.most_bytes = path, most_bytes
        self._size = os.fstat(STDERR).st_size
        self._turning: threading.Thread | None = None

    def write(self, text: str) -> int:
        try:
            self._size += os.write(STDERR, text.encode("utf-8", "backslashreplace"))
        except OSError:
            pass
        if self._size >= self.most_bytes and self._turning is None:
            # in a thread: who writes may be the event loop, which does not wait for disks
            self._turning = threading.Thread(target=self._begin_anew, name="log", daemon=True)
            self._turning.start()
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    def _begin_anew(self) -> None:
        self._size = 0
        try:
            written, named = os.fstat(STDERR), os.lstat(self.path)
            if stat.S_ISREG(written.st_mode) and os.path.samestat(written, named):
                os.replace(self.path, f"{self.path}.1")
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
                new = os.open(self.path, flags, 0o600)
                for fd in (STDOUT, STDERR):
                    if os.path.samestat(os.fstat(fd), written):
                        os.dup2(new, fd)
                os.close(new)
        except OSError:
            pass  # it is tried again when as much has been written once more
        finally:
            self._turning = None


class Repeats(logging.Filter):
    """Lets only ``MOST_ALIKE`` alike lines of a library through within a minute; the next one says how many there were.

    Whoever sends what is no request makes a library say so, and would otherwise push everything else out of the files.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now, kind = self._clock(), str(record.msg)
        if len(self._counts) >= MOST_KINDS:
            self._counts.clear()
        until, count = self._counts.get(kind, (now + ALIKE_S, 0))
        if now >= until:
            if count > MOST_ALIKE:
                record.msg, record.args = f"{record.getMessage()} ({count - MOST_ALIKE} more were not logged)", ()
            until, count = now + ALIKE_S, 0
        self._counts[kind] = until, count + 1
        return count < MOST_ALIKE


def log_to(stream: LogFile) -> None:
    """Send what we log, what libraries log and what nobody caught there, all in one shape. No request is in it."""
    usual: list[Any] = [
        structlog.contextvars.merge_contextvars,
        _with_fields,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[Any] = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[*usual, *last],
        logger_factory=structlog.WriteLoggerFactory(stream),  # type: ignore[arg-type]
    )
    handler = logging.StreamHandler(stream)
    handler.addFilter(Repeats())
    remove_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=usual, processors=[remove_meta, *last]))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.captureWarnings(True)
    sys.excepthook = _not_caught
    threading.excepthook = lambda args: _not_caught(args.exc_type, args.exc_value, args.exc_traceback)
    sys.unraisablehook = lambda args: _not_caught(args.exc_type, args.exc_value, args.exc_traceback)


def _with_fields(logger: object, method: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return {**FIELDS, **line}


def _not_caught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    log.critical("nobody caught an error", exc_info=(kind, error or kind(), trace))
