"""Codex: its app-server says what it does, takes prompts and answers. Alone, or in a container: its own reports."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from datetime import datetime
from typing import Any

from hitchpost.model import attention
from hitchpost.model.attention import BLOCKED, DONE, ERROR, IDLE, LIMIT, PERMISSION, QUESTION, UNKNOWN, WORKING
from hitchpost.store import runfiles
from hitchpost.watcher import codex_words as words
from hitchpost.watcher.adapter import OSC, PROOF_S, READY_S, SCREEN, Adapter
from hitchpost.watcher.appserver import AppServer, Declined, NoAnswer, NotInTime, NotReached, Told, remove_left
from hitchpost.watcher.codex_usage import Counting
from hitchpost.watcher.prompts import not_sent

SERVER = "app-server"
SOCKET = "codex.sock"
SHOWN_S = 10.0
"""How long the screen may take to be there. It must greet the server first: the server takes its name for its own."""
LOST_S = 0.5
"""Most often the agent ends with its server: what was known last is true for so long."""
REACH_S, AGAIN_S = 20.0, 0.2
"""How long a server that is there may take to be reached, and the pause between two tries: where much else runs, it is
slow. Alone, Codex may have no word for the end of a turn."""
SHORT_S = 1.0
"""A connection that broke so soon may do so again and again: it is made again after a pause, too."""
LOST = "its app-server does not answer"
TRIES, TRY_EVERY_S = 20, 0.1
OPENED = ("thread/goal/cleared", "thread/goal/updated")
"""Said of a thread that a client opens, whoever listens."""
OUTCOME_S = 1.0
"""A thread is said to be idle just before its turn is said to be over, and to wait just before it asks."""
LISTED_S = 15.0
"""How long a turn that was taken may take to begin, and its end to be listed: the server is idle, and says no more."""
RESOLVED_S = 5.0
GONE = "nothing is asked that can be answered here, or it was answered already"


class Codex(Adapter):
    sources = (SERVER, OSC, SCREEN)

    def __init__(self, watching: Any) -> None:
        super().__init__(watching)
        self._server: AppServer | None = None
        self._thread: words.Thread | None = None
        self._others: set[str] = set()
        self._statuses: dict[str, Any] = {}
        """What was told last of each thread. What is read of one was asked for before, or says the same."""
        self._begun: set[str] = set()
        """Threads that were heard to work."""
        self._outcomes = 0
        self._asked: dict[str, words.Asked] = {}
        self._changes: dict[str, list[str]] = {}
        self._counting = Counting(watching.usage)
        self._report: dict[str, Any] | None = None
        run = runfiles.read_run(watching.run_folder)
        self._began = datetime.fromisoformat(run.started_at).timestamp() if run is not None else 0.0
        self._shown = asyncio.Event()
        self._lost_at = 0.0
        self._is_declined = self._alone = False

    # its server ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """The socket is there before the screen is. Without it, Codex runs alone."""
        remove_left(os.path.join(os.path.dirname(self.watching.run_folder), str(self.watching.run_number - 1)), SOCKET)
        since = time.monotonic()
        while True:
            shown, began = await self.until(self._shown.is_set, SHOWN_S), time.monotonic()
            if not self._is_there():
                since = time.monotonic()
                if shown:
                    break
            elif await self._converse():
                since = time.monotonic()
                await asyncio.sleep(AGAIN_S if since - began < SHORT_S else 0)
            else:
                if self._is_declined or time.monotonic() - since > REACH_S:
                    break
                await asyncio.sleep(AGAIN_S)
        self._alone = True
        self.watching.forget(SERVER)
        self.on_osc7501(self._report)
        await super().run()

    def _is_there(self) -> bool:
        return os.path.lexists(os.path.join(self.watching.run_folder, SOCKET))

    async def _converse(self) -> bool:
        """Hear and be heard, for as long as the server is there. False when it was not reached.

        A connection that breaks is made again soon, and what is known stands until then.
        """
        greeted = False
        try:
            server = await AppServer.connect(self.watching.run_folder, SOCKET, self._hear)
            listening = self.watching.start(server.listen())
            try:
                await self._greet(server)
                greeted = True
                await listening
            except Declined:
                self._is_declined = True
            except NoAnswer:
                pass
            finally:
                listening.cancel()
        except NotReached:
            pass
        self._server = self._thread = None
        self._asked.clear()
        self._others.clear()
        self._statuses.clear()
        self._lost_at = time.monotonic() if greeted else self._lost_at
        remove_left(self.watching.run_folder, SOCKET)
        if not self._is_there():
            await asyncio.sleep(LOST_S)
            self.watching.forget(SERVER)
        elif SERVER in self.watching.evidence and time.monotonic() - self._lost_at > LOST_S:
            self._say(UNKNOWN, LOST)
        return greeted

    async def _greet(self, server: AppServer) -> None:
        await server.greet()
        self._server = server
        listed = (await server.ask("thread/loaded/list")).get("data", ())
        threads = [await self._read_listed(str(number)) for number in listed]
        shown = [thread for thread in threads if thread is not None]
        if shown and self._thread is None:
            last = self.watching.known_conversation()
            self._enter(max(shown, key=lambda thread: (thread["id"] == last, int(thread.get("createdAt") or 0))))
        if self._thread is None:
            self.watching.forget(SERVER)

    def on_osc7501(self, report: dict[str, Any] | None) -> None:
        """It is on the screen. What it reports counts only where there is no server."""
        self._report = report
        self._shown.set()
        self.on_verdict()
        if self._alone:
            super().on_osc7501(report)
            if not self._is_blocked():
                self.watching.forget(SCREEN)

    def on_quiet(self) -> None:
        super().on_quiet()
        if self._alone and self._is_blocked():
            self.look()  # its own report does not say what it asks

    def _say(self, state: str, message: str = "", **more: Any) -> None:
        said = self.watching.evidence.get(SERVER)
        more = {"request": "", "options": (), "takes_text": False, "background": 0, **more}
        known = said is not None and all(getattr(said, name) == item for name, item in more.items())
        if not known or not self._is_said(SERVER, state, message):
            self.watching.put(SERVER, state, message=message, **more)
            self.watching.forget(SCREEN)

    # what it says -------------------------------------------------------------------------------------------------

    def _hear(self, method: str, told: Told, number: Any) -> None:
        thread_id = str(told.get("threadId") or "")
        if method == "thread/status/changed":
            self._statuses[thread_id] = told.get("status")
            if words.is_active(told):
                self._begun.add(thread_id)
        if self._thread is not None and thread_id == self._thread.id:
            self._thread.news += 1
        if method == "thread/started":
            self._on_started(told.get("thread"))
        elif method == "thread/closed":
            self._others.discard(thread_id)
            self._statuses.pop(thread_id, None)
            self._begun.discard(thread_id)
        elif self._thread is None or thread_id != self._thread.id:
            self._on_other(method, thread_id, told.get("status"))
        elif method == "thread/status/changed":
            self._on_status(told.get("status"))
        elif method == "turn/started":
            self._thread.turn = words.number_of(told.get("turn"))
            self._on_busy([])
        elif method == "turn/completed":
            self._on_completed(self._thread, told.get("turn"))
        elif method == "item/started":
            self._on_item(told.get("item"))
        elif method == "item/completed":
            self._on_item_over(self._thread, told.get("item"))
        elif method == "thread/tokenUsage/updated":
            self._on_usage(self._thread, told.get("tokenUsage"))
        elif method == "serverRequest/resolved":
            self._on_resolved(told.get("requestId"))
        elif number is not None:
            self._on_asked(method, told, number)

    def _on_started(self, thread: Any) -> None:
        if isinstance(thread, dict) and words.is_shown(thread):
            if self._thread is None or self._thread.id != thread.get("id"):  # else it is older news than what is known
                self._enter(thread)
        elif isinstance(thread, dict):
            self._others.add(str(thread.get("id")))

    def _on_other(self, method: str, thread_id: str, status: Any) -> None:
        """Another thread: one that the screen opens, if it is new, works, or is just said to have no goal."""
        kind = status.get("type") if isinstance(status, dict) else ""
        if kind == "notLoaded":
            self._others.discard(thread_id)
        elif method in OPENED or (kind and (thread_id not in self._others or kind == "active")):
            self.watching.start(self._look_at(thread_id))

    async def _look_at(self, thread_id: str) -> None:
        try:
            thread = await self._read(thread_id)
        except NoAnswer:
            return
        if thread is not None and (self._thread is None or self._thread.id != thread_id):
            self._enter(thread)

    async def _read(self, thread_id: str) -> Told | None:
        """A thread that the screen can show; None for others, such as those that make titles."""
        if self._server is None:
            return None
        thread = (await self._server.ask("thread/read", threadId=thread_id)).get("thread")
        if isinstance(thread, dict) and words.is_shown(thread):
            return thread
        self._others.add(thread_id)
        return None

    async def _read_listed(self, thread_id: str) -> Told | None:
        """A thread that has just begun is listed before it can be read. It may be told of meanwhile."""
        for _ in range(TRIES):
            with suppress(Declined):
                return await self._read(thread_id)
            if self._thread is not None:
                break
            await asyncio.sleep(TRY_EVERY_S)
        return None

    def _enter(self, thread: Told) -> None:
        """The screen shows this conversation now."""
        if self._thread is not None:
            self._others.add(self._thread.id)
        self._asked.clear()
        self._changes.clear()
        number = str(thread["id"])
        self._thread = words.Thread(number, begun=bool(thread.get("preview")) or number in self._begun)
        self._others.discard(self._thread.id)
        if not self._thread.begun:
            self._counting.begin(self._thread.id)
        self.watching.conversation(self._thread.id, begun=self._thread.begun)
        self._on_status(self._statuses.get(self._thread.id, thread.get("status")))

    def _on_status(self, status: Any) -> None:
        thread, kind = self._thread, status.get("type") if isinstance(status, dict) else ""
        assert thread is not None
        if kind == "active":
            self._on_busy(status.get("activeFlags") or [])
        elif not thread.begun:
            self._say(IDLE)
        elif thread.busy or not thread.subscribed:
            self._await_outcome(thread)

    def _on_busy(self, flags: list[str]) -> None:
        """A turn runs. ``flags`` say that it waits for a person; what it asks them is said right after."""
        thread = self._thread
        assert thread is not None
        thread.busy = thread.heard = True
        if not thread.begun:
            thread.begun = True
            self.watching.conversation(thread.id, begun=True)
        if not thread.subscribed:
            thread.subscribed = True
            self.watching.start(self._subscribe(thread))
        thread.waits_for = "" if not flags else QUESTION if "waitingOnUserInput" in flags else PERMISSION
        if not flags:
            self._asked.clear()
            self._say(WORKING)
        else:
            asyncio.get_running_loop().call_later(OUTCOME_S, self._on_waiting, thread)

    def _on_waiting(self, thread: words.Thread) -> None:
        """What it asks was not said to us: that it asks is known all the same."""
        if thread is self._thread and thread.busy and thread.waits_for and not self._asked:
            self._say(BLOCKED, kind=thread.waits_for)

    async def _subscribe(self, thread: words.Thread) -> None:
        """Hear of turns and requests. A thread whose first turn has only just begun may not be on disk yet."""
        for _ in range(TRIES):
            if self._server is None or thread is not self._thread:
                return
            news = thread.news
            try:
                resumed = await self._server.ask("thread/resume", threadId=thread.id, excludeTurns=True)
            except NoAnswer:
                await asyncio.sleep(TRY_EVERY_S)
                continue
            thread.model = str(resumed.get("model") or "")
            is_over = words.is_over(resumed.get("thread")) and thread.news == news
            if is_over and thread is self._thread and thread.busy:
                self._await_outcome(thread)  # before we could hear of it
            return
        thread.subscribed = False

    def _await_outcome(self, thread: words.Thread) -> None:
        """The turn is over. Its outcome is said in a moment, else it is asked for."""
        thread.listed_by = time.monotonic() + LISTED_S
        if not thread.settling:
            thread.settling = True
            self.watching.start(self._ask_outcome(thread))

    async def _ask_outcome(self, thread: words.Thread) -> None:
        try:
            if thread.subscribed and await self.until(lambda: not thread.busy, OUTCOME_S):
                return
            if not thread.subscribed:
                thread.subscribed = True
                await self._subscribe(thread)
            while self._lacks_outcome(thread):
                is_late = time.monotonic() > thread.listed_by
                with suppress(NoAnswer):
                    await self._look_for_outcome(thread, is_late=is_late)
                if is_late and time.monotonic() > thread.listed_by and self._lacks_outcome(thread):
                    self._on_outcome({})  # what it was is not known, but it is over
                await asyncio.sleep(TRY_EVERY_S)
        finally:
            thread.settling = False

    def _lacks_outcome(self, thread: words.Thread) -> bool:
        """Whether its turn is over, or has not begun, and nothing was said of how it ended."""
        told = {"status": self._statuses.get(thread.id)}
        return thread is self._thread and (thread.busy or not thread.heard) and not words.is_active(told)

    async def _look_for_outcome(self, thread: words.Thread, *, is_late: bool) -> None:
        """Ask for the last turn. The list may have its end a moment after its status, and a prompt that was taken may
        begin later. What is told meanwhile is newer than the answer."""
        if (server := self._server) is None:
            return
        news = thread.news
        turns = (await server.ask("thread/turns/list", threadId=thread.id, limit=1)).get("data")
        read = (await server.ask("thread/read", threadId=thread.id)).get("thread")
        if thread.news != news or not self._lacks_outcome(thread):
            return
        last = turns[0] if isinstance(turns, list) and turns else {}
        is_newer = words.is_newer(last, self._began, has_run=thread.busy)
        if isinstance(read, dict) and words.is_active(read):
            self._statuses[thread.id] = read["status"]
            self._on_status(read["status"])
        elif is_newer and (is_late or not thread.busy or thread.can_be(words.number_of(last))):
            self._on_outcome(last)
        elif is_late or not thread.busy:
            self._on_outcome({})

    def _on_item_over(self, thread: words.Thread, item: Any) -> None:
        if isinstance(item, dict) and item.get("type") == "agentMessage":
            thread.said = str(item.get("text") or "")
        if not thread.busy:
            self.watching.start(self._count(thread))

    def _on_usage(self, thread: words.Thread, told: Any) -> None:
        """Also told when a conversation is opened, and of a turn that was over before we could hear of it."""
        self._counting.hear(thread.id, told, busy=thread.busy)
        if not thread.busy:
            self.watching.start(self._counting.count(thread.id, thread.model))

    def _on_completed(self, thread: words.Thread, turn: Any) -> None:
        """An end that was asked for, and told, is no news when it is told late: another turn may run."""
        number = words.number_of(turn)
        if not number or number != thread.over:
            self._outcomes += 1
            self._on_outcome(turn)

    def _on_outcome(self, turn: Any) -> None:
        """How the last turn has ended."""
        thread = self._thread
        turn = turn if isinstance(turn, dict) else {}
        if thread is None:
            return
        thread.busy, thread.heard = False, True
        thread.turn, thread.over = "", words.number_of(turn)
        self.watching.start(self._counting.count(thread.id, thread.model))
        self._asked.clear()
        self._changes.clear()
        if turn.get("status") == "failed":
            failure = words.failure(turn.get("error"))
            self._say(ERROR, failure.text, kind=LIMIT if failure.is_limit else "", until=failure.until)
        elif turn.get("status") == "completed":
            said = words.last_answer(turn) or thread.said
            self.watching.answered(said)
            self._say(DONE, words.first_line(said))
            self.watching.start(self._count(thread))
        else:
            self._say(IDLE)
        self.on_verdict()

    async def _count(self, thread: words.Thread) -> None:
        """Terminals that go on after the turn."""
        if self._server is None:
            return
        try:
            found = (await self._server.ask("thread/backgroundTerminals/list", threadId=thread.id)).get("data")
        except NoAnswer:
            return
        commands = [str(terminal.get("command") or "") for terminal in found or () if isinstance(terminal, dict)]
        said = self.watching.evidence.get(SERVER)
        if thread is not self._thread or thread.busy or said is None or said.state != DONE:
            return
        if commands or said.background:
            self._say(DONE, ", ".join(commands), background=len(commands))

    # what it asks -------------------------------------------------------------------------------------------------

    def _on_item(self, item: Any) -> None:
        """Which files a change is about is said before it is asked for."""
        if isinstance(item, dict) and item.get("type") == "fileChange":
            changes = [change for change in item.get("changes") or () if isinstance(change, dict)]
            self._changes[str(item.get("id"))] = [str(change.get("path")) for change in changes]

    def _on_asked(self, method: str, told: Told, number: Any) -> None:
        """Its server counts anew in each run, and may ask the same again when we come back: names are our own."""
        asked = words.asked(method, told, self._changes.get(str(told.get("itemId")), []), number)
        if asked is not None:
            self._asked[self.watching.new_request()] = asked
            self._say_asked()

    def _on_resolved(self, number: Any) -> None:
        """It was answered, here or there, or is asked no more. What else it asks is told now."""
        left = {name: asked for name, asked in self._asked.items() if asked.number != number}
        was_asked, self._asked = len(left) < len(self._asked), left
        if was_asked and left:
            self._say_asked()
        elif was_asked and self._thread is not None and self._thread.busy:
            self._thread.waits_for = ""
            self._say(WORKING)
        self.on_verdict()

    def _say_asked(self) -> None:
        name, asked = next(iter(self._asked.items()))
        request = name if asked.answers or asked.takes_text else ""
        how = {"options": tuple(asked.answers), "takes_text": asked.takes_text}
        self._say(BLOCKED, asked.text, kind=asked.kind, request=request, **how)

    async def answer(self, request: str, choice: str, message: str) -> dict[str, Any]:
        await self.until(lambda: self._alone or SERVER in self.watching.evidence, READY_S)  # we may be new here
        if self._server is None:
            return await super().answer(request, choice, message)
        shown = self.watching.verdict.request if self.watching.verdict is not None else ""
        name = request or shown
        asked = self._asked.get(name)
        if asked is None or name != shown or asked.answered:
            return {"ok": False, "why": GONE}
        if choice not in asked.answers and not asked.takes_text:
            return {"ok": False, "why": f"expected {' or '.join(asked.answers)}, but got {choice}"}
        asked.answered, began = True, time.monotonic()
        await self._server.answer(asked.number, asked.result(choice))
        self.watching.delivered(began)
        await self.until(lambda: name not in self._asked, RESOLVED_S)
        if choice == words.DENY and message and self._thread is not None:
            await self._server.ask("turn/start", threadId=self._thread.id, input=words.input_of(message))
        return {"ok": True, "request": name, "choice": choice}

    # prompts ------------------------------------------------------------------------------------------------------

    async def send(self, text: str, *, enter: bool) -> dict[str, Any]:
        await self.until(lambda: self._thread is not None or self._alone or self._is_blocked(), READY_S)
        if self._alone or not enter:
            return await super().send(text, enter=enter)
        if (why := await self.refusal()) is not None:
            return not_sent(why)
        server, thread, offset = self._server, self._thread, self.watching.end
        if server is None or thread is None:
            return not_sent("Codex has just ended, or has no conversation yet")
        began, outcomes, was_busy = time.monotonic(), self._outcomes, thread.busy
        try:
            started = await server.ask("turn/start", threadId=thread.id, input=words.input_of(text))
        except NotInTime:  # it may have begun, or begin yet: that is heard, or is not known
            begun = not was_busy and await self.until(lambda: thread.busy or self._outcomes != outcomes, PROOF_S)
            return {"ok": True, "offset": offset, "proof": "turn/started" if begun else ""}
        number = words.number_of(started.get("turn"))
        is_over = self._outcomes != outcomes and number in ("", thread.over)
        if thread is self._thread and not is_over:
            thread.news += 1
            if not thread.busy:
                thread.turn = number
                self.watching.delivered(began)
                self._on_busy([])  # so that no older word counts until the server says more
            self._await_outcome(thread)  # it may never begin
        return {"ok": True, "offset": offset, "proof": f"turn/start: {number}"}

    def _is_blocked(self) -> bool:
        return self.watching.verdict is not None and self.watching.verdict.state == BLOCKED

    async def unsent(self) -> str | None:
        """Neither a dialog nor what is typed and not sent matters to a prompt that goes to the server."""
        if self._server is not None:
            return None
        dialog = self.match(await self.watching.screen.text())
        if dialog is not None and dialog.state == BLOCKED:
            return attention.refusal({"state": BLOCKED, **dialog.details})
        return await super().unsent()
