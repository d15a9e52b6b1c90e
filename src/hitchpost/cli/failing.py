"""How a command ends that cannot do what was asked: one line on standard error, and an exit code."""

from __future__ import annotations

import os
import sys

from hitchpost.errors import FAILURES, HitchpostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

FAILED, BUG, INTERRUPTED = 1, 70, 130
SHOW_BUGS = "HITCHPOST_DEBUG"
BUGS = "bugs.log"
MOST_LOG_BYTES = 1 << 20


def report(error: HitchpostError | OSError) -> int:
    """Say what is wrong. The exit code."""
    if isinstance(error, HitchpostError):
        complain(str(error))
        return error.exit_code
    if isinstance(error, BrokenPipeError) or _is_of_output(error):
        return _lost_output(error, 0)
    complain(os_words(error))
    return FAILED


def _is_of_output(error: OSError) -> bool:
    """Whether it was writing the output that failed: nothing else is written where commands are."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__"))
    return error.filename is None and where.startswith(("click.", "hitchpost.cli."))


def os_words(error: OSError) -> str:
    why = os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
    return why if error.filename is None else f"{os.fsdecode(error.filename)}: {why}"


def flushed(code: int) -> int:
    """Write what is left of the output. The exit code: ``code``, unless the output is lost."""
    try:
        sys.stdout.flush()
    except OSError as error:
        return _lost_output(error, code)
    return code


def _lost_output(error: OSError, code: int) -> int:
    _discard(sys.stdout)
    if isinstance(error, BrokenPipeError):
        return code  # a reader that went away (``hitch logs | head``) is no error
    complain(f"cannot write the output: {os_words(error)}")
    return code or FAILED


def complain(text: str) -> None:
    """On standard error; where that cannot be written, the exit code has to do."""
    from hitchpost.text import visible

    try:
        print(f"hitch: {visible(text, keep_newlines=True)}", file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """What could not be written is not tried again: Python does so in the end, and fails with a code of its own."""
    fd = os.open(os.devnull, os.O_WRONLY)
    os.dup2(fd, stream.fileno())
    os.close(fd)


def report_bug(error: Exception) -> int:
    """A mistake of ours. Where it happened is for a file: the terminal is not the place."""
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    try:
        where = f"details in {_written(error)}"
    except FAILURES:
        where = f"{SHOW_BUGS}=1 shows where"
    complain(f"internal error: {what} (this is a bug; {where})")
    return BUG


def _written(error: Exception) -> str:
    import time
    from traceback import format_exception

    import hitchpost
    from hitchpost.store.home import open_home

    path = os.path.join(open_home(create=False), BUGS)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        if os.fstat(fd).st_size > MOST_LOG_BYTES:
            os.ftruncate(fd, 0)
        head = f"{time.strftime('%FT%TZ', time.gmtime())} hitch {hitchpost.__version__} {' '.join(sys.argv[1:2])}\n"
        os.write(fd, (head + "".join(format_exception(error))).encode("utf-8", "backslashreplace"))
    finally:
        os.close(fd)
    return path
