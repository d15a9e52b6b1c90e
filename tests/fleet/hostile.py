"""A pod whose agent has taken it over: it has the session's certificate, and says whatever a test lets it say."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hitchpost import lightjson
from hitchpost.fleet import frames
from hitchpost.fleet.link import PodLink, tcp
from hitchpost.fleet.pipe import Pipe
from hitchpost.fleet.tls import Identity
from tests.fleet.processes import Fleet
from tests.ground import Truth
from tests.support import eventually


class HostilePod:
    """Each link hears a welcome, and then ``says``. ``answers`` are its replies, by the operation."""

    def __init__(self, fleet: Fleet, session: Truth) -> None:
        self.fleet, self.session = fleet, session
        self.says: list[bytes] = []
        self.answers: dict[str, dict[str, object]] = {}
        self.links = 0
        self.pipes: list[Pipe] = []
        folder = fleet.ground.watch.scratch / f"hostile-{session.id}"
        fleet.authority.for_session(session.id).write(str(folder))
        self._identity = Identity(str(folder), is_pod=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server = fleet.do(self._listen())
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def _listen(self) -> asyncio.Server:
        return await asyncio.get_running_loop().create_server(self._met, "127.0.0.1", 0)

    def _met(self) -> Pipe:
        pipe = Pipe(self._identity.context(), None, beat_s=1, cut_s=60)
        task = asyncio.get_running_loop().create_task(self._serve(pipe))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return pipe

    async def _serve(self, pipe: Pipe) -> None:
        try:
            await pipe.ready()
        except OSError:
            return
        await pipe.frames()
        self.links += 1
        self.pipes.append(pipe)
        pipe.send(frames.json_frame(frames.WELCOME, {"v": 1, "session": self.session.id, "run": 1, "kept": 1}))
        for said in list(self.says):
            pipe.send(said)
            await pipe.drain()
        while found := await pipe.frames():
            for kind, payload in found:
                if kind == frames.REQUEST:
                    self._answer(pipe, frames.object_of(payload))

    def _answer(self, pipe: Pipe, request: dict[str, Any]) -> None:
        text = lightjson.dumps(self.answers.get(str(request["op"]), {"ok": True})).encode()
        pipe.send(frames.frame(frames.REPLY, frames.number(request["id"]), bytes((frames.LAST,)), text))

    def say(self, *said: bytes) -> None:
        """To the link that is there now."""
        eventually(lambda: self.pipes and not self.pipes[-1].over, what="a link")
        for frame in said:
            self.fleet.loop.call_soon_threadsafe(self.pipes[-1].send, frame)

    async def stream(self) -> socket.socket:
        return await tcp("127.0.0.1", self.port)

    def link(self) -> PodLink:
        async def opened() -> PodLink:
            return self.fleet.links.open(str(self.session.folder), self.stream)

        return self.fleet.do(opened())

    def close(self) -> None:
        async def closed() -> None:
            self._server.close()
            for task in self._tasks:
                task.cancel()
            for pipe in self.pipes:
                pipe.abort()

        self.fleet.do(closed())


@contextmanager
def taken_over(fleet: Fleet) -> Iterator[HostilePod]:
    """The pod of a session that was made, and not yet begun."""
    pod = HostilePod(fleet, fleet.create("sh"))
    try:
        yield pod
    finally:
        pod.close()
