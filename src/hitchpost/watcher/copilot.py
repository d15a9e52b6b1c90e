"""GitHub Copilot CLI: its screen says what it is doing, its hooks which prompt it has and how a turn has ended."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hitchpost.agents import rules
from hitchpost.model.attention import AT_PROMPT, DONE, ERROR, IDLE, LIMIT, WORKING
from hitchpost.watcher.adapter import SCREEN
from hitchpost.watcher.looks import LOOK_S
from hitchpost.watcher.shown import Shown

if TYPE_CHECKING:
    from hitchpost.watcher.watching import Watching

TOO_MANY = 429
LIMIT_WORDS = ("rate limit", "rate_limit", "quota", "usage limit", "premium request")
COMMAND = "/"
COMMAND_S = 5.0
"""How long a command may take to have an effect. One that has none, or was taken back, has it then."""


class Copilot(Shown):
    """No hook tells of a turn that was interrupted: one that ended without a hook was.

    After ``/clear`` its screen is for a while as it was, with an empty prompt, and so is its conversation.
    """

    def __init__(self, watching: Watching) -> None:
        super().__init__(watching)
        self._ended: tuple[str, dict[str, Any]] = (IDLE, {})
        self._before = ""
        """What its screen showed above an empty prompt."""
        self._commanded_at: float | None = None
        """When a command was last seen in its prompt, while nothing else has changed since."""
        self._is_empty = False

    def on_output(self) -> None:
        """At its prompt it prints what somebody types: a command is there for a moment only."""
        if self.watching.verdict is not None and self.watching.verdict.state in AT_PROMPT:
            self._looked_at = 0.0
        super().on_output()

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
        if found is not None and found.state != IDLE:
            self._commanded_at = None
            return found
        self._note_command(text, at_prompt=found is not None)
        if found is None:
            return None
        state, more = self._ended
        return replace(found, state=state, message=more.get("message", ""), details={**found.details, **more})

    def _note_command(self, text: str, *, at_prompt: bool) -> None:
        """``at_prompt``: nothing else is shown. While it is drawn, or proposes commands, something is."""
        composer = self.rules.composer
        prompts = list(composer.finditer(text)) if composer is not None else []
        if not prompts:
            return
        now, above, composed = time.monotonic(), text[: prompts[-1].start()], prompts[-1]["text"].strip()
        self._is_empty = not composed
        if composed.startswith(COMMAND):
            self._commanded_at = now
        elif at_prompt:
            is_over = composed or above != self._before or now - (self._commanded_at or 0.0) > COMMAND_S
            self._commanded_at = None if is_over else self._commanded_at
            self._before = self._before if composed else above

    async def refusal(self) -> str | None:
        """A prompt waits for the effect of a command that has left the agent's own."""
        await self.seen()
        while self._commanded_at is not None and self._is_empty:
            await asyncio.sleep(LOOK_S)
            await self.seen()
        return await super().refusal()


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
