"""What the hub says to a keeper while somebody types, and for how long it waits for bytes that never come."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hitchpost import lightjson, wire
from hitchpost.hub.screens import Screens
from hitchpost.hub.streams import OUTPUT, Keys, Viewer
from hitchpost.hub.watching import Watch
from hitchpost.terminal import output
from hitchpost.terminal.emulators import Emulators
from hitchpost.terminal.screen import Losses

PATIENCE_S = 60
WELCOME = {"v": wire.VERSION, "end": 0, "cols": 80, "rows": 24}


class Listener(asyncio.Protocol):
    """The other end of a keeper's socket: greets as a keeper does, and keeps what it is told."""

    def __init__(self) -> None:
        self.frames: list[tuple[bytes, bytes]] = []
        self._inbox = bytearray()
        self._more = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(wire.frame(wire.WELCOME, lightjson.dumps(WELCOME).encode()))

    def data_received(self, data: bytes) -> None:
        self._inbox += data
        self.frames += wire.take_frames(self._inbox)
        self._more.set()

    async def heard(self, count: int) -> list[tuple[bytes, bytes]]:
        """All but the greeting, once there are so many."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.frames) <= count:
                self._more.clear()
                await self._more.wait()
        return self.frames[1:]


def test_who_goes_on_typing_sends_keys_and_nothing_else(tmp_path: Path):
    async def scene() -> None:
        listener = Listener()
        server = await asyncio.get_running_loop().create_unix_server(lambda: listener, str(tmp_path / wire.SOCKET))
        keys, screens = Keys(str(tmp_path)), Screens("screen", 1, Emulators(), Losses())
        desktop, phone = (Viewer(None, str(tmp_path), screens, cols, 24) for cols in (120, 40))
        try:
            await keys.join(desktop)
            await keys.join(phone)
            for viewer, text in ((desktop, b"a"), (desktop, b"b"), (phone, b"c"), (phone, b"d"), (desktop, b"e")):
                await keys.type(viewer, text)
            desktop.cols = 100
            await keys.type(desktop, b"f")
            kinds = [
                (kind, payload[-1:] if kind == wire.INPUT else payload[1:2])
                for kind, payload in await listener.heard(10)
            ]
            wide, small, less = ((wire.RESIZE, bytes([cols])) for cols in (120, 40, 100))
            a, b, c, d, e, f = ((wire.INPUT, bytes([letter])) for letter in b"abcdef")
            assert kinds == [wide, a, b, small, c, d, wide, e, less, f]
        finally:
            keys.close()
            screens.close()
            server.close()

    asyncio.run(scene())


def test_who_joins_before_the_keeper_can_be_reached_types_and_has_its_size_later(tmp_path: Path):
    async def scene() -> None:
        listener = Listener()
        keys, screens = Keys(str(tmp_path)), Screens("screen", 1, Emulators(), Losses())
        viewer = Viewer(None, str(tmp_path), screens, 120, 24)
        await keys.join(viewer)
        server = await asyncio.get_running_loop().create_unix_server(lambda: listener, str(tmp_path / wire.SOCKET))
        try:
            viewer.cols = 100
            await keys.resize(viewer)
            await keys.type(viewer, b"a")
            kinds = [
                (kind, payload[-1:] if kind == wire.INPUT else payload[1:2])
                for kind, payload in await listener.heard(2)
            ]
            assert kinds == [(wire.RESIZE, bytes([100])), (wire.INPUT, b"a")]
        finally:
            keys.close()
            screens.close()
            server.close()

    asyncio.run(scene())


def test_a_view_ends_with_its_run_although_the_last_bytes_were_lost(tmp_path: Path):
    """The keeper counts what a full disk did not take, and says that its log reaches that far."""
    folder = tmp_path / wire.OUTPUT
    folder.mkdir()
    (folder / wire.segment_name(0)).write_bytes(b"all that there was room for")
    shown: list[bytes] = []

    async def send(kind: int, offset: int, data: bytes) -> None:
        if kind == OUTPUT:
            shown.append(data)

    async def scene() -> None:
        watch, screens = Watch(str(tmp_path), 1, lambda event: None), Screens("screen", 1, Emulators(), Losses())
        try:
            async with asyncio.timeout(PATIENCE_S):
                assert not await watch.beyond(1000)
                watch.end += 5000
                await Viewer(watch, str(tmp_path), screens, 80, 24).show(send, 0)
        finally:
            watch.close()
            screens.close()

    asyncio.run(scene())
    assert b"".join(shown) == b"all that there was room for"


def test_a_watch_that_fails_leaves_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    events: list[dict[str, object]] = []

    def fail(folder: str) -> tuple[int, int]:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(output, "bounds", fail)

    async def scene() -> None:
        watch = Watch(str(tmp_path), 1, events.append)
        async with asyncio.timeout(PATIENCE_S):
            assert not await watch.beyond(0)
        watch.close()

    with capture_logs() as lines:
        asyncio.run(scene())
    assert events == [{"event": "closed"}]
    assert [line["owner"] for line in lines] == ["watch"]
