"""Typing a prompt: only where it cannot be taken for something else, and with a proof that the agent has it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from hitchpost.agents import rules
from hitchpost.model import attention
from hitchpost.model.attention import HOOKS, STARTING, UNKNOWN
from hitchpost.values import asdict
from hitchpost.watcher.link import OthersKeys
from hitchpost.watcher.looks import LOOK_S, SHOWN_S
from hitchpost.watcher.title_prompt import NO_PROMPT

if TYPE_CHECKING:
    from hitchpost.watcher.adapter import Adapter

READY_S, START_S = 20.0, 40.0
"""How long a prompt waits until the agent is known to be at its own, and how long for one that has not been there yet:
where much else runs, some take that long to start."""
PROOF_S = 10.0
"""How long an agent may take to show that it has a prompt. Then the prompt counts as typed, and not confirmed."""
ENTERS, TAKEN_S = 3, 2.0
"""How often Enter is pressed for a text that is still in the prompt, and how long after the last time."""
NOT_READY = "it did not show its prompt within {:g} s"
NOT_IN_PROMPT = "the text was typed but is not in the agent's prompt; it was not sent"


def not_sent(why: str) -> dict[str, Any]:
    """The answer for a prompt of which nothing was typed or sent: who asked may try again."""
    return {"ok": False, "why": why, "unsent": True}


class Prompts:
    """``_careful``: Enter is pressed only when the screen shows the text in the agent's prompt."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter, self._watching = adapter, adapter.watching
        self._rules = adapter.rules
        self._careful = self._rules.enter_after_s > 0

    async def send(self, text: str, *, enter: bool) -> dict[str, Any]:
        """One at a time: the proof of one must not be taken for that of another.

        What somebody has just typed in the terminal may be a command, and its effect not on the screen yet.
        """
        guarded, deadline = rules.guarded(self._rules.prompt, text), time.monotonic() + READY_S
        while (why := await self._adapter.refusal()) is None:
            if guarded is None:
                title = self._adapter.agent.title
                return not_sent(f"{title} would take this text as a command, not as a prompt")
            try:
                return await self._type(text, guarded, enter=enter)
            except OthersKeys as error:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(error.wait_s)
        return not_sent(why)

    # before -------------------------------------------------------------------------------------------------------

    async def refusal(self) -> str | None:
        watching = self._watching
        ready_s = READY_S if self._adapter.was_at_prompt else START_S
        await self._adapter.until(lambda: watching.verdict is not None and watching.verdict.state != UNKNOWN, ready_s)
        if watching.verdict is None:
            return NOT_READY.format(ready_s)
        if (why := self._blocked()) is not None:
            return why
        return await self._adapter.unsent()

    async def unsent(self) -> str | None:
        if self._rules.composer is not None:
            left, deadline = await self._composed(), time.monotonic() + SHOWN_S
            while left is None and self._careful and self._blocked() is None:
                if time.monotonic() > deadline:
                    return NO_PROMPT
                await asyncio.sleep(LOOK_S)
                left = await self._composed()
            if self._rules.only_at_start:
                self._watching.screen.close()
            if left:
                return f"there is unsent text in the agent's prompt: {left[:80]!r}"
        return self._blocked()

    def _blocked(self) -> str | None:
        """Why nothing may be typed, as far as that is known now."""
        verdict = self._watching.verdict
        return None if verdict is None else attention.refusal(asdict(verdict), queues=self._rules.queues)

    async def _composed(self) -> str | None:
        return self._adapter.composed(await self._adapter.seen())

    # typing -------------------------------------------------------------------------------------------------------

    async def _type(self, text: str, guarded: rules.Guarded, *, enter: bool) -> dict[str, Any]:
        began = time.monotonic()
        self._adapter.forget_proof(text)
        careful = enter and self._careful
        if guarded.press:
            await self._watching.link.type(guarded.before, enter=False, alone=True)
            await self._watching.link.press(guarded.press)
        offset = await self._watching.link.type(guarded.text, enter=enter and not careful, alone=not guarded.press)
        if careful and (why := await self._press_enter(text, began)) is not None:
            return {"ok": False, "why": why, "typed": True}
        answer: dict[str, Any] = {"ok": True, "offset": offset, "proof": ""}
        if not enter:
            return answer
        self._watching.delivered(began)
        await self._proven(began, PROOF_S)
        return {**answer, "proof": self._adapter.proof_since(began) or ""}

    async def _press_enter(self, text: str, began: float) -> str | None:
        """When the text stands in the agent's prompt, and nothing else came up meanwhile. Why not, if so.

        Again while it still stands there: right after a paste, Enter is a new line to some.
        """
        has_composer, deadline = self._rules.composer is not None, time.monotonic() + SHOWN_S
        while has_composer and not await self._composed():
            if time.monotonic() > deadline:
                return NOT_IN_PROMPT
            await asyncio.sleep(LOOK_S)
        for _ in range(ENTERS):
            await asyncio.sleep(self._rules.enter_after_s)
            await self._adapter.seen()
            if self._is_starting():
                await self._adapter.until(lambda: not self._is_starting(), READY_S)
                if has_composer and not await self._composed():
                    return NOT_IN_PROMPT
            if (why := self._blocked()) is not None:
                return f"the text is in the agent's prompt but was not sent: {why}"
            pressed_at = time.monotonic()
            await self._watching.link.press("\r")
            self._watching.delivered(pressed_at)
            if await self._proven(began, TAKEN_S):
                return None
            left = await self._composed() if has_composer else None
            if left == "" and HOOKS not in self._rules.proofs and not self._adapter.title_will_tell:
                self._adapter.prompted(text, "screen: the text has left its prompt")
            if not left:
                return None
        return None

    def _is_starting(self) -> bool:
        """Whether it loads something first: at its start, or because it begins another conversation."""
        verdict = self._watching.verdict
        return verdict is not None and verdict.kind == STARTING

    async def _proven(self, began: float, timeout_s: float) -> bool:
        return await self._adapter.until(lambda: self._adapter.proof_since(began) is not None, timeout_s)
