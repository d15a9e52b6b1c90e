"""An agent over ACP: our client of it says what it does, and takes prompts and answers."""

from __future__ import annotations

import asyncio
import json
import os
import time
from typing import Any

from hitchpost.agents.acp import MOST_LINE, SOCKET
from hitchpost.errors import MALFORMED
from hitchpost.model import attention
from hitchpost.model.attention import BLOCKED
from hitchpost.model.usage import Tokens, amount, came_to
from hitchpost.system.shortpath import ShortPath
from hitchpost.watcher.adapter import OSC, READY_S, Adapter
from hitchpost.watcher.prompts import not_sent

ACP = "acp"
TRY_EVERY_S = 0.05
ANSWER_S = 10.0
COST = "acp cost of "
"""Begins the name of the mark how much a conversation has cost so far: in a terminal it has another mark."""


class Acp(Adapter):
    sources = (ACP, OSC)

    def __init__(self, watching: Any) -> None:
        super().__init__(watching)
        self._writer: asyncio.StreamWriter | None = None
        self._next = 1
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._request = ("", "")
        self._conversation = ""
        self._counting = asyncio.Lock()

    async def run(self) -> None:
        """The client is there before the agent is. When it goes, so does the run."""
        while True:
            try:
                with ShortPath(self.watching.run_folder, SOCKET) as path:
                    reader, self._writer = await asyncio.open_unix_connection(path, limit=MOST_LINE)
            except OSError:
                await asyncio.sleep(TRY_EVERY_S)
                continue
            self.on_verdict()
            try:
                while line := await reader.readline():
                    self._hear(line)
            except (OSError, ValueError):
                pass  # it is gone, or says something without an end
            self._writer.close()
            self._writer = None
            for waiting in self._replies.values():
                waiting.cancel()
            await asyncio.sleep(TRY_EVERY_S)

    def _hear(self, line: bytes) -> None:
        try:
            told = json.loads(line)
            if (waiting := self._replies.pop(told.get("id"), None)) is not None and not waiting.done():
                waiting.set_result(told)
            elif told.get("event") == "state":
                self._on_state(told)
            elif told.get("event") == "conversation":
                self._conversation = str(told["id"])
                self.watching.conversation(self._conversation, begun=told["begun"] is True)
            elif told.get("event") == "answer":
                self.watching.answered(str(told["text"]))
            elif told.get("event") == "used":
                self.watching.start(self._count(self._conversation, told["usage"], told.get("cost")))
        except MALFORMED:
            return

    def _on_state(self, told: dict[str, Any]) -> None:
        """Requests get names of our own: those of the client begin anew in each run."""
        options, request = tuple(map(str, told["options"])), ""
        if told["request"]:
            request = self.watching.new_request()
            self._request = (request, str(told["request"]))
        how: dict[str, Any] = {
            "kind": str(told["kind"]),
            "message": str(told["message"]),
            "request": request,
            "options": options,
        }
        self.watching.put(ACP, str(told["state"]), **how)

    async def _count(self, conversation: str, used: dict[str, Any], cost: dict[str, float] | None) -> None:
        """One turn after the other: what it has cost is what came to the sum of those before."""
        async with self._counting:
            await asyncio.to_thread(self._note, conversation, used, cost)

    def _note(self, conversation: str, used: dict[str, Any], cost: dict[str, float] | None) -> None:
        """The sum outlives the process: agents that resume a conversation go on with its sum."""
        names = ("inputTokens", "cachedReadTokens", "cachedWriteTokens", "outputTokens")
        tokens, usage = Tokens(*(int(used.get(name) or 0) for name in names)), self.watching.usage
        if cost is None:
            usage.count(ACP, os.urandom(4).hex(), {"": tokens})
            return
        before = amount(usage.mark(COST + conversation))
        cost_usd = came_to(cost["usd"], cost["before_usd"] if before is None else before)
        usage.count(COST + conversation, cost["usd"], {"": tokens + Tokens(cost_usd=cost_usd)})

    # prompts and answers ------------------------------------------------------------------------------------------

    async def _ask(self, op: str, **fields: object) -> dict[str, Any]:
        await self.until(lambda: self._writer is not None, READY_S)
        if self._writer is None:
            return not_sent("the agent has just ended, or has not begun yet")
        number, self._next = self._next, self._next + 1
        waiting = self._replies[number] = asyncio.get_running_loop().create_future()
        self._writer.write(json.dumps({"id": number, "op": op, **fields}).encode() + b"\n")
        try:
            async with asyncio.timeout(ANSWER_S):
                reply: dict[str, Any] = await waiting
                return reply
        except TimeoutError:
            return {"ok": False, "why": f"it has not answered within {ANSWER_S:g} s"}
        finally:
            self._replies.pop(number, None)

    async def send(self, text: str, *, enter: bool) -> dict[str, Any]:
        """A prompt without Enter would have to stand somewhere until it is sent, and there is no such place."""
        if not enter:
            return not_sent("an agent over ACP gets a prompt whole, so it cannot be left without Enter")
        return await self.send_with_images(text, ())

    async def send_with_images(self, text: str, images: tuple[str, ...]) -> dict[str, Any]:
        """Prompts wait in the client until the agent is done with those before."""
        await self.until(lambda: ACP in self.watching.evidence, READY_S)
        verdict = self.watching.verdict
        if verdict is not None and verdict.state == BLOCKED:
            told = {"state": BLOCKED, "kind": verdict.kind, "message": verdict.message}
            return not_sent(str(attention.refusal(told)))
        began = time.monotonic()
        answer = await self._ask("prompt", text=text, images=images)
        if not answer["ok"]:
            return answer
        sent = {"ok": True, "offset": self.watching.end}
        if answer.get("waits"):  # a client of an older version does not say
            return {**sent, "proof": "", "waits": True}
        self.watching.delivered(began)
        return {**sent, "proof": "session/prompt"}

    async def take_back(self, prompt: str) -> dict[str, Any]:
        return await self._ask("take_back", prompt=prompt)

    async def interrupt(self) -> dict[str, Any]:
        answer = await self._ask("cancel")
        if answer["ok"] and not answer.get("was_working"):
            return {"ok": False, "why": "it does nothing that could be interrupted"}
        return answer

    async def answer(self, request: str, choice: str, message: str) -> dict[str, Any]:
        shown = self.watching.verdict.request if self.watching.verdict is not None else ""
        name, number = self._request
        if not shown or name != shown or request not in ("", shown):
            return {"ok": False, "why": "nothing is asked that can be answered here, or it was answered already"}
        began = time.monotonic()
        answer = await self._ask("answer", request=number, choice=choice)
        if answer["ok"]:
            self.watching.delivered(began)
            answer = {"ok": True, "request": shown, "choice": choice}
            if message:
                answer["untold"] = await self._tell_why(message)
        return answer
