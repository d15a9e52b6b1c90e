"""Answering by a key that the screen's rules name, or by a line: only if the screen shows that very question now."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from hitchpost.model.attention import BLOCKED, SCREEN, Evidence
from hitchpost.watcher.looks import LOOK_S, SHOWN_S

if TYPE_CHECKING:
    from hitchpost.watcher.adapter import Adapter

NOTHING_ASKED = "nothing is asked that can be answered here, or it was answered already"


class KeyAnswers:
    def __init__(self, adapter: Adapter) -> None:
        self._adapter, self._watching = adapter, adapter.watching

    async def answer(self, request: str, choice: str) -> dict[str, Any]:
        """One at a time: the second finds what the first has changed."""
        if not any(rule.can_be_answered for rule in self._adapter.rules.screen):
            title = self._adapter.agent.title
            return {"ok": False, "why": f"{title} cannot be answered from outside; attach to it instead"}
        asked = self._asked()
        found = self._adapter.match(await self._adapter.seen())
        if asked is None or found is None or self._asked() is not asked or request not in ("", asked.request):
            return {"ok": False, "why": NOTHING_ASKED}
        keys = dict(found.rule.options)
        if choice not in keys and not found.rule.takes_text:
            return {"ok": False, "why": f"expected one of {', '.join(keys)}, but got {choice}"}
        if "\n" in choice or "\r" in choice:
            return {"ok": False, "why": "it reads one line, and this text has several"}
        pressed_at = time.monotonic()
        if choice in keys:
            await self._watching.link.press(keys[choice])
        else:
            await self._watching.link.type(choice, force=True)
        deadline = time.monotonic() + SHOWN_S
        while self._asked() is asked:
            if time.monotonic() > deadline:
                return {"ok": False, "why": f"{choice} was typed, but the question is still shown"}
            await asyncio.sleep(LOOK_S)
            await self._adapter.seen()
        self._watching.delivered(pressed_at)
        return {"ok": True, "request": asked.request, "choice": choice}

    def _asked(self) -> Evidence | None:
        """What the screen asks, when that is what the agent waits for."""
        verdict, asked = self._watching.verdict, self._watching.evidence.get(SCREEN)
        blocked = verdict is not None and verdict.state == BLOCKED and asked is not None and asked.state == BLOCKED
        return asked if blocked and asked is not None and asked.request else None
