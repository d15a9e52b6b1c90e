"""A session that does not get on holds up no event of another session on the same connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

from hitchpost.hub.events import Events
from hitchpost.hub.http.grants import OWNER, Grant
from hitchpost.hub.http.ws_connection import MOST_EVENTS, TRY_AGAIN_LATER, Connection, View

PATIENCE_S = 60


class Client:
    """The other end of the connection. It takes what is sent while ``takes`` is set."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.closed = 0
        self.takes = asyncio.Event()
        self.takes.set()
        self._moved = asyncio.Event()
        self._said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def receive(self) -> dict[str, Any]:
        return {"type": "websocket.receive", "text": json.dumps(await self._said.get())}

    def says(self, message: dict[str, Any]) -> None:
        self._said.put_nowait(message)

    async def send_text(self, text: str) -> None:
        await self.takes.wait()
        event = json.loads(text)
        self.sent.append((event["type"], event["sessionId"]))
        self._moved.set()

    async def close(self, code: int, reason: str) -> None:
        self.closed = code
        self._moved.set()

    async def until(self, *sent: tuple[str, str], closed: int = 0) -> None:
        """Wait until exactly this was sent."""
        async with asyncio.timeout(PATIENCE_S):
            while (self.sent, self.closed) != (list(sent), closed):
                self._moved.clear()
                await self._moved.wait()


class Hung:
    """A viewer, or the keys of a keeper, that gets on when it is let go."""

    cols, rows, picture = 80, 24, False
    watch: SimpleNamespace | None = SimpleNamespace(over=False, cols=80, rows=24)

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.viewers: list[object] = []

    async def caught_up(self, timeout_s: float) -> None:
        await self.go_on.wait()

    async def join(self, viewer: object) -> None:
        await self.go_on.wait()

    async def end(self) -> int:
        return 0

    async def show(self, send: object, start: object) -> None:
        return


@asynccontextmanager
async def connected(hung: Hung) -> AsyncIterator[tuple[Events, Client]]:
    """A connection that looks at run 1 of session a."""
    events, client = Events(), Client()

    async def load(session: object) -> None:
        return

    def session(name: str) -> SimpleNamespace:
        return SimpleNamespace(id=name, shape={"run": 2}, lives=True)

    registry = SimpleNamespace(events=events, load=load, find=session, get=session)
    hub = SimpleNamespace(
        registry=registry,
        bring_output=load,
        reach=load,
        viewer=lambda *size, picture: hung,
        keys=lambda session: hung,
    )
    connection = Connection(cast(Any, hub), cast(Any, client), cast(Any, SimpleNamespace()), Grant(OWNER))
    connection.views["a"] = View(cast(Any, hung), 1, 1, read_only=False)
    running = asyncio.create_task(connection.run())
    await asyncio.sleep(0)
    try:
        yield events, client
    finally:
        running.cancel()
        await asyncio.wait([running])


def event(kind: str, session: str, run: int = 1) -> dict[str, Any]:
    shape = {"id": session, "run": run, "state": "running"}
    return {"type": kind, "sessionId": session, "run": run, "session": shape}


def test_an_exit_waits_for_the_last_output_and_other_sessions_do_not() -> None:
    async def scene() -> None:
        hung = Hung()
        async with connected(hung) as (events, client):
            events.publish(event("terminal.exit", "a"))
            events.publish(event("session.updated", "a"))
            events.publish(event("terminal.exit", "b"))
            await client.until(("terminal.exit", "b"))
            hung.go_on.set()
            await client.until(("terminal.exit", "b"), ("terminal.exit", "a"), ("session.updated", "a"))

    asyncio.run(scene())


def test_a_view_of_the_next_run_waits_for_its_keeper_and_other_sessions_do_not() -> None:
    async def scene() -> None:
        hung = Hung()
        async with connected(hung) as (events, client):
            events.publish(event("session.status", "a", run=2))
            events.publish(event("session.status", "b"))
            await client.until(("session.status", "a"), ("session.status", "b"))
            hung.go_on.set()
            await client.until(("session.status", "a"), ("session.status", "b"), ("session.attached", "a"))

    asyncio.run(scene())


def test_who_looked_before_there_was_a_way_to_the_keeper_types_once_there_is() -> None:
    typed: asyncio.Queue[bytes] = asyncio.Queue()

    class Typed(Hung):
        watch = None

        async def type(self, viewer: object, data: bytes) -> None:
            assert self.viewers == [viewer]
            typed.put_nowait(data)

        async def join(self, viewer: object) -> None:
            self.viewers.append(viewer)

    async def scene() -> None:
        async with connected(Typed()) as (_, client):
            client.says({"type": "session.attach", "sessionId": "a", "cols": 80, "rows": 24})
            await client.until(("session.attached", "a"))
            for text in ("x", "y"):
                client.says({"type": "terminal.input", "sessionId": "a", "data": text})
            async with asyncio.timeout(PATIENCE_S):
                assert [await typed.get() for _ in range(2)] == [b"x", b"y"]

    asyncio.run(scene())


def test_a_client_that_takes_no_events_is_cut_off() -> None:
    async def scene() -> None:
        async with connected(Hung()) as (events, client):
            client.takes.clear()
            events.publish(event("session.updated", "b"))
            await asyncio.sleep(0)
            for _ in range(MOST_EVENTS + 1):
                events.publish(event("session.updated", "b"))
            client.takes.set()
            await client.until(("session.updated", "b"), closed=TRY_AGAIN_LATER)

    asyncio.run(scene())
