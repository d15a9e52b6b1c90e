"""Agents that print, and read a line: goose, aider. While one reads, pasting is marked in its terminal, else not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hitchpost import wire
from hitchpost.agents import rules
from hitchpost.model.attention import AT_PROMPT, WORKING
from hitchpost.terminal import output
from hitchpost.terminal.readlines import ReadLines
from hitchpost.watcher.adapter import SCREEN
from hitchpost.watcher.shown import Shown

if TYPE_CHECKING:
    from hitchpost.watcher.watching import Watching

MOST_BEHIND_BYTES = 16 << 20
"""A look that is further behind begins here: what was said earlier is left out."""
TOOK = "prompt"
"""The proof of a delivery: the agent's prompt took the text."""


class LogLines(ReadLines):
    """Read from the log of a run. Looks go on where the last one ended."""

    def __init__(self, run_folder: str) -> None:
        super().__init__()
        self._reader = output.Reader(os.path.join(run_folder, wire.OUTPUT))

    def read(self, end: int) -> None:
        if end - self._reader.offset > MOST_BEHIND_BYTES:
            self._reader.offset = end - MOST_BEHIND_BYTES
            self.forget()
        while (left := end - self._reader.offset) > 0:
            chunk = self._reader.read(min(left, output.READ_BYTES))
            if chunk.lost:
                self.forget()
            if not chunk.data:
                break
            self.feed(chunk.data)

    def close(self) -> None:
        self._reader.close()


class Lines(Shown):
    def __init__(self, watching: Watching) -> None:
        super().__init__(watching)
        self.lines = LogLines(watching.run_folder)
        self._taken = 0
        self._begun = False

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            self.lines.close()

    def read_screen(self, text: str) -> rules.Match | None:
        lines = self.lines
        return rules.first_match(self.rules.screen, text, reading=lines.reading, printed=lines.printed())

    def on_screen(self, text: str) -> None:
        """The log is read to just where the screen was: a line that was taken meanwhile counts, however fast."""
        self.lines.read(self.watching.screen.end)
        if self.lines.taken != self._taken:
            self._taken = self.lines.taken
            said = self.watching.evidence.get(SCREEN)
            if said is not None and said.state in AT_PROMPT:
                self._begin()
                self.prompted("", TOOK)
            self.watching.put(SCREEN, WORKING, at=self.watching.screen.read_at)
        super().on_screen(text)

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self.watching.conversation("", begun=True)
