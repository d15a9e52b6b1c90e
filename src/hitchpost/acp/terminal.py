"""What a person sees who attaches to an agent that has no screen of its own, and the lines that they type."""

from __future__ import annotations

import os
from base64 import b64encode

from hitchpost.text import visible

LONGEST_MESSAGE = 250
DIM, BOLD, PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"


class Terminal:
    """Writes to the session's terminal. All text is the agent's: what would steer the terminal is made visible."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._at_start = True
        self._is_prompting = False

    def stream(self, text: str, *, faint: bool = False) -> None:
        """A part of a message, as it comes."""
        if not text:
            return
        shown = visible(text.replace("\r\n", "\n"), keep_newlines=True)
        self._write(f"{DIM}{shown}{PLAIN}" if faint else shown)
        self._at_start, self._is_prompting = shown.endswith("\n"), False

    def line(self, text: str, *, mark: str = "", faint: bool = False) -> None:
        """A line of its own."""
        begin = "" if self._at_start else "\n"
        shown = f"{mark} {visible(text)}" if mark else visible(text)
        self._write(f"{begin}{DIM if faint else BOLD}{shown}{PLAIN}\n")
        self._at_start, self._is_prompting = True, False

    def prompt(self) -> None:
        """It is the person's turn."""
        if not self._is_prompting:
            self._write(("" if self._at_start else "\n") + "\n› ")
        self._at_start, self._is_prompting = True, True

    def prompted(self, text: str) -> None:
        """A prompt that was not typed here, where one would stand that was."""
        self.prompt()
        self._write(f"{visible(text, keep_newlines=True)}\n")
        self._is_prompting = False

    def report(self, state: str, kind: str = "", message: str = "") -> None:
        """For the keeper, which listens whether anybody watches or not: the state, as OSC 7501 has it."""
        more = f":kind={kind}" if kind else ""
        more += f":msg={b64encode(message[:LONGEST_MESSAGE].encode()).decode()}" if message else ""
        self._write(f"\x1b]7501;state={state}{more}\a")

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._fd, data) :]
