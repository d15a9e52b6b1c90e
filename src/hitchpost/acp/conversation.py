"""A conversation with an agent over ACP: prompts one after the other, permissions, and how each turn has ended.

Nothing here knows pipes or terminals: ``Listener`` is told what happens, and ``ask`` reaches the agent.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import hitchpost
from hitchpost.errors import HitchpostError
from hitchpost.model import usage
from hitchpost.model.attention import BLOCKED, DONE, ERROR, IDLE, LIMIT, PERMISSION, WORKING

PROTOCOL = 1
ME = {"name": "hitchpost", "title": "Hitchpost", "version": hitchpost.__version__}
CAN = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
"""Agents read and write files by themselves, as they do in a terminal."""
WORDS = {"allow_once": "yes", "allow_always": "always", "reject_once": "no", "reject_always": "never"}
"""What an answer is called everywhere in Hitchpost, by the kind of option."""
LIMITS = ("usage limit", "rate limit", "rate_limit", "limit reached", "quota", "429")
ENDINGS = {
    "max_tokens": "the answer became too long",
    "max_turn_requests": "the turn took too many steps",
    "refusal": "the model refuses to answer",
}
MOST_QUEUED = 20
SHELLS = ("sh", "bash", "zsh", "dash")
CANCEL_WAITS = "it is interrupted when its tool is done; a second time does not wait, and may spoil the conversation"
Json = dict[str, Any]
Ask = Callable[[str, Json], Awaitable[Json]]
Tell = Callable[[str, Json], Awaitable[None]]


class AskFailed(HitchpostError):
    """Raised by ``ask`` when the agent answers a request with an error, or is gone."""


class Listener(Protocol):
    def on_state(self, state: str, kind: str = "", message: str = "", asked: Asked | None = None) -> None: ...
    def on_conversation(self, conversation: str, *, begun: bool) -> None: ...
    def on_said(self, kind: str, details: Json) -> None: ...
    def on_answer(self, text: str) -> None: ...
    def on_used(self, tokens: Json, cost: Cost | None) -> None: ...


@dataclass(frozen=True, slots=True)
class Cost:
    """The last sum in USD that an agent told, and the one that it told before its first prompt in this process."""

    usd: float
    before_usd: float


@dataclass(slots=True)
class Asked:
    """A permission that the agent waits for. ``options`` has the id of each answer by its word."""

    number: str
    text: str
    options: dict[str, str]
    names: dict[str, str]
    decision: asyncio.Future[str | None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(frozen=True, slots=True)
class Prompt:
    """``number`` names it while it waits. ``images`` are names of files that the session keeps."""

    number: str
    text: str
    images: tuple[str, ...] = ()

    @property
    def details(self) -> Json:
        told: Json = {"prompt": self.number, "text": self.text}
        return {**told, "images": list(self.images)} if self.images else told


@dataclass(frozen=True, slots=True)
class Ways:
    """What is odd about an agent. ``errors`` begin a message that tells of an error, though the turn "has ended".

    ``refuses_first``: a cancel while it asks, or while a tool runs, would leave a call without a result, and each later
    prompt would fail. So what it asks is refused, and the cancel waits for the next words of the model. A second one
    does not wait.
    ``loses_loaded``: what it loads it deletes at its next start, so nothing is loaded, and each run begins anew.
    ``proposes_edits``: it hands each edit to its client, too, and writes the file itself, whatever the client says.
    """

    errors: tuple[str, ...] = ()
    refuses_first: bool = False
    loses_loaded: bool = False
    proposes_edits: bool = False


class Conversation:
    """``image`` makes a block of the protocol of a kept image, or raises ``AskFailed``."""

    def __init__(self, ask: Ask, tell: Tell, listener: Listener, ways: Ways, image: Callable[[str], Json]) -> None:
        self._ask, self._tell, self._listener, self._ways, self._image = ask, tell, listener, ways, image
        self.id = ""
        self.takes_images = False
        self._queue: deque[Prompt] = deque()
        """What waits. When ``MOST_QUEUED`` do, a further one is refused."""
        self._prompts = 0
        self._asked: dict[str, Asked] = {}
        self._numbers = 0
        self._replaying = False
        self._said = ""
        """The last message of the turn, so far."""
        self._begins_anew = False
        """Whether a tool was called behind the last message, so that the next words begin another one."""
        self._cost: Cost | None = None
        """What was told since the last turn that was counted. What comes behind a turn counts with the next one."""
        self._before_usd = 0.0
        self._turn: asyncio.Task[None] | None = None
        self._is_cancelled = False
        self._is_in_tools = False
        """Whether the model has called a tool, and was not heard since."""
        self._cancel_waits = False
        self._cancelling: asyncio.Task[None] | None = None
        self._is_over = False

    # its beginning ------------------------------------------------------------------------------------------------

    async def begin(self, folder: str, before: str) -> None:
        """Go on with the conversation ``before``, by whatever way it has, else begin one. Raises ``AskFailed``.

        The id of another one than ``before`` is told with its first prompt: until then nothing is lost by going back.
        """
        greeting = {"protocolVersion": PROTOCOL, "clientCapabilities": CAN, "clientInfo": ME}
        can = _object((await self._ask("initialize", greeting)).get("agentCapabilities"))
        self.takes_images = _object(can.get("promptCapabilities")).get("image") is True
        place: Json = {"cwd": folder, "mcpServers": []}
        ways: list[str] = []
        if "resume" in _object(can.get("sessionCapabilities")):
            ways.append("session/resume")
        if can.get("loadSession") is True:
            ways.append("session/load")
        how = await self._come_back(ways, before, place) if before else ""
        resumed = self.id != ""
        if not resumed:
            self.id = str((await self._ask("session/new", place)).get("sessionId") or "")
        self._listener.on_said("begun", {"images": self.takes_images, "resumed": resumed})
        if how:
            self._listener.on_said("notice", {"text": how})
        if resumed or not before:
            self._listener.on_conversation(self.id, begun=resumed)
        self._listener.on_state(IDLE)

    async def _come_back(self, ways: list[str], before: str, place: Json) -> str:
        """What to say of it. What ``session/load`` tells again was said before, and is not said twice."""
        why = "this agent would lose it" if self._ways.loses_loaded else "the agent has no way to resume one"
        for way in () if self._ways.loses_loaded else ways:
            self._replaying = True
            try:
                await self._ask(way, {**place, "sessionId": before})
            except AskFailed as error:
                why = str(error)
                continue
            finally:
                self._replaying = False
            self.id = before
            return f"it goes on with its conversation ({way})"
        return f"its conversation cannot be resumed: {why}; it begins another one"

    # prompts ------------------------------------------------------------------------------------------------------

    @property
    def _is_at_work(self) -> bool:
        return self._turn is not None and not self._turn.done()

    def refusal(self, images: tuple[str, ...] = ()) -> str:
        """Why it takes no further prompt now, or none with images; empty when it does."""
        if self._is_over:
            return "the agent has ended"
        if images and not self.takes_images:
            return "this agent takes no images"
        return f"{MOST_QUEUED} prompts wait already" if len(self._queue) >= MOST_QUEUED else ""

    def prompt(self, text: str, images: tuple[str, ...] = ()) -> bool:
        """Give it a prompt that nothing refuses. True when it waits until those before are done."""
        self._prompts += 1
        prompt, waits = Prompt(str(self._prompts), text, images), self._is_at_work
        self._queue.append(prompt)
        if waits:
            self._listener.on_said("queued", prompt.details)
        else:
            self._turn = asyncio.get_running_loop().create_task(self._work())
            self._turn.add_done_callback(self._on_end_of_work)
        return waits

    def take_back(self, number: str) -> str:
        """Forget a prompt that waits. Why not, if so: one that the agent has got stays there."""
        prompt = next((prompt for prompt in self._queue if prompt.number == number), None)
        if prompt is None:
            return "it does not wait any more"
        self._queue.remove(prompt)
        self._listener.on_said("taken_back", prompt.details)
        return ""

    def close(self) -> None:
        """The agent ends, or has ended: nothing is sent to it any more."""
        self._is_over = True
        self._leave_queue()

    def _leave_queue(self) -> None:
        """What waits is not sent, so that a person can decide anew."""
        while self._queue:
            self._listener.on_said("not_sent", self._queue.popleft().details)

    async def _work(self) -> None:
        while self._queue:
            await self._take_turn(self._queue.popleft())

    def _on_end_of_work(self, work: asyncio.Task[None]) -> None:
        """A bug of ours must not look like an agent that works for ever."""
        if not work.cancelled() and (error := work.exception()) is not None:
            self._leave_queue()
            self._listener.on_state(ERROR, "", f"{type(error).__name__}: {error}")

    async def _take_turn(self, prompt: Prompt) -> None:
        self._said, self._begins_anew = "", False
        self._is_cancelled, self._is_in_tools, self._cancel_waits = False, False, False
        try:
            blocks = self._blocks(prompt)
        except AskFailed as error:
            self._listener.on_said("not_sent", prompt.details)
            self._end(ERROR, str(error))
            return
        self._listener.on_said("user", prompt.details)
        self._listener.on_conversation(self.id, begun=not self._ways.loses_loaded)
        self._listener.on_state(WORKING)
        try:
            done = await self._ask("session/prompt", {"sessionId": self.id, "prompt": blocks})
        except AskFailed as error:
            self._tell_used({})
            self._end(ERROR, str(error))
            return
        self._tell_used(_object(done.get("usage")))
        reason = str(done.get("stopReason") or "end_turn")
        if self._is_cancelled or reason == "cancelled":
            self._end(IDLE, "")
        elif reason in ENDINGS:
            self._end(ERROR, ENDINGS[reason])
        elif told := self._told_error():
            self._end(ERROR, told)
        else:
            self._end(DONE, self._said.strip().split("\n")[0])

    def _tell_used(self, tokens: Json) -> None:
        cost, self._cost = self._cost, None
        if tokens or cost is not None:
            self._listener.on_used(tokens, cost)

    def _blocks(self, prompt: Prompt) -> list[Json]:
        text = [{"type": "text", "text": prompt.text}] if prompt.text else []
        return [*text, *map(self._image, prompt.images)]

    def _told_error(self) -> str:
        """Some agents end a turn as if all were well, and say in their message that it was not."""
        message = self._said.strip()
        return message if any(message.startswith(begin) for begin in self._ways.errors) else ""

    def _end(self, state: str, message: str) -> None:
        """Behind an error, as at a limit, what waits would fail as well: the queue ends there."""
        self._forget_asked()
        kind = LIMIT if state == ERROR and any(word in message.lower() for word in LIMITS) else ""
        if state == DONE:
            self._listener.on_answer(self._said)
        self._listener.on_said("turn", {"state": state, "kind": kind, "message": message})
        if state == ERROR:
            self._leave_queue()
        self._listener.on_state(state, kind, message)

    async def cancel(self) -> bool:
        """Interrupt it, and forget what waits. False when it does nothing."""
        if not self._is_at_work:
            return False
        self._leave_queue()
        is_first, self._is_cancelled = not self._is_cancelled, True
        for asked in list(self._asked.values()):
            if not asked.decision.done():
                asked.decision.set_result(self._refusal(asked))
        self._cancel_waits = is_first and self._ways.refuses_first and self._is_in_tools
        if self._cancel_waits:
            self._listener.on_said("notice", {"text": CANCEL_WAITS})
        else:
            await self._tell_cancel()
        return True

    async def _tell_cancel(self) -> None:
        await self._tell("session/cancel", {"sessionId": self.id})

    def _refusal(self, asked: Asked) -> str | None:
        return asked.options.get("no") if self._ways.refuses_first else None

    def _on_words(self) -> None:
        """The model speaks, so its tools have had their results."""
        self._is_in_tools = False
        if self._cancel_waits:
            self._cancel_waits = False
            self._cancelling = asyncio.get_running_loop().create_task(self._tell_cancel())

    # what the agent tells and asks ----------------------------------------------------------------------------------

    def hear(self, method: str, params: Json) -> Awaitable[Json] | Json | None:
        """A request or notification of the agent's. None for one that nobody here knows."""
        if method == "session/update":
            self._on_update(_object(params.get("update")))
            return {}
        if method == "session/request_permission":
            return self._on_permission(params)
        return {} if method == "fs/write_text_file" and self._ways.proposes_edits else None

    def _on_update(self, update: Json) -> None:
        kind = str(update.get("sessionUpdate") or "")
        if kind == "usage_update":
            self._on_cost(_object(update.get("cost")))
        if self._replaying:
            return
        if kind in ("agent_message_chunk", "agent_thought_chunk"):
            self._on_words()
            text = str(_object(update.get("content")).get("text") or "")
            if kind == "agent_message_chunk":
                self._said = text if self._begins_anew else self._said + text
                self._begins_anew = self._begins_anew and not text
            self._listener.on_said("agent" if kind == "agent_message_chunk" else "thought", {"text": text})
        elif kind in ("tool_call", "tool_call_update"):
            self._is_in_tools = True
            self._begins_anew = self._begins_anew or kind == "tool_call"
            self._listener.on_said("tool", _tool(update))
        elif kind == "plan":
            self._listener.on_said("plan", {"entries": _entries(update.get("entries"))})

    def _on_cost(self, cost: Json) -> None:
        """It is a sum. What it was before the first prompt was not spent here."""
        usd = usage.amount(cost.get("amount"))
        if usd is None or cost.get("currency") != "USD":
            return
        if self._turn is None:
            self._before_usd = usd
        else:
            self._cost = Cost(usd, self._before_usd)

    async def _on_permission(self, params: Json) -> Json:
        tool = _object(params.get("toolCall"))
        words, names = _choices(_objects(params.get("options")))
        self._numbers += 1
        asked = Asked(f"{self._numbers}", _title(tool), words, names)
        self._is_in_tools = True
        if self._is_cancelled and (refusal := self._refusal(asked)) is not None:
            return {"outcome": {"outcome": "selected", "optionId": refusal}}
        self._asked[asked.number] = asked
        if "diffs" in (shown := _tool(tool)):  # some tell only here what they are about to write
            self._listener.on_said("tool", {"id": shown["id"], "diffs": shown["diffs"]})
        details = {"request": asked.number, "tool": str(tool.get("toolCallId") or ""), "text": asked.text}
        self._listener.on_said("permission", {**details, "options": names})
        self._tell_asked()
        try:
            chosen = await asked.decision
        finally:
            self._asked.pop(asked.number, None)
        if chosen is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    def _tell_asked(self) -> None:
        first = next((asked for asked in self._asked.values() if not asked.decision.done()), None)
        if first is not None:
            self._listener.on_state(BLOCKED, PERMISSION, first.text, first)

    def answer(self, number: str, word: str) -> str:
        """Answer what it asks. Why not, if so."""
        asked = self._asked.get(number)
        if asked is None or asked.decision.done():
            return "nothing is asked that can be answered here, or it was answered already"
        if word not in asked.options:
            return f"expected {' or '.join(asked.options)}, but got {word}"
        asked.decision.set_result(asked.options[word])
        self._listener.on_said("answer", {"request": number, "choice": word})
        self._listener.on_state(WORKING)
        self._tell_asked()
        return ""

    def _forget_asked(self) -> None:
        for asked in self._asked.values():
            if not asked.decision.done():
                asked.decision.set_result(None)


def _choices(options: list[Json]) -> tuple[dict[str, str], dict[str, str]]:
    """The id and the name of each option by its word. Where two have one kind, the second goes by its own name."""
    ids: dict[str, str] = {}
    names: dict[str, str] = {}
    for option in options:
        name = str(option.get("name") or option.get("optionId") or "")
        word = WORDS.get(str(option.get("kind")), name)
        word = name if word in ids else word
        ids[word], names[word] = str(option.get("optionId")), name
    return ids, names


def _title(tool: Json) -> str:
    """What a permission is about: the command itself, where there is one, without the shell that runs it."""
    given = _object(tool.get("rawInput"))
    command = given.get("command")
    if isinstance(command, list):
        words = list(map(str, command))
        in_shell = len(words) == 3 and os.path.basename(words[0]) in SHELLS and words[1] in ("-c", "-lc")
        command = words[2] if in_shell else " ".join(words)
    if command:
        return str(command)
    kind, title = str(tool.get("kind") or ""), str(tool.get("title") or "")
    paths = [str(place.get("path") or "") for place in _objects(tool.get("locations"))]
    is_bare = title in given.values() or any(path == title or path.endswith(f"/{title}") for path in paths)
    # a path, a pattern or an address alone does not say what is to be done with it
    return f"{kind}: {title}" if title and is_bare and kind not in ("", "other") else title or kind


def _tool(update: Json) -> Json:
    """One step of a tool: what it is, how it stands, and what it shows."""
    found: Json = {"id": str(update.get("toolCallId") or "")}
    for name in ("title", "kind", "status"):
        if isinstance(update.get(name), str):
            found[name] = update[name]
    texts, diffs = [], []
    for part in _objects(update.get("content")):
        if part.get("type") == "diff":
            diffs.append({name: str(part.get(key) or "") for name, key in DIFF.items()})
        elif text := _object(part.get("content")).get("text"):
            texts.append(str(text))
    if texts:
        found["output"] = "\n".join(texts)
    if diffs:
        found["diffs"] = diffs
    return found


DIFF = {"path": "path", "old": "oldText", "new": "newText"}


def _entries(found: Any) -> list[Json]:
    return [
        {"text": str(entry.get("content") or ""), "status": str(entry.get("status") or "")} for entry in _objects(found)
    ]


def _object(found: Any) -> Json:
    return found if isinstance(found, dict) else {}


def _objects(found: Any) -> list[Json]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
