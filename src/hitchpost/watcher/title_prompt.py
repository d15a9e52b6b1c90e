"""What a window title says. An agent at its prompt and one with a dialog open have the same title, so "at the prompt"
counts only when the screen agrees."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from hitchpost.agents import rules
from hitchpost.model.attention import AT_PROMPT, IDLE, SCREEN, TITLE, UNKNOWN, WORKING, is_said
from hitchpost.watcher.looks import LOOK_S, RULES_S, SHOWN_S
from hitchpost.watcher.time_limit import at_most

if TYPE_CHECKING:
    from hitchpost.watcher.adapter import Adapter

LONGEST_UNREST_S = 1.0
"""The screen of an agent that goes on printing at its prompt is read all the same, after this time."""
SAID_S = 1.0
"""How long a hook may take to say how a turn has ended that the title says is over."""
NO_PROMPT = "it does not show its prompt"
ODD_TITLE = "its window title is not one that we know"


class TitlePrompt:
    """``_at_prompt``: since when the title has said so, whether a turn ended then, and what else it said."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter, self._watching = adapter, adapter.watching
        self._at_prompt: tuple[float, bool, dict[str, Any]] | None = None
        self._timer: asyncio.TimerHandle | None = None
        """To settle it. There is one at most, however often the screen is read meanwhile."""

    @property
    def is_overdue(self) -> bool:
        return self._at_prompt is not None and time.monotonic() - self._at_prompt[0] > LONGEST_UNREST_S

    def on_title(self, text: str) -> None:
        with at_most(RULES_S):
            found = rules.first_match(self._adapter.rules.title, text)
        state, details = (found.state, found.details) if found is not None else (UNKNOWN, {"message": ODD_TITLE})
        said = self._watching.evidence.get(TITLE)
        if state in AT_PROMPT and (said is None or said.state not in AT_PROMPT):
            ended = said is not None and said.state == WORKING
            self._at_prompt = self._at_prompt or (time.monotonic(), ended, details)
            if not self._adapter.rules.screen:
                self._settle()
            return
        self._leave_prompt()
        message = str(details.get("message", ""))
        if state not in AT_PROMPT and not is_said(self._watching.evidence, TITLE, state, message):
            if state == WORKING:
                self._watching.evidence.pop(SCREEN, None)
            self._watching.put(TITLE, state, **details)

    def on_screen(self, text: str, found: rules.Match | None) -> None:
        """The screen shows its prompt or something else that is known, or is looked at again for a while."""
        if self._at_prompt is None:
            return
        cannot_tell = not self._adapter.rules.enter_after_s or self._adapter.rules.composer is None
        if found is not None or cannot_tell or self._adapter.composed(text) is not None:
            self._settle()
        elif time.monotonic() - self._at_prompt[0] < SHOWN_S:
            asyncio.get_running_loop().call_later(LOOK_S, self._adapter.look)
        elif not is_said(self._watching.evidence, TITLE, UNKNOWN, NO_PROMPT):
            self._watching.put(TITLE, UNKNOWN, message=NO_PROMPT)

    def _settle(self) -> None:
        if self._at_prompt is None:
            return
        since, ended, details = self._at_prompt
        state = self._adapter.end_of_turn() if ended else IDLE
        if state is None and time.monotonic() - since < SAID_S:
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._settle_again)
            return
        self._leave_prompt()
        self._watching.put(TITLE, state or IDLE, **details)

    def _settle_again(self) -> None:
        self._timer = None
        self._settle()

    def _leave_prompt(self) -> None:
        self._at_prompt = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
