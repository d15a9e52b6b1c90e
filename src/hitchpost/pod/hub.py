"""One hub that is linked to the pod: what it asks, the clients it has, and the shipment of what it gets."""

from __future__ import annotations

import asyncio

from hitchpost import lightjson, wire
from hitchpost.errors import MALFORMED
from hitchpost.fleet import frames, shipped
from hitchpost.fleet.frames import PART_BYTES
from hitchpost.fleet.pipe import Pipe
from hitchpost.pod.channels import KeeperClient
from hitchpost.pod.own_log import note
from hitchpost.pod.shipping import MOST_QUEUED_BYTES, Shipment
from hitchpost.wire import BadFrame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hitchpost.pod.server import Server

MOST_CHANNELS = 300
MOST_REQUESTS = 16
"""At once. A hub that asks more than that is told to try again."""
HELLO_S = 5.0
OF_NO_CHANNEL = -1


class HubLink:
    def __init__(self, server: Server, pipe: Pipe, address: str) -> None:
        self.server, self.pipe, self.address = server, pipe, address
        self.shipment = Shipment(pipe, server.folder, server.ends, server.look)
        self._channels: dict[int, KeeperClient] = {}
        self._requests = 0
        self._holding = False

    async def serve(self) -> None:
        """Until it is gone."""
        writing: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(HELLO_S):
                first = await self.pipe.frames()
            self._greet(first)
            note(f"linked to a hub at {self.address}")
            writing = self.server.start(self._write())
            for kind, payload in first[1:]:
                self._on_frame(kind, payload)
            while found := await self.pipe.frames():
                for kind, payload in found:
                    self._on_frame(kind, payload)
        except (BadFrame, *MALFORMED, TimeoutError) as error:
            note(f"a hub at {self.address} does not speak as expected: {error}")
        finally:
            for channel in list(self._channels.values()):
                channel.close()
            self.pipe.close()
            self.shipment.wake()
            note(f"the link to a hub at {self.address} has ended" + (f": {self.pipe.error}" if self.pipe.error else ""))
            if writing is not None:
                writing.cancel()

    def _greet(self, first: list[tuple[bytes, bytes]]) -> None:
        if not first or first[0][0] != frames.HELLO:
            raise BadFrame("expected to be greeted first")
        hello = frames.object_of(first[0][1])
        server, shipment = self.server, self.shipment
        if hello.get("v") != frames.VERSION or hello.get("session") != server.session:
            why = f"expected version {frames.VERSION} and session {server.session}"
            self.pipe.send(frames.json_frame(frames.REFUSED, {"why": why}))
            raise BadFrame(f"{why}, but got version {hello.get('v')} and session {hello.get('session')}")
        self._set_wants(hello)
        shipment.pace(is_slow=hello.get("is_slow") is True)
        known = {int(run): dict(has) for run, has in hello.get("runs", {}).items()}
        for run, has in known.items():
            if run in server.ends:
                grown = {str(name): (int(size), int(check)) for name, (size, check) in has.get("grown", {}).items()}
                shipment.has(run, int(has["end"]), grown)
        said = {"v": frames.VERSION, "session": server.session, "run": server.folder.run, "kept": server.kept}
        said["paces"] = True
        self.pipe.send(frames.json_frame(frames.WELCOME, said))
        if server.folder.run and server.folder.run not in known:
            shipment.begun(server.folder.run)
        server.look()
        shipment.changed([*server.folder.everything()])
        for run in known:
            if run in server.ends and run != server.folder.run:
                shipment.changed(server.folder.all_of(run))
        if server.kept:
            shipment.say(frames.frame(frames.KEPT, frames.number(server.kept)))
        elif server.folder.run:
            self.say_over(server.folder.run)

    def _set_wants(self, said: dict[str, Any]) -> None:
        self.shipment.wants = frames.OUTPUT if said.get("wants") == frames.OUTPUT else frames.ALL
        for name, offset in said.get("lines", {}).items():
            if name in shipped.LINES:
                self.shipment.has_lines(name, int(offset))

    def _want(self, said: dict[str, Any]) -> None:
        """From now on. What the hub did not want before is sent."""
        self._set_wants(said)
        self.shipment.forget_grown()
        self.server.look()
        self.shipment.changed([*self.server.folder.everything()])
        if not self.server.kept and self.server.folder.run:
            self.say_over(self.server.folder.run)

    def say_over(self, run: int) -> None:
        said = frames.json_frame(frames.OVER, {"run": run})
        self.shipment.say_behind(OF_NO_CHANNEL, run, self.server.ends.get(run, 0), said)

    async def _write(self) -> None:
        try:
            await self.shipment.run()
        finally:
            self.pipe.close()

    # what it says -------------------------------------------------------------------------------------------------

    def _on_frame(self, kind: bytes, payload: bytes) -> None:
        if kind == frames.CHANNEL:
            if (client := self._channels.get(int.from_bytes(payload[:4], "big"))) is not None:
                client.write(payload[4:])
        elif kind == frames.OPEN:
            self._open(int.from_bytes(payload[:4], "big"), payload[4:])
        elif kind == frames.CLOSE:
            if (client := self._channels.pop(int.from_bytes(payload[:4], "big"), None)) is not None:
                client.close()
        elif kind == frames.WANT:
            self._want(frames.object_of(payload))
        elif kind == frames.PACE:
            self.shipment.pace(is_slow=frames.object_of(payload).get("is_slow") is True)
        elif kind == frames.REQUEST:
            request = frames.object_of(payload)
            self._requests += 1
            self.server.start(self._answer(request))
        else:
            raise BadFrame(f"expected a frame of a hub, but got {kind!r}")

    def _open(self, channel: int, hello: bytes) -> None:
        number = frames.number(channel)
        if not self.server.kept or len(self._channels) >= MOST_CHANNELS or channel in self._channels:
            self.shipment.say(frames.frame(frames.CLOSE, number))
            return
        run = self.server.kept

        def told(kind: bytes, payload: bytes) -> None:
            self._tell(channel, run, wire.frame(kind, payload))

        def lost() -> None:
            if self._channels.pop(channel, None) is not None:
                self._in_order(channel, frames.frame(frames.CLOSE, number))

        def taken(size: int) -> None:
            self.shipment.say(frames.frame(frames.TAKEN, number, frames.number(size)))

        client = self._channels[channel] = KeeperClient(self.server._run_folder(run), hello, told, lost, taken)
        self.server.start(client.connect())

    def _tell(self, channel: int, run: int, frame: bytes) -> None:
        """What the keeper says to a client, after the files that it speaks of; of an end, after the last output."""
        self.server.look()
        framed = frames.frame(frames.CHANNEL, frames.number(channel), frame)
        end = frames.is_exit(frame)
        if end is not None:
            self.server.ends[run] = max(end, self.server.ends.get(run, 0))
            self.shipment.say_behind(channel, run, end, framed)
        else:
            self._in_order(channel, framed)
        self._hold()

    def _in_order(self, channel: int, frame: bytes) -> None:
        waits_for = self.shipment.holds(channel)
        if waits_for is None:
            self.shipment.say(frame)
        else:
            self.shipment.say_behind(channel, *waits_for, frame)

    def _hold(self) -> None:
        """A hub that does not read gets no more from the keeper: then the keeper hangs up on its clients."""
        holding = self.shipment.queued_bytes > MOST_QUEUED_BYTES
        if holding != self._holding:
            self._holding = holding
            for client in self._channels.values():
                client.hold(holding)
            if holding:
                self.server.start(self._go_on())

    async def _go_on(self) -> None:
        while self.shipment.queued_bytes > MOST_QUEUED_BYTES and not self.pipe.over:
            await self.pipe.drain()
            await asyncio.sleep(0.01)
        self._hold()

    # what it asks -------------------------------------------------------------------------------------------------

    async def _answer(self, request: dict[str, Any]) -> None:
        try:
            answer = await self._answered(request)
        finally:
            self._requests -= 1
        self.server.look()
        text, number = lightjson.dumps(answer).encode(), frames.number(int(request["id"]))
        if request.get("op") == "rest":
            run = self.server.folder.run
            reply = frames.frame(frames.REPLY, number, bytes((frames.LAST,)), text)
            self.shipment.say_behind(OF_NO_CHANNEL, run, self.server.ends.get(run, 0), reply)
            return
        for start in range(0, len(text), PART_BYTES):
            flag = frames.MORE if start + PART_BYTES < len(text) else frames.LAST
            self.shipment.say(frames.frame(frames.REPLY, number, bytes((flag,)), text[start : start + PART_BYTES]))

    async def _answered(self, request: dict[str, Any]) -> dict[str, object]:
        if request.get("op") in ("ping", "rest"):  # that is answered behind all output that there is by now
            return {"ok": True}
        if self._requests > MOST_REQUESTS:
            return {"ok": False, "error": f"{MOST_REQUESTS} requests are under way; try again", "code": "busy"}
        if request.get("op") == "start":
            return await self.server.begin(request)
        from hitchpost.pod.requests import answer

        return await asyncio.to_thread(answer, self.server.home, self.server.session, request)
