"""GitHub Copilot CLI: its screen says what it is doing, its hooks which prompt it has and how a turn has ended."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hitchpost.agents import rules
from hitchpost.model.attention import DONE, ERROR, IDLE, LIMIT, WORKING
from hitchpost.watcher.adapter import SCREEN
from hitchpost.watcher.shown import Shown

if TYPE_CHECKING:
    from hitchpost.watcher.watching import Watching

TOO_MANY = 429
LIMIT_WORDS = ("rate limit", "rate_limit", "quota", "usage limit", "premium request")


class Copilot(Shown):
    """No hook tells of a turn that was interrupted: one that ended without a hook was."""

    def __init__(self, watching: Watching) -> None:
        super().__init__(watching)
        self._ended: tuple[str, dict[str, Any]] = (IDLE, {})

    async def on_hook(self, name: str, told: dict[str, Any]) -> dict[str, Any] | None:
        session = str(told.get("sessionId") or "")
        if name == "sessionStart" and session:
            self.watching.conversation(session, begun=told.get("source") == "resume")
        elif name == "userPromptSubmitted" and session:
            self.watching.conversation(session, begun=True)
            self._ended = (IDLE, {})
            self.watching.put(SCREEN, WORKING)
            self.prompted(str(told.get("prompt", "")), name)
        elif name == "agentStop":
            self._ended = (DONE, {})
            self.look()
        elif name == "errorOccurred":
            text, limit = _error(told.get("error"))
            self._ended = (ERROR, {"message": text, "kind": LIMIT if limit else ""})
            self.look()
        return None

    def read_screen(self, text: str) -> rules.Match | None:
        found = super().read_screen(text)
        if found is None or found.state != IDLE:
            return found
        state, more = self._ended
        return replace(found, state=state, message=more.get("message", ""), details={**found.details, **more})


def _error(error: object) -> tuple[str, bool]:
    """The text of an error, which may be JSON in JSON, and whether it is a usage limit."""
    raw = str(error.get("message") or "") if isinstance(error, dict) else str(error or "")
    try:
        inner = json.loads(raw)
    except ValueError:
        inner = {}
    inner = inner if isinstance(inner, dict) else {}
    limit = inner.get("code") == TOO_MANY or any(word in raw.lower() for word in LIMIT_WORDS)
    return str(inner.get("message") or raw), limit
