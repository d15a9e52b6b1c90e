"""Answering by a key that the screen's rules name, or by a line: only if the screen shows that very question now."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from hitchpost.model.attention import BLOCKED, SCREEN, Evidence
from hitchpost.watcher.link import OthersKeys
from hitchpost.watcher.looks import LOOK_S, SHOWN_S

if TYPE_CHECKING:
    from hitchpost.watcher.adapter import Adapter

MOST_LINE_BYTES = 1000
ASKED_S = 2.0
"""How long the screen may take to show what was reported to be asked."""
NOTHING_ASKED = "nothing is asked that can be answered here, or it was answered already"


class KeyAnswers:
    def __init__(self, adapter: Adapter) -> None:
        self._adapter, self._watching = adapter, adapter.watching

    async def answer(self, request: str, choice: str) -> dict[str, Any]:
        """One at a time: the second finds what the first has changed."""
        if not any(rule.can_be_answered for rule in self._adapter.rules.screen):
            title = self._adapter.agent.title
            return {"ok": False, "why": f"{title} cannot be answered from outside; attach to it instead"}
        asked, pressed_at = self._asked() if request else await self._soon_asked(), 0.0
        if asked is None or request not in ("", asked.request):
            return {"ok": False, "why": NOTHING_ASKED}
        while not pressed_at:
            found = self._adapter.match(await self._adapter.seen())
            if found is None or self._asked() is not asked:
                return {"ok": False, "why": NOTHING_ASKED}
            keys = dict(found.rule.options)
            if choice not in keys and not found.rule.takes_text:
                return {"ok": False, "why": f"expected one of {', '.join(keys)}, but got {choice}"}
            if choice not in keys and (not choice.isprintable() or len(choice.encode()) > MOST_LINE_BYTES):
                return {"ok": False, "why": f"expected one line of text, of {MOST_LINE_BYTES} bytes at most"}
            pressed_at = await self._pressed(asked, keys.get(choice, f"{choice}\r"))
        deadline = time.monotonic() + SHOWN_S
        while (left := self._asked()) is not None and left.message == asked.message:
            if time.monotonic() > deadline:
                return {"ok": False, "why": f"{choice} was typed, but the question is still shown"}
            await asyncio.sleep(LOOK_S)
            await self._adapter.seen()
        self._watching.delivered(pressed_at)
        return {"ok": True, "request": asked.request, "choice": choice}

    async def _pressed(self, asked: Evidence, keys: str) -> float:
        """Press keys. When that was; 0 if the screen may not show yet what somebody else has typed.

        Whatever becomes of them, ``asked`` is answered: the same question has another name after that.
        """
        at = time.monotonic()
        try:
            await self._watching.link.press(keys, alone=True)
        except OthersKeys as error:
            at = 0.0
            await asyncio.sleep(error.wait_s)
        finally:
            if at and self._asked() is asked:
                self._watching.ask_anew(SCREEN)
        return at

    async def _soon_asked(self) -> Evidence | None:
        """What the screen asks. That something is asked may be reported before the screen shows it, or was read."""
        deadline = time.monotonic() + ASKED_S
        while (asked := self._asked()) is None and self._is_blocked() and time.monotonic() < deadline:
            await self._adapter.seen()
            await asyncio.sleep(LOOK_S)
        return asked

    def _is_blocked(self) -> bool:
        return self._watching.verdict is not None and self._watching.verdict.state == BLOCKED

    def _asked(self) -> Evidence | None:
        """What the screen asks, when that is what the agent waits for."""
        asked = self._watching.evidence.get(SCREEN)
        is_asked = self._is_blocked() and asked is not None and asked.state == BLOCKED and asked.request
        return asked if is_asked else None
