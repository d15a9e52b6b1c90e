"""The person at the terminal: its size, the folder, and lines that are said there. Needs no click."""

from __future__ import annotations

import os
import sys

from hitchpost.errors import UsageError
from hitchpost.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

A_MOMENT_S = 1.0


def terminal_size() -> tuple[int, int]:
    """Columns and rows of the caller's terminal, else 80 by 24."""
    for fd in (1, 0, 2):
        try:
            size = os.get_terminal_size(fd)
        except OSError:
            continue
        if size.columns and size.lines:
            return size.columns, size.lines
    return 80, 24


def current_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise UsageError("the current folder is gone; name another with --workspace") from None


def typed_in() -> str:
    """All of standard input."""
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


def say(text: str) -> None:
    """A line for the person, on standard error: standard output is for what was asked for."""
    print(visible(text), file=sys.stderr, flush=True)


class Delivering:
    """Says what is waited for, when a prompt takes longer than a moment."""

    def __init__(self, name: str) -> None:
        from threading import Timer

        self._timer = Timer(A_MOMENT_S, say, (f"{name}: waiting until it shows that it has the prompt",))
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


def print_json(value: object) -> None:
    import json

    print(json.dumps(value, indent=1))


def progress(name: str, what: str) -> Callable[[float], None]:
    """Says once a second, on a terminal, how long something takes."""

    def show(waited_s: float) -> None:
        if sys.stderr.isatty():
            print(f"\r{visible(name)}: {what} … {waited_s:.0f}s ", file=sys.stderr, end="", flush=True)

    return show
