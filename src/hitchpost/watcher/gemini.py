"""Gemini CLI: its window title says what it does, its screen what it asks and what went wrong."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

from hitchpost.agents import rules
from hitchpost.model.attention import AT_PROMPT, BLOCKED, STARTING, UNKNOWN, WORKING
from hitchpost.store import runfiles
from hitchpost.store.session import Session
from hitchpost.watcher.adapter import SCREEN, TITLE, Adapter

LOADS_S = 40.0
"""How long it may look as if it were loading. Where its terminal is so low that its prompt fills it, it always does."""
_LOADING = rules.Rule(UNKNOWN, (), kind=STARTING, message="it is loading", adds=True)
_ONLY_PROMPT = re.compile(
    r"\A\s*(?:[^\n]*(?:for shortcuts|twice for more)[^\n]*\n)?─{10,}\n(?:[^\n]*\n)?▄{10,}\n [>!*] "
)
"""Its prompt, with nothing above it: it takes texts and keeps them until it has loaded what it needs. If that is a
conversation, it forgets them then."""

_BARE = re.compile(
    r"\A\s*▝▜▄ +Gemini CLI v[^\n]*\n(?:(?! >|[✦✕ℹ╭]|▄{10}|▀{10})[^\n]*\n){1,12}?[^\n]*\? for shortcuts\n─{10,}\n"
)
"""As it starts, or when its conversation was cleared. What it calls the next one, it does not say."""


class Gemini(Adapter):
    sources = (TITLE, SCREEN)

    def __init__(self, watching: Any) -> None:
        super().__init__(watching)
        self._has_begun = False
        self._loading_since: float | None = None
        self._has_loaded = False
        run = runfiles.read_run(watching.run_folder)
        self._resumes = run is not None and any(word.startswith(("--resume", "-r")) for word in run.argv)

    def read_screen(self, text: str) -> rules.Match | None:
        found = super().read_screen(text)
        return found if found is not None or not self._is_loading(text) else rules.first_match((_LOADING,), text)

    def _is_loading(self, text: str) -> bool:
        """Its title says that it is ready, and it is not: it shows its banner later, and what it resumes after that."""
        if self._has_loaded or self.rules.composer is None or rules.composed(self.rules.composer, text) is None:
            return False
        loading = bool(_ONLY_PROMPT.search(text) or (self._resumes and _BARE.search(text)))
        if loading and self._loading_since is None:
            self._loading_since = time.monotonic()
            asyncio.get_running_loop().call_later(LOADS_S, self.look)
        self._has_loaded = not loading or time.monotonic() - (self._loading_since or 0.0) >= LOADS_S
        return not self._has_loaded

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
        self._has_loaded = self._has_loaded or self._has_begun
        super().on_verdict()
