"""A WebSocket connection. Text frames are JSON, binary frames are terminal bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from fastapi import WebSocket
from pydantic import ValidationError
from starlette.websockets import WebSocketDisconnect

from hitchpost.errors import FAILURES, MALFORMED, Refused
from hitchpost.hub.core import Hub
from hitchpost.hub.events import Event
from hitchpost.hub.http.errors import code_and_text
from hitchpost.hub.http.grants import Grant, Need
from hitchpost.hub.http.messages import (
    Attach,
    Detach,
    FollowChat,
    Input,
    LeaveChat,
    Message,
    Resize,
    Resume,
    Seen,
    Watch,
)
from hitchpost.hub.http.metrics import Metrics
from hitchpost.hub.http.permissions import resolve, sees
from hitchpost.hub.http.session_queues import SessionQueues
from hitchpost.hub.session import HubSession
from hitchpost.hub.streams import SNAPSHOT, Keys, Viewer
from hitchpost.hub.tasks import Tasks
from hitchpost.runtimes.link import NoKeeper, NotReached, Silent
from hitchpost.text import readable

MOST_EVENTS = 2000
MOST_WAITING, MOST_WAITING_CHARS = 256, 2 << 20
"""Messages of a connection for a session."""
MOST_LANES, MOST_HELD_CHARS = 1024, 4 << 20
"""Of all that waits on a connection: what comes after it is not read before some of it is done."""
TRY_AGAIN_LATER = 1013
NOT_ALLOWED = 1008
LAST_WORD_S = 0.5
LAST_LINE_S = 5.0
ENDED = "the session has ended and takes no input"
CLIENT_GONE = (WebSocketDisconnect, RuntimeError)
"""What sending raises when the client is gone. The connection's own loop then ends the rest."""

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


class Connection:
    """``key`` says whose connection it is; it is empty for the hub's own socket.

    ``hears`` is the kind of notification that its client shows, if any.

    At most ``MOST_EVENTS`` events wait for the client. One that does not take them is cut off with 1013: it comes back
    and asks for everything. At most ``MOST_WAITING`` messages wait for a session; more are answered with ``busy``.
    When much waits in all, nothing more is read from the client.
    """

    def __init__(self, hub: Hub, websocket: WebSocket, metrics: Metrics, grant: Grant) -> None:
        self.hub, self.websocket, self.metrics, self.grant = hub, websocket, metrics, grant
        self.key = self.hears = ""
        self.full: Callable[[], str] = str
        """Why the client may look at nothing more; empty when it may."""
        self.views: dict[str, View] = {}
        self.chats: dict[str, asyncio.Task[None]] = {}
        """Of sessions whose chat this connection follows."""
        self._workspace_watches: dict[str, Callable[[], None]] = {}
        self._sending = asyncio.Lock()
        self._next_channel = 1
        self._tasks = Tasks("websocket")
        self._messages = SessionQueues(self._tasks, MOST_WAITING, MOST_WAITING_CHARS)
        self._events: asyncio.Queue[Event] = asyncio.Queue(MOST_EVENTS)
        self._held_events = SessionQueues(self._tasks, MOST_EVENTS)
        """Events of sessions whose last output is still on its way to the client."""
        self._too_slow = False
        self._is_ended = False
        self._is_leaving = False

    @property
    def looks(self) -> int:
        """How many terminals and chats its client looks at."""
        return len(self.views) + len(self.chats)

    async def run(self) -> None:
        unsubscribe = self.hub.registry.events.subscribe(self._on_event)
        self._tasks.start(self._send_events())
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
            self._is_leaving = True
            unsubscribe()
            for stop_watching in self._workspace_watches.values():
                stop_watching()
            await self._tasks.close()
            await asyncio.gather(*(self._detach(session_id) for session_id in list(self.views)))

    def end(self, cancel: Callable[[], object]) -> None:
        """The client's sign-in has ended: whatever it sends from now on is ignored."""
        self._is_ended = True
        self._tasks.start(self._say_why(cancel))

    async def _say_why(self, cancel: Callable[[], object]) -> None:
        try:
            async with asyncio.timeout(LAST_WORD_S):
                await self.websocket.close(NOT_ALLOWED, "signed out")
        except (TimeoutError, *CLIENT_GONE):
            pass  # it does not listen
        if not self._is_leaving:
            cancel()

    # sending ------------------------------------------------------------------------------------------------------

    def _on_event(self, event: Event) -> bool:
        if not sees(self.grant, self.hub, event["sessionId"], event.get("session")):
            return False
        try:
            self._events.put_nowait(event)
        except asyncio.QueueFull:
            self._too_slow = True
        return not self._too_slow and event.get("to", "nobody") == self.hears

    async def _send_events(self) -> None:
        try:
            while not self._too_slow:
                event = await self._events.get()
                session_id = event["sessionId"]
                if not self._held_events.is_busy(session_id) and not self._follows_output(event):
                    await self._send_event(event)
                elif not self._held_events.put(session_id, partial(self._send_held_event, event)):
                    self._too_slow = True
            await self.websocket.close(TRY_AGAIN_LATER, "too slow")
        except CLIENT_GONE:
            return

    def _follows_output(self, event: Event) -> bool:
        """Whether the client is to have all output of the run before this event."""
        view = self.views.get(event["sessionId"])
        return event["type"] == "terminal.exit" and view is not None and view.run == event["run"]

    async def _send_held_event(self, event: Event) -> None:
        view = self.views.get(event["sessionId"])
        if view is not None and self._follows_output(event):
            await view.viewer.caught_up(LAST_LINE_S)
        try:
            await self._send_event(event)
        except CLIENT_GONE:
            return

    async def _send_event(self, event: Event) -> None:
        await self._say(event)
        if event["type"] == "session.removed":
            self._end_chat(event["sessionId"])
        if event["type"] in ("session.status", "session.updated"):
            self._follow_run(event["session"])

    def _follow_run(self, shape: dict[str, Any]) -> None:
        """A session that is looked at has begun another run: the view goes on with it."""
        session_id = shape["id"]
        view = self.views.get(session_id)
        if view is not None and shape["run"] > view.run and shape["state"] == "running":
            self._messages.put(session_id, partial(self._attach_again, session_id, shape["run"]))

    async def _attach_again(self, session_id: str, run: int) -> None:
        view = self.views.get(session_id)
        if view is None or view.run >= run:
            return
        size = {"cols": view.viewer.cols, "rows": view.viewer.rows}
        how = {"readOnly": view.read_only, "picture": view.viewer.picture}
        attach = {"type": "session.attach", "sessionId": session_id, **how, **size}
        await self._handle(Attach.model_validate(attach), Need.LOOK, Connection._attach)

    async def _say(self, value: dict[str, Any]) -> None:
        async with self._sending:
            await self.websocket.send_text(json.dumps(value))

    async def _say_size(self, session_id: str, cols: int, rows: int) -> None:
        await self._say({"type": "terminal.size", "sessionId": session_id, "cols": cols, "rows": rows})

    async def _say_error(self, code: str, message: str, session_id: str = "") -> None:
        error = {"type": "error", "code": code, "message": message}
        await self._say({**error, "sessionId": session_id} if session_id else error)

    # receiving ----------------------------------------------------------------------------------------------------

    async def _on_text(self, text: str) -> None:
        """Handle the messages for a session in their order; none waits for those of another session."""
        try:
            value = json.loads(text)
            kind, need, handle = MESSAGES[value["type"]]
            message: Message = kind.model_validate(value)
        except MALFORMED as error:
            why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else "expected a known message"
            await self._say_error("bad_input", why)
            return
        session_id = message.sessionId
        view = self.views.get(session_id)
        is_key = isinstance(message, Input) and view is not None and view.takes_keys_at_once
        if is_key and not self._messages.is_busy(session_id):
            await self._handle(message, need, handle)
            return
        await self._messages.wait_for_room(MOST_LANES, MOST_HELD_CHARS)
        if not self._messages.put(session_id, partial(self._handle, message, need, handle), len(text)):
            await self._say_error("busy", "the session cannot keep up with its requests", session_id)

    async def _handle(self, message: Message, need: Need, handle: Handle) -> None:
        if self._is_ended:
            return
        try:
            await self._handle_or_say_why(message, need, handle)
        except CLIENT_GONE:
            return

    async def _handle_or_say_why(self, message: Message, need: Need, handle: Handle) -> None:
        session_id = message.sessionId
        try:
            if session_id not in self.views:
                message.sessionId = await resolve(self.hub, self.grant, session_id)
            self.grant.check(need, is_covered=bool(session_id))
            await handle(self, message)
        except ValueError as error:
            await self._say_error("bad_input", str(error), session_id)
        except FAILURES as error:
            await self._say_error(*code_and_text(error, self.grant), session_id)

    async def _attach(self, message: Attach) -> None:
        session_id = self.hub.registry.find(message.sessionId).id
        await self._detach(session_id)
        if full := self.full():
            raise Refused(full)
        await self.hub.bring_output(self.hub.registry.get(session_id))
        await self.hub.reach(self.hub.registry.get(session_id))
        viewer = self.hub.viewer(session_id, message.cols, message.rows, picture=message.picture)
        run = self.hub.registry.get(session_id).shape["run"]
        read_only = message.readOnly or message.picture or not self.grant.may_drive
        view = View(viewer, self._next_channel, run, read_only)
        self._next_channel += 1
        self.views[session_id] = view
        watch = viewer.watch
        if not view.read_only and watch is not None and not watch.over:
            view.keys = self.hub.keys(session_id)
            await view.keys.join(viewer)
        await self._say(
            {
                "type": "session.attached",
                "sessionId": session_id,
                "channel": view.channel,
                "run": view.run,
                "cols": watch.cols if watch is not None else message.cols,
                "rows": watch.rows if watch is not None else message.rows,
                "offset": await viewer.end() if message.start is None else message.start,
            }
        )
        view.task = self._tasks.start(self._show(session_id, view, message.start))

    async def _show(self, session_id: str, view: View, start: int | None) -> None:
        channel = view.channel.to_bytes(4, "big")

        async def send(kind: int, offset: int, data: bytes) -> None:
            if kind == SNAPSHOT:
                await self._say_size(session_id, *view.viewer.shown_size)
            frame = b"".join((kind.to_bytes(1, "big"), channel, offset.to_bytes(8, "big"), data))
            async with self._sending:
                await self.websocket.send_bytes(frame)
            self.metrics.sent_bytes += len(data)
            watch = view.viewer.watch
            if kind == SNAPSHOT and watch is not None and (watch.cols, watch.rows) != view.viewer.shown_size:
                await self._say_size(session_id, watch.cols, watch.rows)

        try:
            try:
                await view.viewer.show(send, start)
            except FAILURES as error:
                await self._say_error(*code_and_text(error, self.grant), session_id)
        except CLIENT_GONE:
            return

    async def _on_detach(self, message: Message) -> None:
        await self._detach(self.hub.registry.find(message.sessionId).id)

    async def _detach(self, session_id: str) -> None:
        view = self.views.pop(session_id, None)
        if view is None:
            return
        if view.task is not None:
            view.task.cancel()
        if view.keys is not None and view.viewer in view.keys.viewers:
            try:
                await view.keys.leave(view.viewer)
            except NotReached:
                pass

    async def _input(self, message: Input) -> None:
        view = self._view(message.sessionId)
        if view.read_only:
            raise Refused("this client is read-only")
        session = self.hub.registry.find(message.sessionId)
        if view.keys is None and _lives(session, view.run):
            view.keys = self.hub.keys(session.id)
            await view.keys.join(view.viewer)
        if view.keys is None:
            raise Refused(ENDED)
        try:
            await view.keys.type(view.viewer, message.encoded)
        except NoKeeper:
            if not _lives(session, view.run):
                raise Refused(ENDED) from None
            raise Silent("the session's keeper cannot be reached yet", "try again in a moment") from None

    async def _answer(self, message: Input) -> None:
        """What a client's terminal says when the program asks it: only the terminal that has the size counts."""
        view = self._view(message.sessionId)
        if view.keys is not None and not view.read_only:
            view.keys.answer(view.viewer, message.encoded)

    async def _resize(self, message: Resize) -> None:
        view = self._view(message.sessionId)
        view.viewer.cols, view.viewer.rows = message.cols, message.rows
        if view.keys is not None and view.viewer in view.keys.viewers:
            try:
                await view.keys.resize(view.viewer)
            except NotReached:
                return

    async def _resume(self, message: Message) -> None:
        """In the background: what else is asked of the session does not wait for the start."""
        self._tasks.start(self._resume_now(self.hub.registry.find(message.sessionId).id))

    async def _resume_now(self, session_id: str) -> None:
        try:
            try:
                await self.hub.resume(session_id, actor=self.websocket.state.actor)
            except FAILURES as error:
                await self._say_error(*code_and_text(error, self.grant), session_id)
        except CLIENT_GONE:
            return

    async def _seen(self, message: Message) -> None:
        await self.hub.seen(self.hub.registry.find(message.sessionId).id, actor=self.websocket.state.actor)

    async def _watch_workspace(self, message: Message) -> None:
        """Send ``workspace.changed`` from now on, when files of the session's worktree change."""
        session = self.hub.registry.find(message.sessionId)
        if session.id not in self._workspace_watches:
            event = {"type": "workspace.changed", "sessionId": session.id}
            unwatch = self.hub.trees.watch(session.observation.record, lambda: self._on_event(event))
            self._workspace_watches[session.id] = unwatch

    async def _unwatch_workspace(self, message: Message) -> None:
        unwatch = self._workspace_watches.pop(self.hub.registry.find(message.sessionId).id, None)
        if unwatch is not None:
            unwatch()

    async def _follow_chat(self, message: FollowChat) -> None:
        session = self.hub.registry.find(message.sessionId)
        self._end_chat(session.id)
        if full := self.full():
            raise Refused(full)
        show = self._show_chat(session.id, session.observation.folder, message.start)
        self.chats[session.id] = self._tasks.start(show)

    async def _show_chat(self, session_id: str, folder: str, start: int) -> None:
        async def send(start: int, lines: list[dict[str, Any]], end: int) -> None:
            part = {"from": start, "lines": readable(lines), "next": end}
            await self._say({"type": "chat.lines", "sessionId": session_id, **part})

        try:
            try:
                await self.hub.chats.follow(folder, start, send)
            except FAILURES as error:
                await self._say_error(*code_and_text(error, self.grant), session_id)
        except CLIENT_GONE:
            return

    async def _leave_chat(self, message: Message) -> None:
        self._end_chat(self.hub.registry.find(message.sessionId).id)

    def _end_chat(self, session_id: str) -> None:
        task = self.chats.pop(session_id, None)
        if task is not None:
            task.cancel()

    def _view(self, session: str) -> View:
        view = self.views.get(session) or self.views.get(self.hub.registry.find(session).id)
        if view is None:
            raise Refused("attach to the session first")
        return view


def _lives(session: HubSession, run: int) -> bool:
    return session.lives and session.shape["run"] == run


MESSAGES: dict[str, tuple[type[Message], Need, Handle]] = {
    "session.attach": (Attach, Need.LOOK, Connection._attach),
    "session.detach": (Detach, Need.LOOK, Connection._on_detach),
    "terminal.input": (Input, Need.CHANGE, Connection._input),
    # a viewer's terminal answers by itself: that is dropped, and is no mistake
    "terminal.answer": (Input, Need.LOOK, Connection._answer),
    # a viewer's size is only its own: Connection._resize passes it on for those who type
    "terminal.resize": (Resize, Need.LOOK, Connection._resize),
    "session.resume": (Resume, Need.CHANGE, Connection._resume),
    "session.seen": (Seen, Need.CHANGE, Connection._seen),
    "workspace.watch": (Watch, Need.LOOK, Connection._watch_workspace),
    "workspace.unwatch": (Watch, Need.LOOK, Connection._unwatch_workspace),
    "chat.follow": (FollowChat, Need.LOOK, Connection._follow_chat),
    "chat.leave": (LeaveChat, Need.LOOK, Connection._leave_chat),
}
"""What a client may say, what that needs, and what is done."""
