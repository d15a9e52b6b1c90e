"""What is known of the agent: evidence from every source, the verdict, and what is asked of the agent."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import datetime
from traceback import print_exception
from typing import Any

from hitchpost.agents.catalog import Agent
from hitchpost.agents.prepare import is_conversation_id
from hitchpost.errors import FAILURES, HitchpostError
from hitchpost.model import attention
from hitchpost.model.attention import DELIVERED_S, LIMIT, WORKING, Evidence
from hitchpost.store.answers import write_answer
from hitchpost.store.session import Session
from hitchpost.values import asdict, replace
from hitchpost.watcher.adapter import OSC, Adapter
from hitchpost.watcher.limits import ends_at, moment_of
from hitchpost.watcher.link import KeeperLink, OthersKeys
from hitchpost.watcher.screen import LogScreen
from hitchpost.watcher.titles import LogTitle
from hitchpost.watcher.usage import Usage

OUTPUT_EVERY_S = 0.1
"""How often an adapter hears of output that goes on and on."""
MOST_NOTES = 20
MOST_OPTIONS = 50
"""More than that are not told: an agent that offers thousands would fill every report."""
QUIET_S = 0.3
"""Output that pauses for so long has settled: the screen shows what the agent means to show."""


class _KeeperGone(HitchpostError):
    """Ends every task."""


class Watching:
    def __init__(self, agent: Agent, run_folder: str, link: KeeperLink) -> None:
        self.agent, self.run_folder, self.link = agent, run_folder, link
        self.session_folder = os.path.dirname(os.path.dirname(run_folder))
        self.run_number = int(os.path.basename(run_folder))
        self.usage = Usage(self.session_folder, self.run_number)
        self.evidence: dict[str, Evidence] = {}
        self.screen, self.title = LogScreen(run_folder), LogTitle(run_folder)
        self.seq = 0
        self.end = 0
        self.verdict: Evidence | None = None
        self.agent_pid = 0
        self.bracketed_paste = False
        self.delivered_at = 0.0
        self._told: Evidence | None = None
        self._asked: dict[int, asyncio.Task[None]] = {}
        self._one_at_a_time = {"send": asyncio.Lock(), "answer": asyncio.Lock()}
        self._life, self._requests, self._notes = os.urandom(4).hex(), 0, 0
        self._writing = asyncio.Lock()
        self._tasks: asyncio.TaskGroup
        self._timer: asyncio.TimerHandle | None = None
        self._quiet: asyncio.TimerHandle | None = None
        self._output_due: asyncio.TimerHandle | None = None

    # the loop -----------------------------------------------------------------------------------------------------

    async def run(self, adapter: Adapter) -> None:
        """Until the keeper is gone. An adapter that fails ends this process: the keeper starts another."""
        self.adapter = adapter
        asyncio.get_running_loop().set_exception_handler(lambda _, told: self._note(told.get("exception")))
        try:
            async with asyncio.TaskGroup() as self._tasks:
                self._tasks.create_task(adapter.run())
                async for event in self.link.events():
                    self._on_event(event)
                raise _KeeperGone
        except* _KeeperGone:
            pass  # and with it all that was under way

    def _on_event(self, event: dict[str, Any]) -> None:
        kind = event.get("event")
        if kind == "welcome":
            self.agent_pid, self.end = int(event["pid"]), int(event["end"])
            self.link.follow(0 if self.end else self.end)
        elif kind == "output":
            self.end = event["end"]
            self._on_output()
        elif kind == "osc7501":
            self.seq = event["seq"]
            self.adapter.on_osc7501(event["report"])
        elif kind == "keys":
            self.adapter.on_keys()
        elif kind == "ping":
            self.link.tell("pong")
        elif kind == "asked":
            number = event["number"]
            task = self._asked[number] = self._tasks.create_task(self._answer(number, event))
            task.add_done_callback(lambda _: self._asked.pop(number, None))
        elif kind == "gone" and (asked := self._asked.get(event["number"])) is not None:
            asked.cancel()

    def _on_output(self) -> None:
        loop = asyncio.get_running_loop()
        if self._quiet is not None:
            self._quiet.cancel()
        self._quiet = loop.call_later(QUIET_S, self.adapter.on_quiet)
        if self._output_due is None:
            self._output_due = loop.call_later(OUTPUT_EVERY_S, self._pass_output_on)

    def _pass_output_on(self) -> None:
        self._output_due = None
        self.link.follow(self.end)
        self.adapter.on_output()

    def start(self, work: Any) -> asyncio.Task[Any]:
        """Work of an adapter that goes on beside everything else."""
        return self._tasks.create_task(work)

    # evidence -----------------------------------------------------------------------------------------------------

    def put(self, source: str, state: str, *, at: float | None = None, **more: Any) -> None:
        """A source has said something new; ``at``: or it was so then, and what it has said since stands."""
        at = time.monotonic() if at is None else at
        if self._has_said_since(source, at):
            return
        said: dict[str, Any] = {
            name: attention.plain(item) if isinstance(item, str) else item for name, item in more.items()
        }
        if "options" in said:
            said["options"] = tuple(attention.plain(option) for option in said["options"][:MOST_OPTIONS])
        if said.get("kind") == LIMIT:
            said["until"] = said.get("until") or ends_at(said.get("message", ""))
            said["ends_at"] = self._ends_at(source, said["until"])
        self.evidence[source] = Evidence(source, state, at, **said)
        self._judge()

    def _ends_at(self, source: str, until: str) -> str:
        """What is said again means the same moment."""
        before = self.evidence.get(source)
        if before is not None and (before.kind, before.until) == (LIMIT, until):
            return before.ends_at
        found = moment_of(until, datetime.now().astimezone()) if until else None
        return "" if found is None else found.isoformat(timespec="seconds")

    def _has_said_since(self, source: str, at: float) -> bool:
        said = self.evidence.get(source)
        return said is not None and said.at > at

    def forget(self, source: str, *, at: float | None = None) -> None:
        """It says nothing any more; ``at``: or it did not then, and what it has said since stands."""
        if at is not None and self._has_said_since(source, at):
            return
        if self.evidence.pop(source, None) is not None:
            self._judge()

    def ask_anew(self, source: str) -> Evidence:
        """What a source asks gets another name: an answer to the one before counts no more."""
        self.evidence[source] = replace(self.evidence[source], request=self.new_request())
        self._judge()
        return self.evidence[source]

    def delivered(self, at: float | None = None) -> None:
        """A prompt or an answer has gone to the agent: it works, even if it has not said so since ``at``, or yet."""
        self.delivered_at = time.monotonic() if at is None else at
        asyncio.get_running_loop().call_later(DELIVERED_S, self._judge)
        self._judge()

    def _judge(self) -> None:
        now = time.monotonic()
        verdict = attention.judge(self.adapter.sources, self.evidence, now)
        if now - self.delivered_at < DELIVERED_S and (verdict is None or verdict.at < self.delivered_at):
            verdict = Evidence("delivered", WORKING, self.delivered_at)
        self.verdict = verdict
        if self._timer is not None:
            self._timer.cancel()
        due = attention.settles_at(self.adapter.sources, self.evidence, now)
        if due is not None:
            self._timer = asyncio.get_running_loop().call_later(due - now, self._judge)
        if verdict != self._told:
            self._told = verdict
            self.link.tell("verdict", seq=self.seq, report=_report(verdict), overrules=self._overrules())
        self.adapter.on_verdict()

    def _overrules(self) -> bool:
        """Whether somebody is heard who knows better than the agent's own reports."""
        order = self.adapter.sources
        return any(source in self.evidence for source in order[: order.index(OSC) if OSC in order else 0])

    # what is asked ------------------------------------------------------------------------------------------------

    async def _answer(self, number: int, asked: dict[str, Any]) -> None:
        try:
            answer = await self._carried_out(asked)
        except HitchpostError as error:
            answer = {"ok": False, "why": error.message, **({"unsent": True} if isinstance(error, OthersKeys) else {})}
        except asyncio.CancelledError:
            answer = {"ok": False, "why": "nobody waits for this any more"}
        except Exception as error:  # what an agent's hook says must not end us
            self._note(error)
            answer = {"ok": False, "why": f"{self.agent.title} could not be asked: {type(error).__name__}"}
        self.link.tell("answered", asked=number, answer=answer)

    async def _carried_out(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Two prompts, or two answers, go one after the other: the second finds what the first has changed."""
        if asked["op"] == "send":
            images = tuple(map(str, asked.get("images") or ()))
            return await self.send(str(asked.get("text", "")), enter=asked.get("enter") is not False, images=images)
        if asked["op"] == "take_back":
            return await self.adapter.take_back(str(asked.get("prompt", "")))
        if asked["op"] == "interrupt":
            return await self.adapter.interrupt()
        if asked["op"] == "answer":
            request, choice = str(asked.get("request") or ""), str(asked.get("choice", ""))
            async with self._one_at_a_time["answer"]:
                return await self.adapter.answer(request, choice, str(asked.get("message") or ""))
        return {"ok": True, "output": await self.adapter.hear_hook(str(asked.get("name")), str(asked.get("payload")))}

    async def send(self, text: str, *, enter: bool, images: tuple[str, ...] = ()) -> dict[str, Any]:
        async with self._one_at_a_time["send"]:
            if images:
                return await self.adapter.send_with_images(text, images)
            return await self.adapter.send(text, enter=enter)

    # the session --------------------------------------------------------------------------------------------------

    def conversation(self, conversation_id: str, *, begun: bool) -> None:
        """Write down which conversation the agent is in; empty: the one that we chose. ``begun``: it can be resumed.

        The id will be an argument of a command, so one that is not an id is left out.
        """
        if not conversation_id or is_conversation_id(conversation_id):
            self.start(self._write_conversation(conversation_id, begun))

    def forget_conversation(self) -> None:
        """The agent has begun another, and its id is not known: none can be resumed."""
        self.start(self._write_conversation(None, False))

    async def _write_conversation(self, conversation_id: str | None, begun: bool) -> None:
        async with self._writing:  # one after the other, as they came
            await asyncio.to_thread(self._save_conversation, conversation_id, begun)

    def _save_conversation(self, conversation_id: str | None, begun: bool) -> None:
        session = Session(self.session_folder, actor="agent")
        try:
            with session.lock():
                chosen = session.record().conversation_id if conversation_id == "" else conversation_id
                if chosen or conversation_id is None:
                    reported = conversation_id != ""
                    session.set_conversation(chosen, begun=begun, run=self.run_number, reported=reported)
        except FAILURES as error:
            self._note(error)

    def answered(self, text: str) -> None:
        """Keep the agent's last answer, whole. Said before the turn's end is: who hears of that finds it."""
        try:
            write_answer(self.run_folder, text)
        except FAILURES as error:
            self._note(error)

    def new_request(self) -> str:
        """A name for what can be answered. No other watcher of the session has used it."""
        self._requests += 1
        return f"{self._life}-{self._requests}"

    def _note(self, error: object) -> None:
        """Into the keeper's log; an agent that provokes errors does not fill it."""
        self._notes += 1
        if isinstance(error, BaseException) and self._notes <= MOST_NOTES:
            print_exception(error)

    def known_conversation(self) -> str | None:
        """The one that was written down last."""
        return Session(self.session_folder, actor="agent").record().conversation_id

    def close(self) -> None:
        self.screen.close()
        self.title.close()
        self.link.close()


def _report(verdict: Evidence | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    said = {name: item for name, item in asdict(verdict).items() if item and name not in ("at", "adds")}
    return {**said, "options": list(verdict.options)} if verdict.options else said
