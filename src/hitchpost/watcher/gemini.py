"""Gemini CLI: its window title says what it does, its screen what it asks and what went wrong."""

from __future__ import annotations

import re
from typing import Any

from hitchpost.model.attention import AT_PROMPT, BLOCKED, WORKING
from hitchpost.store.session import Session
from hitchpost.watcher.adapter import SCREEN, TITLE, Adapter

_BARE = re.compile(
    r"\A\s*▝▜▄ +Gemini CLI v[^\n]*\n(?:(?! >|[✦✕ℹ╭]|▄{10}|▀{10})[^\n]*\n){1,12}?[^\n]*\? for shortcuts\n─{10,}\n"
)
"""As it starts, or when its conversation was cleared. What it calls the next one, it does not say."""


class Gemini(Adapter):
    sources = (TITLE, SCREEN)

    def __init__(self, watching: Any) -> None:
        super().__init__(watching)
        self._has_begun = False

    def on_screen(self, text: str) -> None:
        """A dialog that it shows counts more than its title, which says "working" beside some of them."""
        found = self.match(text)
        dialog = found is not None and found.state == BLOCKED
        self.sources = (SCREEN, TITLE) if dialog else (TITLE, SCREEN)
        super().on_screen(text)
        title = self.watching.evidence.get(TITLE)
        if self._has_begun and title is not None and title.state in AT_PROMPT and _BARE.search(text):
            self._has_begun = False
            self.watching.forget_conversation()

    def on_verdict(self) -> None:
        """What it works at, it has written down: the conversation can be resumed."""
        said = self.watching.evidence.get(TITLE)
        if said is not None and said.state == WORKING and not self._has_begun:
            self._has_begun = True
            record = Session(self.watching.session_folder, actor="agent").record()
            if record.conversation_id:
                self.watching.conversation(record.conversation_id, begun=True)
        super().on_verdict()
