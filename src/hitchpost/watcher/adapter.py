"""What every adapter does by what the catalog says of its agent. Adapters of single agents add what they know."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from hitchpost.agents import rules
from hitchpost.agents.catalog import RULES
from hitchpost.errors import MALFORMED
from hitchpost.model.attention import (
    AT_PROMPT,
    BLOCKED,
    DONE,
    ERROR,
    HOOKS,
    OSC,
    PERMISSION,
    QUESTION,
    SCREEN,
    TITLE,
    UNKNOWN,
    WORKING,
    is_said,
)
from hitchpost.watcher.key_answers import KeyAnswers
from hitchpost.watcher.looks import RULES_S, SHOWN_S, Looks, NothingSeen
from hitchpost.watcher.prompts import PROOF_S, READY_S, Prompts, not_sent
from hitchpost.watcher.time_limit import at_most
from hitchpost.watcher.title_prompt import TitlePrompt

if TYPE_CHECKING:
    from hitchpost.watcher.watching import Watching

__all__ = ["HOOKS", "OSC", "PROOF_S", "READY_S", "SCREEN", "TITLE", "Adapter"]

HAD_TURN = (WORKING, DONE, ERROR)


class Adapter:
    """``sources`` has the best one first."""

    sources: tuple[str, ...] = (OSC, HOOKS, TITLE, SCREEN)

    def __init__(self, watching: Watching) -> None:
        self.watching, self.agent = watching, watching.agent
        self.rules = rules.load(self.agent.name)
        self._waiting: list[asyncio.Event] = []
        self._proof: tuple[str, str] | None = None
        self.typed = ""
        """The prompt that was typed last."""
        self._typed_at_prompt = ""
        """What the agent was then, if it was at its prompt."""
        self._busy_at = (0.0, "")
        self.was_at_prompt = self._has_turn = False
        self._looks = Looks(watching.start, self._take_look, self._after_looks)
        self._title = TitlePrompt(self)
        self._prompts = Prompts(self)
        self._key_answers = KeyAnswers(self)

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
            self.look(screen=self._title.is_overdue or SCREEN in self.watching.evidence)
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
            if self._is_of_turn(said.state) and said.at > self._busy_at[0]:
                self._busy_at = (said.at, f"{said.source}: {said.state}")
        self._note_turn()
        verdict = self.watching.verdict
        self.was_at_prompt = self.was_at_prompt or (verdict is not None and verdict.state in AT_PROMPT)
        for waiting in self._waiting:
            waiting.set()

    def _is_of_turn(self, state: str) -> bool:
        """Whether an agent that says this has begun with the prompt. A short turn may be over when it is looked at."""
        is_over = state in (DONE, ERROR) and self._typed_at_prompt not in ("", state)
        return state in (WORKING, BLOCKED) or is_over

    def _note_turn(self) -> None:
        """An agent that was at its prompt, and then did something, has had a turn: its conversation can be resumed.

        Adapters of single agents hear of that from the agent.
        """
        verdict = self.watching.verdict
        if verdict is None or self._has_turn or self.agent.adapter != RULES:
            return
        if self.was_at_prompt and (verdict.state in HAD_TURN or verdict.kind in (PERMISSION, QUESTION)):
            self._has_turn = True
            self.watching.conversation("", begun=True)

    def on_keys(self) -> None:
        """Somebody types in the terminal. What is on the screen then may be asked again, in the same words."""
        asked = self.watching.evidence.get(SCREEN)
        if asked is not None and asked.request:
            self.watching.ask_anew(SCREEN)

    async def hear_hook(self, name: str, payload: str) -> str:
        """The agent's hook calls. What is returned is printed by the hook."""
        try:
            told = json.loads(payload or "{}")
        except MALFORMED:
            return ""
        answer = await self.on_hook(name, told if isinstance(told, dict) else {})
        return "" if answer is None else json.dumps(answer)

    async def on_hook(self, name: str, told: dict[str, Any]) -> dict[str, Any] | None:
        return None

    @property
    def has_reported(self) -> bool:
        return any(source in self.watching.evidence for source in self.sources if source != SCREEN)

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

    # the screen ---------------------------------------------------------------------------------------------------

    def look(self, *, screen: bool = True) -> None:
        """Read the title and the screen soon."""
        self._looks.ask(screen=screen)

    async def _take_look(self, screen_too: bool) -> None:
        try:
            for title in await asyncio.to_thread(self.watching.title.read) if self.rules.title else ():
                self._title.on_title(title)
            if screen_too:
                self.on_screen(await self.watching.screen.text())
        except NothingSeen as error:
            if not self._is_said(SCREEN, UNKNOWN, error.message):
                self.watching.put(SCREEN, UNKNOWN, message=error.message)

    def _after_looks(self) -> None:
        if self.rules.only_at_start and self.has_reported:
            self.watching.screen.close()

    def end_of_turn(self) -> str | None:
        """How a turn has ended, as far as the title cannot tell; None while somebody else is about to say it."""
        return DONE

    def read_screen(self, text: str) -> rules.Match | None:
        """What the screen says of the agent."""
        return rules.first_match(self.rules.screen, text)

    def match(self, text: str) -> rules.Match | None:
        """The same, in the time that it may take. Raises ``TooLong``."""
        with at_most(RULES_S):
            return self.read_screen(text)

    def composed(self, text: str) -> str | None:
        """What a person has typed into the agent's prompt; None when the screen shows no prompt. Raises ``TooLong``."""
        if self.rules.composer is None:
            return None
        with at_most(RULES_S):
            return rules.composed(self.rules.composer, text)

    def on_screen(self, text: str) -> None:
        found, at = self.match(text), self.watching.screen.read_at
        if found is None:
            self.watching.forget(SCREEN, at=at)
        elif (
            not self._is_said(SCREEN, found.state, found.message)
            or self.watching.evidence[SCREEN].background != found.details["background"]
        ):
            if found.rule.can_be_answered:
                found.details["request"] = self.watching.new_request()
            self.watching.put(SCREEN, found.state, at=at, **found.details)
        self._title.on_screen(text, found)

    async def seen(self) -> str:
        """The screen as it is now, and what it says of the agent."""
        text = await self.watching.screen.text()
        if not self.rules.only_at_start:
            self.on_screen(text)
        return text

    def _is_said(self, source: str, state: str, message: str) -> bool:
        return is_said(self.watching.evidence, source, state, message)

    # prompts and answers ------------------------------------------------------------------------------------------

    async def send(self, text: str, *, enter: bool) -> dict[str, Any]:
        """Deliver a prompt. The answer says what proved it."""
        return await self._prompts.send(text, enter=enter)

    async def send_with_images(self, text: str, images: tuple[str, ...]) -> dict[str, Any]:
        """``images`` are names of what the session keeps. What is typed has none."""
        return not_sent(f"{self.agent.title} takes no images here")

    async def take_back(self, prompt: str) -> dict[str, Any]:
        """Forget a prompt that waits. Most agents keep those themselves."""
        return {"ok": False, "why": f"no prompt of {self.agent.title} waits here"}

    async def interrupt(self) -> dict[str, Any]:
        """End its turn. Most agents hear only a key for that, and each another one."""
        return {"ok": False, "why": f"{self.agent.title} is interrupted in its terminal"}

    async def refusal(self) -> str | None:
        """Why the agent takes no prompt now. One that has just been started gets time to become ready."""
        return await self._prompts.refusal()

    async def unsent(self) -> str | None:
        """Why a text must not be typed, as far as only the screen knows: there is another text, or no prompt."""
        return await self._prompts.unsent()

    def prompted(self, text: str, by: str) -> None:
        """The agent has shown that it has a prompt."""
        self._proof = (text, by)
        self.on_verdict()

    def forget_proof(self, text: str) -> None:
        """``text`` is typed next: what was proven before counts no more."""
        self._proof, self.typed = None, text
        verdict = self.watching.verdict
        self._typed_at_prompt = verdict.state if verdict is not None and verdict.state in AT_PROMPT else ""

    @property
    def title_will_tell(self) -> bool:
        """Whether the title must change when the agent has the text: it was at its prompt, and no title is missed."""
        return bool(self.rules.title and self._typed_at_prompt)

    def proof_since(self, began: float) -> str | None:
        """What shows that the agent has the prompt: its own word, else that it began to work just then."""
        if self._proof is not None:
            return self._proof[1]
        if HOOKS in self.rules.proofs:
            return None
        return self._busy_at[1] if self._busy_at[0] >= began else None

    async def answer(self, request: str, choice: str, message: str) -> dict[str, Any]:
        """Answer what the agent asks. Exactly once: a request that is gone is refused."""
        answer = await self._key_answers.answer(request, choice)
        if message and answer["ok"]:
            answer["untold"] = await self._tell_why(message)
        return answer

    async def _tell_why(self, message: str) -> str:
        """What goes with an answer that was a key is the next prompt. Why the agent has not got it, if so."""
        await self.until(lambda: (verdict := self.watching.verdict) is not None and verdict.state in AT_PROMPT, SHOWN_S)
        sent = await self.watching.send(message, enter=True)
        return "" if sent["ok"] else str(sent["why"])
