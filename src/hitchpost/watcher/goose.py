"""goose: which conversation it is in stands in what it prints when it starts, and it stays in the session's folder."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from hitchpost.agents import rules
from hitchpost.model.attention import PERMISSION
from hitchpost.terminal.readlines import plain
from hitchpost.watcher.adapter import SCREEN
from hitchpost.watcher.lines import Lines

if TYPE_CHECKING:
    from hitchpost.watcher.watching import Watching

_ID = re.compile(r"^ +\\____\) +(?P<id>\d{8}_\d+) · ", re.MULTILINE)

HEADING, ASKS = "\n  \x1b[2m▸\x1b[0m ".encode(), "\x1b[36m◆\x1b[0m  Goose would like to call".encode()
"""Before the tool that it asks for, and after. A command can have such lines, too, but not in these colours."""

MOVES = "WARNING: The original working directory of this session"
"""A fork begins in the folder of the other, unless it is told to stay in its own."""


class Goose(Lines):
    def __init__(self, watching: Watching) -> None:
        super().__init__(watching)
        self._knows_id = False
        self._stays = False

    def read_screen(self, text: str) -> rules.Match | None:
        found = super().read_screen(text)
        if found is None or found.details["kind"] != PERMISSION:
            return found
        _, headed, call = self.lines.printed_bytes().rpartition(HEADING)
        asked = " ".join(plain(call.partition(ASKS)[0]).split()) if headed else ""
        return replace(found, message=asked, details={**found.details, "message": asked}) if asked else found

    def on_screen(self, text: str) -> None:
        """Only before it has taken a line: what it prints later on may be the model's."""
        super().on_screen(text)
        if self.lines.taken:
            return
        found = None if self._knows_id else _ID.search(text)
        if found is not None:
            self._knows_id = True
            self.watching.conversation(found["id"], begun=False)
        asked = self.watching.evidence.get(SCREEN)
        if asked is not None and asked.message.startswith(MOVES) and not self._stays:
            self._stays = True
            self.watching.start(self.answer(asked.request, "no", ""))
