"""What every adapter does by what the catalog says of its agent. Adapters of single agents add what they know."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

from hitchpost.agents import rules
from hitchpost.model import attention
from hitchpost.model.attention import AT_PROMPT, BLOCKED, DONE, IDLE, UNKNOWN, WORKING, Evidence
from hitchpost.values import asdict
from hitchpost.watcher.screen import NoScreen
from hitchpost.watcher.time_limit import TooLong, at_most

if TYPE_CHECKING:
    import re

    from hitchpost.watcher.watching import Watching

OSC, HOOKS, SCREEN, TITLE = "osc7501", "hooks", "screen", "title"
RULES_S = 0.25
"""On a processor, for all patterns together. More means that the screen was drawn to make them slow."""
LOOK_PAUSE, LONGEST_LOOK_PAUSE_S = 2.0, 1.0
"""After each look, so many times as long as it took: a flood of the screen costs a third of a core at most."""
READY_S = 20.0
PROOF_S = 10.0
"""How long an agent may take to show that it has a prompt. Then the prompt counts as typed, and not confirmed."""
SHOWN_S, LOOK_S = 8.0, 0.1
"""How long what was typed may take to be seen on the screen, and how often the screen is read for it."""
LONGEST_UNREST_S = 1.0
"""An agent that goes on printing at its prompt is looked at all the same, after this time."""
ENTERS, TAKEN_S = 3, 2.0
"""How often Enter is pressed for a text that still stands in the prompt so long after the last one."""
NOTHING_ASKED = "nothing is asked that can be answered here, or it was answered already"
NO_PROMPT = "it does not show its prompt"
ODD_TITLE = "its window title says nothing that is known"
NOT_READY = "it did not show its prompt within {:g} s"


class Adapter:
    """``sources`` has the best one first."""

    sources: tuple[str, ...] = (OSC, HOOKS, TITLE, SCREEN)

    def __init__(self, watching: Watching) -> None:
        self.watching, self.agent = watching, watching.agent
        self.rules = rules.load(self.agent.name)
        self._waiting: list[asyncio.Event] = []
        self._proof: tuple[str, str] | None = None
        self._sending = asyncio.Lock()
        self._busy_at = (0.0, "")
        self._looking = False
        self._look_again = False
        self._screen_too = False
        self._at_prompt: tuple[float, bool, dict[str, Any]] | None = None
        self._answering = asyncio.Lock()

    async def run(self) -> None:
        """What goes on for as long as the agent runs."""
        await asyncio.Event().wait()

    # what is heard ------------------------------------------------------------------------------------------------

    def on_osc7501(self, report: dict[str, Any] | None) -> None:
        if report is None:
            self.watching.forget(OSC)
            return
        self.watching.put(OSC, report["state"], kind=report.get("kind", ""), message=report.get("message", ""))

    def on_output(self) -> None:
        """The agent prints. Called again and again while it goes on."""
        if self.rules.title:
            waits = self._at_prompt is not None and time.monotonic() - self._at_prompt[0] > LONGEST_UNREST_S
            self.look(screen=waits or SCREEN in self.watching.evidence)
        elif self.rules.screen and not self.rules.only_at_start:
            self.look()

    def on_quiet(self) -> None:
        """The agent has stopped printing for a moment."""
        if self.rules.screen and (not self.rules.only_at_start or not self.has_reported):
            self.look()
        elif self.rules.title:
            self.look(screen=False)

    def on_verdict(self) -> None:
        """What is known has changed: wake those who wait for it."""
        for said in self.watching.evidence.values():
            if said.state in (WORKING, BLOCKED) and said.at > self._busy_at[0]:
                self._busy_at = (said.at, f"{said.source}: {said.state}")
        for waiting in self._waiting:
            waiting.set()

    async def hear_hook(self, name: str, payload: str) -> str:
        """The agent's hook calls. What is returned is printed by the hook."""
        try:
            told = json.loads(payload or "{}")
        except (ValueError, RecursionError):
            return ""
        answer = await self.on_hook(name, told if isinstance(told, dict) else {})
        return "" if answer is None else json.dumps(answer)

    async def on_hook(self, name: str, told: dict[str, Any]) -> dict[str, Any] | None:
        return None

    @property
    def has_reported(self) -> bool:
        return any(source in self.watching.evidence for source in self.sources if source != SCREEN)

    # the screen ---------------------------------------------------------------------------------------------------

    def look(self, *, screen: bool = True) -> None:
        """Read the title and the screen soon. Looks that are asked for meanwhile become one."""
        self._look_again = True
        self._screen_too = self._screen_too or screen
        if not self._looking:
            self._looking = True
            self.watching.start(self._look())

    async def _look(self) -> None:
        try:
            while self._look_again:
                self._look_again, screen_too, self._screen_too = False, self._screen_too, False
                began = time.monotonic()
                try:
                    for title in await asyncio.to_thread(self.watching.title.read) if self.rules.title else ():
                        self.on_title(title)
                    if screen_too:
                        self.on_screen(await self.watching.screen.text())
                except (NoScreen, TooLong) as error:
                    if not self._is_said(SCREEN, UNKNOWN, error.message):
                        self.watching.put(SCREEN, UNKNOWN, message=error.message)
                await asyncio.sleep(min(LOOK_PAUSE * (time.monotonic() - began), LONGEST_LOOK_PAUSE_S))
        finally:
            self._looking = False
        if self.rules.only_at_start and self.has_reported:
            self.watching.screen.close()

    def on_title(self, text: str) -> None:
        """That it is at its prompt counts when the screen shows it, or else a dialog, which has the same title."""
        with at_most(RULES_S):
            found = rules.first_match(self.rules.title, text)
        state, details = (found.state, found.details) if found is not None else (UNKNOWN, {"message": ODD_TITLE})
        said = self.watching.evidence.get(TITLE)
        if state in AT_PROMPT and (said is None or said.state not in AT_PROMPT):
            ended = said is not None and said.state == WORKING
            self._at_prompt = self._at_prompt or (time.monotonic(), ended, details)
            if not self.rules.screen:
                self._settle()
            return
        self._at_prompt = None
        if state not in AT_PROMPT and not self._is_said(TITLE, state, str(details.get("message", ""))):
            if state == WORKING:
                self.watching.evidence.pop(SCREEN, None)
            self.watching.put(TITLE, state, **details)

    def _settle(self) -> None:
        if self._at_prompt is not None:
            _, ended, details = self._at_prompt
            self._at_prompt = None
            self.watching.put(TITLE, self.end_of_turn() if ended else IDLE, **details)

    def end_of_turn(self) -> str:
        """How a turn has ended, as far as the title cannot tell."""
        return DONE

    def read_screen(self, text: str) -> rules.Match | None:
        """What the screen says of the agent."""
        return rules.first_match(self.rules.screen, text)

    def match(self, text: str) -> rules.Match | None:
        """The same, in the time that it may take. Raises ``TooLong``."""
        with at_most(RULES_S):
            return self.read_screen(text)

    def on_screen(self, text: str) -> None:
        found = self.match(text)
        if found is None:
            self.watching.forget(SCREEN)
        elif not self._is_said(SCREEN, found.state, found.message):
            if found.rule.options:
                found.details["request"] = self.watching.new_request()
            self.watching.put(SCREEN, found.state, **found.details)
        if self._at_prompt is None:
            return
        composer = self.rules.composer if self.rules.enter_after_s else None
        if found is not None or composer is None or self._in_composer(composer, text) is not None:
            self._settle()
        elif time.monotonic() - self._at_prompt[0] < SHOWN_S:
            asyncio.get_running_loop().call_later(LOOK_S, self.look)
        elif not self._is_said(TITLE, UNKNOWN, NO_PROMPT):
            self.watching.put(TITLE, UNKNOWN, message=NO_PROMPT)

    def _is_said(self, source: str, state: str, message: str) -> bool:
        """Whether a source has said just this, last: saying it again would make it newer than it is."""
        said = self.watching.evidence.get(source)
        return said is not None and (said.state, said.message) == (state, attention.plain(message))

    # prompts ------------------------------------------------------------------------------------------------------

    async def send(self, text: str, *, enter: bool) -> dict[str, Any]:
        """Deliver a prompt. The answer says what proved it."""
        async with self._sending:  # the proof of one must not be taken for that of another
            return await self._send(text, enter=enter)

    async def _send(self, text: str, *, enter: bool) -> dict[str, Any]:
        if (why := await self.refusal()) is not None:
            return {"ok": False, "why": why}
        guarded = rules.guarded(self.rules.prompt, text)
        if guarded is None:
            return {"ok": False, "why": f"{self.agent.title} would take this text as a command, not as a prompt"}
        return await self.type_prompt(text, guarded, enter=enter)

    async def refusal(self) -> str | None:
        """Why the agent takes no prompt now. One that has just been started gets time to become ready."""
        await self.until(lambda: self.watching.verdict is not None and self.watching.verdict.state != UNKNOWN, READY_S)
        report = None if self.watching.verdict is None else asdict(self.watching.verdict)
        if report is None:
            return NOT_READY.format(READY_S)
        if (why := attention.refusal(report, queues=self.rules.queues)) is not None:
            return why
        return await self.unsent(working=report["state"] == WORKING)

    async def _composed(self, composer: re.Pattern[str]) -> str | None:
        return self._in_composer(composer, await self._seen())

    def _in_composer(self, composer: re.Pattern[str], text: str) -> str | None:
        with at_most(RULES_S):
            return rules.composed(composer, text)

    async def unsent(self, *, working: bool) -> str | None:
        """Why a text must not be typed, as far as only the screen knows: there is another text, or no prompt."""
        careful = self.rules.enter_after_s > 0
        if self.rules.composer is not None and (careful or not working):
            left, deadline = await self._composed(self.rules.composer), time.monotonic() + SHOWN_S
            while left is None and careful and self._blocked() is None:
                if time.monotonic() > deadline:
                    return NO_PROMPT
                await asyncio.sleep(LOOK_S)
                left = await self._composed(self.rules.composer)
            self._close_screen()
            if left:
                return f"there is unsent text in the agent's prompt: {left[:80]!r}"
        return self._blocked()

    async def _seen(self) -> str:
        """The screen as it is now, and what it says of the agent."""
        text = await self.watching.screen.text()
        if not self.rules.only_at_start:
            self.on_screen(text)
        return text

    def _blocked(self) -> str | None:
        """Why nothing may be typed, as far as that is known now."""
        verdict = self.watching.verdict
        return None if verdict is None else attention.refusal(asdict(verdict), queues=self.rules.queues)

    async def type_prompt(self, text: str, guarded: str, *, enter: bool) -> dict[str, Any]:
        began = time.monotonic()
        self._proof = None
        careful = enter and self.rules.enter_after_s > 0
        offset = await self.watching.link.type(guarded, enter=enter and not careful)
        if careful and (why := await self._press_enter(text, began)) is not None:
            return {"ok": False, "why": why}
        answer: dict[str, Any] = {"ok": True, "offset": offset, "proof": ""}
        if not enter:
            return answer
        self.watching.delivered(began)
        await self.until(lambda: self._proven(began) is not None, PROOF_S)
        return {**answer, "proof": self._proven(began) or ""}

    async def _press_enter(self, text: str, began: float) -> str | None:
        """When the text stands in the agent's prompt, and nothing else came up meanwhile. Why not, if so.

        Again while it still stands there: right after a paste, Enter is a new line to some.
        """
        composer, deadline = self.rules.composer, time.monotonic() + SHOWN_S
        while composer is not None and not await self._composed(composer):
            if time.monotonic() > deadline:
                return "the text was typed, but does not stand in the agent's prompt; it was not sent"
            await asyncio.sleep(LOOK_S)
        for _ in range(ENTERS):
            await asyncio.sleep(self.rules.enter_after_s)
            await self._seen()
            if (why := self._blocked()) is not None:
                return f"the text stands in the agent's prompt, and was not sent: {why}"
            await self.watching.link.press("\r")
            self.watching.delivered()
            if await self.until(lambda: self._proven(began) is not None, TAKEN_S):
                return None
            left = await self._composed(composer) if composer is not None else None
            if left == "" and HOOKS not in self.rules.proofs:
                self.prompted(text, "screen: the text has left its prompt")
            if not left:
                return None
        return None

    def prompted(self, text: str, by: str) -> None:
        """The agent has shown that it has a prompt."""
        self._proof = (text, by)
        self.on_verdict()

    def _proven(self, began: float) -> str | None:
        """What shows that the agent has the prompt: its own word, else that it began to work just then."""
        if self._proof is not None:
            return self._proof[1]
        if HOOKS in self.rules.proofs:
            return None
        return self._busy_at[1] if self._busy_at[0] >= began else None

    async def until(self, condition: Any, timeout_s: float) -> bool:
        """Wait for a condition of what is known. False when time is up."""
        changed = asyncio.Event()
        self._waiting.append(changed)
        try:
            async with asyncio.timeout(timeout_s):
                while not condition():
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            return False
        finally:
            self._waiting.remove(changed)
        return True

    def _close_screen(self) -> None:
        if self.rules.only_at_start:
            self.watching.screen.close()

    # answers ------------------------------------------------------------------------------------------------------

    async def answer(self, request: str, choice: str, message: str) -> dict[str, Any]:
        """Answer what the agent asks. Exactly once: a request that is gone is refused.

        By a key, when the screen's rules have one for it: only if the screen shows that very question now.
        """
        async with self._answering:
            return await self._answer_by_key(request, choice)

    async def _answer_by_key(self, request: str, choice: str) -> dict[str, Any]:
        if not any(rule.options for rule in self.rules.screen):
            return {"ok": False, "why": f"{self.agent.title} cannot be answered from outside; attach to it instead"}
        asked = self._asked_on_screen()
        found = self.match(await self._seen())
        if asked is None or found is None or self._asked_on_screen() is not asked:
            return {"ok": False, "why": NOTHING_ASKED}
        if request not in ("", asked.request):
            return {"ok": False, "why": NOTHING_ASKED}
        keys = dict(found.rule.options)
        if choice not in keys:
            return {"ok": False, "why": f"expected one of {', '.join(keys)}, but got {choice}"}
        pressed_at = time.monotonic()
        await self.watching.link.press(keys[choice])
        deadline = time.monotonic() + SHOWN_S
        while self._asked_on_screen() is asked:
            if time.monotonic() > deadline:
                return {"ok": False, "why": f"the key for {choice} was pressed, but the question is still shown"}
            await asyncio.sleep(LOOK_S)
            await self._seen()
        self.watching.delivered(pressed_at)
        return {"ok": True, "request": asked.request, "choice": choice}

    def _asked_on_screen(self) -> Evidence | None:
        """What the screen asks, when that is what the agent waits for."""
        verdict, asked = self.watching.verdict, self.watching.evidence.get(SCREEN)
        blocked = verdict is not None and verdict.state == BLOCKED and asked is not None and asked.state == BLOCKED
        return asked if blocked and asked is not None and asked.request else None
