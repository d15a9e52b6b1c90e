"""Where the dashboard's sessions come from: the hub, which tells of changes, else a look at the files each second."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import WebSocketException

from hitchpost.errors import FAILURES
from hitchpost.hub.client import SOCKET, NoHub, ask
from hitchpost.model.record import ALL
from hitchpost.ops.views.listing import listing
from hitchpost.ops.views.session_types import Session
from hitchpost.system.shortpath import ShortPath

LOOK_EVERY_S = 1.0
REST = 50
"""Looking takes at most one part in so many of a processor: beside hundreds of sessions it is done less often."""
GATHER_S = 0.1
"""Changes that come within this time are shown at once."""

Sessions = Mapping[str, Session]


async def sessions(home: str) -> AsyncGenerator[tuple[str, Sessions], None]:
    """Whenever something has changed: all sessions by id, and in words who says so. For ever.

    A hub that comes is used from then on, until it goes. Where nothing can be read, what was known last stays.
    """
    last: Sessions | None = None
    trouble = ""
    while True:
        try:
            async for known in _from_hub(home):
                yield "hub", known
                last = None
        except (*FAILURES, WebSocketException):
            pass
        pause_s, words = LOOK_EVERY_S, ""
        try:
            known, took_s = await asyncio.to_thread(_look, home)
            pause_s = max(LOOK_EVERY_S, REST * took_s)
        except FAILURES as error:
            known, words = last or {}, f"cannot look: {error}"
        if words != trouble or last is None or not is_same(known, last):
            last, trouble = known, words
            seldom = f"no hub, looks every {pause_s:.0f} s" if pause_s >= 2 * LOOK_EVERY_S else "no hub"
            yield words or seldom, known
        await asyncio.sleep(pause_s)


async def _from_hub(home: str) -> AsyncIterator[Sessions]:
    """Raises ``FAILURES`` or ``WebSocketException`` when there is none, or no more."""
    with ShortPath(home, SOCKET) as path:
        connection = await unix_connect(path, "ws://hub/ws", compression=None, max_size=None, open_timeout=2)
    async with connection:
        # first the connection, then the question: what changes in between is told
        listed: list[Session] = await asyncio.to_thread(ask, home, "GET", "/api/sessions?all=true")
        if any("section" not in session for session in listed):
            raise NoHub("the hub is an older one, which tells too little")
        known = {session["id"]: session for session in listed}
        yield dict(known)
        while True:
            if await _gathered(connection, known):
                yield dict(known)


async def _gathered(connection: ClientConnection, known: dict[str, Session]) -> bool:
    """Take what comes, and what follows it closely. Whether a session has changed."""
    changed = apply(known, json.loads(await connection.recv()))
    deadline = asyncio.get_running_loop().time() + GATHER_S
    while (left_s := deadline - asyncio.get_running_loop().time()) > 0:
        try:
            async with asyncio.timeout(left_s):
                message = await connection.recv()
        except TimeoutError:
            break
        changed |= apply(known, json.loads(message))
    return changed


def apply(known: dict[str, Session], message: dict[str, Any]) -> bool:
    """Whether the message has changed what is known."""
    kind, session_id = message.get("type"), message.get("sessionId", "")
    if kind == "session.removed":
        return known.pop(session_id, None) is not None
    if kind not in ("session.created", "session.updated", "session.status"):
        return False
    known[session_id] = message["session"]
    return True


def is_same(now: Sessions, before: Sessions) -> bool:
    """Whether there is nothing new to show: a label that only counts the time of a silence is none."""
    return now.keys() == before.keys() and all(_told(session) == _told(before[key]) for key, session in now.items())


def _told(session: Session) -> dict[str, Any]:
    counts = session["quiet_since"] is not None
    return {**session, "label": ""} if counts else dict(session)


def _look(home: str) -> tuple[dict[str, Session], float]:
    """Every session, and the processor time that it took to look."""
    began = time.process_time()
    return {row.id: row.shape for row in listing(home, records=ALL, shapes=True)}, time.process_time() - began
