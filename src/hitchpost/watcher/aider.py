"""aider: its conversation is a file, which keeps what was cleared. So a cleared one is put aside, and begun anew."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from hitchpost.store.session import Session
from hitchpost.watcher.lines import Lines

if TYPE_CHECKING:
    from hitchpost.watcher.watching import Watching

CLEARED = ("All chat history cleared.", "All files dropped and chat history cleared.")


class Aider(Lines):
    def __init__(self, watching: Watching) -> None:
        super().__init__(watching)
        self._cleared_in = -1

    def on_screen(self, text: str) -> None:
        super().on_screen(text)
        taken = self.lines.taken
        if taken != self._cleared_in and any(line in CLEARED for line in self.lines.printed().splitlines()):
            self._cleared_in = taken
            self._put_aside()

    def _put_aside(self) -> None:
        """aider opens the file anew for each line, and makes another one of the same name."""
        record = Session(self.watching.session_folder, actor="agent").record()
        name = os.path.join(record.folder, f".aider.chat.history.{record.conversation_id}")
        number = 1
        while os.path.lexists(f"{name}.{number}.md"):
            number += 1
        with suppress(OSError):  # there is none, or somebody has taken it away
            os.rename(f"{name}.md", f"{name}.{number}.md")
