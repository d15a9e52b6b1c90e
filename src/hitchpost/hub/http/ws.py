"""``/ws``: every session on one connection. Text frames are JSON, binary frames are terminal bytes."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from fastapi import WebSocket
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.websockets import WebSocketDisconnect

from hitchpost.errors import HitchpostError, Refused
from hitchpost.hub.core import Hub
from hitchpost.hub.http.errors import code_of
from hitchpost.hub.http.gate import Refusal, refuse
from hitchpost.hub.http.grants import OWNER, Grant, Need
from hitchpost.hub.http.live import Held
from hitchpost.hub.http.metrics import Metrics
from hitchpost.hub.http.needs import meant
from hitchpost.hub.http.places import part_of_descriptors
from hitchpost.hub.http.schemas import Side
from hitchpost.hub.http.tokenfile import Known
from hitchpost.hub.keepers import KeeperBusy, KeeperGone
from hitchpost.hub.streams import SNAPSHOT, Keys, Viewer
from hitchpost.ops.sessions.create import LONGEST_NAME

MOST_CLIENTS = 600
"""Over TCP; the hub's own socket always has room."""
MOST_OF_ONE = 32
KEPT_FOR_OWNERS = 100
MOST_VIEWS = 2000
MOST_VIEWS_OF_ONE = 200
"""What those look at who do not own everything. Each view holds a file open."""
MOST_EVENTS = 2000
MOST_INPUT_BYTES = 1 << 20
MOST_WAITING = 256
"""Messages of one connection for one session."""
MOST_WAITING_CHARS, MOST_HELD_CHARS = 2 << 20, 4 << 20
"""Of such messages, and of all that wait on one connection: what comes after those is not read before some are done."""
MOST_DEEDS = 1024
TRY_AGAIN_LATER = 1013
NOT_ALLOWED = 1008
LAST_WORD_S = 0.5
LAST_LINE_S = 5.0


class Message(BaseModel):
    model_config = ConfigDict(extra="ignore")
    type: str
    sessionId: str = Field(default="", max_length=LONGEST_NAME)


class Attach(Message):
    cols: Side = 80
    rows: Side = 24
    readOnly: bool = False
    start: int | None = Field(default=None, alias="from", ge=0)


class Input(Message):
    data: str = Field(max_length=MOST_INPUT_BYTES)


class Resize(Message):
    cols: Side
    rows: Side


Handle = Callable[["Connection", Any], Awaitable[None]]


class View:
    """A session that this connection looks at."""

    def __init__(self, viewer: Viewer, channel: int, run: int, read_only: bool) -> None:
        self.viewer, self.channel, self.run, self.read_only = viewer, channel, run, read_only
        self.keys: Keys | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def takes_keys_at_once(self) -> bool:
        return self.keys is not None and self.keys.is_connected


class WebSockets:
    def __init__(self, hub: Hub, metrics: Metrics) -> None:
        self.hub, self.metrics = hub, metrics
        self.open: set[Connection] = set()

    async def serve(self, websocket: WebSocket) -> None:
        held: Held | None = websocket.state.held
        if held is not None and (full := self._full_for(held.known)):
            refusal = Refusal(503, "too_many_clients", f"{full}; try again later")
            await refuse(websocket.scope, websocket.receive, websocket.send, refusal)
            return
        connection = Connection(self.hub, websocket, self.metrics, websocket.state.grant)
        connection.key = "" if held is None else held.known.key
        connection.full = partial(self._no_view_for, connection)
        self.open.add(connection)  # before anything is waited for: its place is taken
        self.metrics.clients = len(self.open)
        try:
            await websocket.accept()
            self.hub.expect_viewers()
            if held is not None:
                held.end = partial(connection.end, held.end)
            await connection.run()
        finally:
            self.open.discard(connection)
            self.metrics.clients = len(self.open)

    def _full_for(self, known: Known) -> str:
        """Why there is no place for one more over TCP: nobody takes all of them, and some are kept for owners."""
        taken = [one.key for one in self.open if one.key]
        if taken.count(known.key) >= MOST_OF_ONE:
            return f"{MOST_OF_ONE} clients are connected with this sign-in"
        most = MOST_CLIENTS if known.grant.is_whole else min(MOST_CLIENTS - KEPT_FOR_OWNERS, part_of_descriptors(4))
        return f"{len(taken)} clients are connected" if len(taken) >= most else ""

    def _no_view_for(self, connection: Connection) -> str:
        """Why this one may look at nothing more: some of the descriptors are kept for the owner and the sessions."""
        if connection.grant.is_whole:
            return ""
        others = [other for other in self.open if not other.grant.is_whole]
        if sum(len(other.views) for other in others if other.key == connection.key) >= MOST_VIEWS_OF_ONE:
            return f"{MOST_VIEWS_OF_ONE} terminals are shown with this sign-in; detach from some"
        most = min(MOST_VIEWS, part_of_descriptors(4))
        return (
            f"{most} terminals are shown; try again later" if sum(len(other.views) for other in others) >= most else ""
        )


class Connection:
    def __init__(self, hub: Hub, websocket: WebSocket, metrics: Metrics, grant: Grant) -> None:
        self.hub, self.websocket, self.metrics, self.grant = hub, websocket, metrics, grant
        self.key = ""
        self.full: Callable[[], str] = str
        self.views: dict[str, View] = {}
        self._trees: dict[str, Callable[[], None]] = {}
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue(MOST_EVENTS)
        self._sending = asyncio.Lock()
        self._next_channel = 1
        self._too_slow = False
        self._deeds: set[asyncio.Task[None]] = set()
        self._lanes: dict[str, asyncio.Task[None]] = {}
        """For each session of which something is asked: the last of that."""
        self._waiting: Counter[str] = Counter()
        self._waiting_chars: Counter[str] = Counter()
        self._ended: asyncio.Task[None] | None = None
        self._leaving = False

    async def run(self) -> None:
        leave = self.hub.registry.subscribe(self._heard)
        events = asyncio.create_task(self._tell_events())
        try:
            while True:
                message = await self.websocket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                if message.get("text") is not None:
                    await self._on_text(message["text"])
        except WebSocketDisconnect:
            return
        finally:
            self._leaving = True
            leave()
            events.cancel()
            for deed in self._deeds:
                deed.cancel()
            for stop_watching in self._trees.values():
                stop_watching()
            for session in list(self.views):
                await self._detach(session)

    def end(self, cancel: Callable[[], object]) -> None:
        """Who connected is not known any more. Nothing that comes from now on is looked at."""
        self._ended = asyncio.create_task(self._say_why(cancel))

    async def _say_why(self, cancel: Callable[[], object]) -> None:
        try:
            async with asyncio.timeout(LAST_WORD_S):
                await self.websocket.close(NOT_ALLOWED, "signed out")
        except (TimeoutError, RuntimeError, WebSocketDisconnect):
            pass  # it does not listen
        if not self._leaving:
            cancel()

    # telling ----------------------------------------------------------------------------------------------------

    def _heard(self, event: dict[str, Any]) -> None:
        """A client that does not take its events is cut off: it comes back and asks for everything."""
        if not self.grant.sees(event["sessionId"]):
            return
        try:
            self._events.put_nowait(event)
        except asyncio.QueueFull:
            self._too_slow = True

    async def _tell_events(self) -> None:
        while True:
            event = await self._events.get()
            if self._too_slow:
                await self.websocket.close(TRY_AGAIN_LATER, "too slow")
                return
            view = self.views.get(event["sessionId"])
            if event["type"] == "terminal.exit" and view is not None and view.run == event["run"]:
                await view.viewer.caught_up(LAST_LINE_S)
            await self._say(event)
            if event["type"] in ("session.status", "session.updated"):
                await self._follow_run(event["session"])

    async def _follow_run(self, shape: dict[str, Any]) -> None:
        """A session that is looked at has begun another run: the view goes on with it."""
        view = self.views.get(shape["id"])
        if view is None or shape["run"] <= view.run or shape["state"] != "running":
            return
        size = {"cols": view.viewer.cols, "rows": view.viewer.rows}
        wanted = {"type": "session.attach", "sessionId": shape["id"], "readOnly": view.read_only, **size}
        await self._attach(Attach.model_validate(wanted))

    async def _say(self, value: dict[str, Any]) -> None:
        async with self._sending:
            await self.websocket.send_text(json.dumps(value))

    async def _say_size(self, session: str, cols: int, rows: int) -> None:
        await self._say({"type": "terminal.size", "sessionId": session, "cols": cols, "rows": rows})

    async def _error(self, code: str, message: str, session: str = "") -> None:
        told = {"type": "error", "code": code, "message": message}
        await self._say({**told, "sessionId": session} if session else told)

    # asked ------------------------------------------------------------------------------------------------------

    async def _on_text(self, text: str) -> None:
        """What is asked of one session is done in its order, and waits for nothing that is asked of another."""
        try:
            value = json.loads(text)
            kind, need, handle = MESSAGES[value["type"]]
            asked = kind.model_validate(value)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else "expected a known message"
            await self._error("bad_input", why)
            return
        session = asked.sessionId
        view = self.views.get(session)
        if session not in self._lanes and isinstance(asked, Input) and view is not None and view.takes_keys_at_once:
            await self._do(asked, need, handle)
        elif self._waiting[session] >= MOST_WAITING or self._waiting_chars[session] >= MOST_WAITING_CHARS:
            await self._error("busy", "the session does not keep up with what is asked of it", session)
        else:
            while len(self._deeds) >= MOST_DEEDS or self._waiting_chars.total() >= MOST_HELD_CHARS:
                await asyncio.wait(self._deeds, return_when=asyncio.FIRST_COMPLETED)
            self._waiting[session] += 1
            self._waiting_chars[session] += len(text)
            lane = asyncio.create_task(self._in_turn(self._lanes.get(session), asked, need, handle, len(text)))
            self._lanes[session] = lane
            self._deeds.add(lane)
            lane.add_done_callback(self._deeds.discard)

    async def _in_turn(
        self, before: asyncio.Task[None] | None, asked: Message, need: Need, handle: Handle, chars: int
    ) -> None:
        session = asked.sessionId
        try:
            if before is not None:
                await asyncio.wait([before])
            await self._do(asked, need, handle)
        except (WebSocketDisconnect, RuntimeError):
            return  # the client is gone; the connection's own loop ends the rest
        finally:
            self._waiting[session] -= 1
            self._waiting_chars[session] -= chars
            if not self._waiting[session]:
                del self._waiting[session], self._waiting_chars[session], self._lanes[session]

    async def _do(self, asked: Message, need: Need, handle: Handle) -> None:
        session = asked.sessionId
        if self._ended is not None:
            return
        try:
            if session not in self.views:
                asked.sessionId = await meant(self.hub, self.grant, session)
            self.grant.check(need, is_covered=bool(session))
            await handle(self, asked)
        except ValueError as error:
            await self._error("bad_input", str(error), session)
        except (HitchpostError, OSError) as error:
            await self._error(code_of(error), str(error), session)

    async def _attach(self, asked: Attach) -> None:
        session = self.hub.registry.find(asked.sessionId).id
        await self._detach(session)
        if full := self.full():
            raise Refused(full)
        viewer = self.hub.viewer(session, asked.cols, asked.rows)
        one = self.hub.registry.get(session)
        view = View(viewer, self._next_channel, one.shape["run"], asked.readOnly or self.grant.role != OWNER)
        self._next_channel += 1
        self.views[session] = view
        if not view.read_only and viewer.watch is not None and not viewer.watch.over:
            view.keys = self.hub.keys(session)
            try:
                await view.keys.join(viewer)
            except KeeperGone:
                view.keys = None
        await self._say(
            {
                "type": "session.attached",
                "sessionId": session,
                "channel": view.channel,
                "run": view.run,
                "cols": viewer.watch.cols if viewer.watch is not None else asked.cols,
                "rows": viewer.watch.rows if viewer.watch is not None else asked.rows,
                "offset": await viewer.end() if asked.start is None else asked.start,
            }
        )
        view.task = asyncio.create_task(self._show(session, view, asked.start))

    async def _show(self, session: str, view: View, start: int | None) -> None:
        head = view.channel.to_bytes(4, "big")

        async def send(kind: int, offset: int, data: bytes) -> None:
            if kind == SNAPSHOT:
                await self._say_size(session, *view.viewer.shown_size)
            frame = b"".join((kind.to_bytes(1, "big"), head, offset.to_bytes(8, "big"), data))
            async with self._sending:
                await self.websocket.send_bytes(frame)
            self.metrics.sent_bytes += len(data)
            watch = view.viewer.watch
            if kind == SNAPSHOT and watch is not None and (watch.cols, watch.rows) != view.viewer.shown_size:
                await self._say_size(session, watch.cols, watch.rows)

        try:
            await view.viewer.show(send, start)
        except (WebSocketDisconnect, RuntimeError):
            return  # the client is gone; the connection's own loop ends the rest
        except OSError as error:
            await self._error(code_of(error), str(error), session)

    async def _on_detach(self, asked: Message) -> None:
        await self._detach(self.hub.registry.find(asked.sessionId).id)

    async def _detach(self, session: str) -> None:
        view = self.views.pop(session, None)
        if view is None:
            return
        if view.task is not None:
            view.task.cancel()
        if view.keys is not None and view.viewer in view.keys.viewers:
            try:
                await view.keys.leave(view.viewer)
            except KeeperGone:
                pass

    async def _input(self, asked: Input) -> None:
        view = self._view(asked.sessionId)
        if view.read_only:
            raise Refused("this client may only look")
        if view.keys is None:
            raise Refused("the session has ended and takes no input")
        try:
            await view.keys.type(view.viewer, asked.data.encode("utf-8", "surrogatepass"))
        except KeeperBusy:
            raise
        except KeeperGone:
            raise Refused("the session has ended and takes no input") from None

    async def _answer(self, asked: Input) -> None:
        """What a client's terminal says when the program asks it: of every viewer's, only the one that counts."""
        view = self._view(asked.sessionId)
        if view.keys is not None and not view.read_only:
            view.keys.answer(view.viewer, asked.data.encode("utf-8", "surrogatepass"))

    async def _resize(self, asked: Resize) -> None:
        view = self._view(asked.sessionId)
        view.viewer.cols, view.viewer.rows = asked.cols, asked.rows
        if view.keys is not None and view.viewer in view.keys.viewers:
            try:
                await view.keys.resize(view.viewer)
            except KeeperGone:
                return

    async def _resume(self, asked: Message) -> None:
        """In the background: other sessions of this connection go on meanwhile."""
        session = self.hub.registry.find(asked.sessionId).id
        deed = asyncio.create_task(self._resume_now(session))
        self._deeds.add(deed)
        deed.add_done_callback(self._deeds.discard)

    async def _resume_now(self, session: str) -> None:
        try:
            await self.hub.resume(session, actor=self.websocket.state.actor)
        except (HitchpostError, OSError) as error:
            await self._error(code_of(error), str(error), session)

    async def _watch_workspace(self, asked: Message) -> None:
        """Tell ``workspace.changed`` from now on, when files of the session's worktree change."""
        one = self.hub.registry.find(asked.sessionId)
        if one.id in self._trees:
            return
        assert one.seen is not None
        told = {"type": "workspace.changed", "sessionId": one.id}
        self._trees[one.id] = self.hub.trees.watch(one.seen.record, lambda: self._heard(told))

    async def _unwatch_workspace(self, asked: Message) -> None:
        stop_watching = self._trees.pop(self.hub.registry.find(asked.sessionId).id, None)
        if stop_watching is not None:
            stop_watching()

    def _view(self, wanted: str) -> View:
        view = self.views.get(wanted) or self.views.get(self.hub.registry.find(wanted).id)
        if view is None:
            raise Refused("attach to the session first")
        return view


MESSAGES: dict[str, tuple[type[Message], Need, Handle]] = {
    "session.attach": (Attach, Need.LOOK, Connection._attach),
    "session.detach": (Message, Need.LOOK, Connection._on_detach),
    "terminal.input": (Input, Need.CHANGE, Connection._input),
    # a viewer's terminal answers by itself: that is dropped, and is no mistake
    "terminal.answer": (Input, Need.LOOK, Connection._answer),
    # a viewer's size is only its own: Connection._resize tells the program's terminal for those who type
    "terminal.resize": (Resize, Need.LOOK, Connection._resize),
    "session.resume": (Message, Need.CHANGE, Connection._resume),
    "workspace.watch": (Message, Need.LOOK, Connection._watch_workspace),
    "workspace.unwatch": (Message, Need.LOOK, Connection._unwatch_workspace),
}
"""What a client may say, what that needs, and what is done."""
