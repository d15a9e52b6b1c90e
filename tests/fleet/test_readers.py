"""The hub's own readers, unchanged, against the stand-in: they find what they find at a keeper."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from hitchpost import wire
from hitchpost.fleet.standin import LocalClient
from hitchpost.hub.keepers import KeeperLink
from hitchpost.hub.screens import Screens
from hitchpost.hub.streams import OUTPUT, Keys, Viewer
from hitchpost.hub.watching import Watch
from hitchpost.runtimes.kept import is_kept, kept
from hitchpost.runtimes.link import Link
from hitchpost.settings import Settings
from hitchpost.terminal import output
from hitchpost.terminal.emulators import Emulators
from hitchpost.terminal.screen import Losses
from tests.fleet.processes import Fleet
from tests.fleet.test_life import ASLEEP, ECHO, shows
from tests.ground import Truth
from tests.support import eventually

PARTS = "stty raw -echo; for i in $(seq 40); do head -c 50000 /dev/urandom; sleep 0.01; done"


@asynccontextmanager
async def screens() -> AsyncIterator[Screens]:
    emulators = Emulators()
    made = Screens("screen", 2, emulators, Losses())
    try:
        yield made
    finally:
        made.close()
        await asyncio.to_thread(emulators.close)


async def until(condition: Callable[[], object]) -> None:
    await asyncio.to_thread(eventually, condition)


def truth(session: Truth, fleet: Fleet, run: int = 1) -> bytes:
    """What the pod itself has."""
    return fleet.pod(session).truth.output(run)


def test_a_watch_hears_events_and_the_end_and_a_viewer_gets_every_byte(fleet: Fleet):
    session = fleet.sh(PARTS)
    events: list[dict[str, Any]] = []
    shown = bytearray()

    async def look() -> None:
        watch = Watch(str(session.run()), 1, events.append)

        async def send(kind: int, offset: int, data: bytes) -> None:
            assert kind == OUTPUT
            assert offset == len(shown)
            shown.extend(data)

        try:
            async with asyncio.timeout(60), screens() as made:
                await Viewer(watch, str(session.run()), made, 80, 24).show(send, 0)
            await until(lambda: watch.over)
        finally:
            watch.close()

    asyncio.run(look())
    assert fleet.ended(session) == "completed"
    assert hashlib.sha256(shown).digest() == hashlib.sha256(truth(session, fleet)).digest()
    assert len(shown) == 40 * 50000
    assert [event["event"] for event in events if event["event"] != "attention"][-2:] == ["exit", "closed"]
    (exit_event,) = [event for event in events if event["event"] == "exit"]
    assert (exit_event["state"], exit_event["end"]) == ("completed", 40 * 50000)


def test_the_event_of_an_end_comes_after_the_files_that_it_speaks_of(fleet: Fleet):
    for _ in range(5):
        session = fleet.sh("read line; head -c 300000 /dev/zero; exit 7")
        found: list[tuple[str, dict[str, Any], int]] = []

        def on_event(event: dict[str, Any], session: Truth = session, found: list[Any] = found) -> None:
            if event["event"] == "exit":
                log = output.bounds(str(session.run() / "output"))[1]
                found.append((session.state, session.exit(), log))

        async def end(session: Truth = session, on_event: Any = on_event) -> None:
            watch = Watch(str(session.run()), 1, on_event)
            link = await KeeperLink.connect(str(session.run()), lambda kind, payload: None, role="attach")
            link.send(wire.INPUT, b"\r")
            await until(lambda: watch.over)
            link.close()
            watch.close()

        asyncio.run(end())
        ((state, ended, log),) = found
        assert (state, ended["code"], log) == ("failed", 7, 300000 + len(b"\r\n"))
        fleet.ended(session)


def test_viewers_type_through_one_connection_with_the_size_of_who_typed_last(fleet: Fleet):
    session = fleet.sh('echo ready; while read line; do stty size; echo "<$line>"; done')
    shows(session, b"ready")

    async def type_in() -> None:
        keys = Keys(str(session.run()))
        async with screens() as made:
            desktop, phone = (Viewer(None, str(session.run()), made, *size) for size in ((120, 40), (40, 20)))
            await keys.join(desktop)
            await keys.join(phone)
            await keys.type(phone, b"from the phone\r")
            await asyncio.to_thread(shows, session, b"20 40\r\n<from the phone>")
            await keys.type(desktop, b"from the desktop\r")
            await asyncio.to_thread(shows, session, b"40 120\r\n<from the desktop>")
            await keys.leave(phone)
            await keys.leave(desktop)

    asyncio.run(type_in())
    fleet.stop(session)


def test_a_link_is_welcomed_follows_and_is_poked_as_by_a_keeper(fleet: Fleet):
    session = fleet.sh(ECHO)
    shows(session, b"ready\r\n")
    with Link.connect(str(session.run())) as link:
        about = {key: link.welcome[key] for key in ("session", "run", "state", "first", "end", "cols", "rows")}
        assert about == {
            "session": session.id,
            "run": 1,
            "state": "running",
            "first": 0,
            "end": 7,
            "cols": 80,
            "rows": 24,
        }
        assert link.welcome["pid"] == session.agent_pid()
        link.follow(7)
        assert link.frames(0.05) == []
        assert link.request("send", text="more")["ok"] is True
        pokes = [payload for kind, payload in link.frames(10) if kind == wire.POKE]
        assert [int.from_bytes(payload, "big") for payload in pokes] == [len(b"ready\r\n<more>\r\n")]
        assert link.request("ping")["ok"] is True
    fleet.stop(session)


def test_the_lock_in_the_copy_names_the_hub_and_is_free_when_the_end_is_known(fleet: Fleet):
    session = fleet.sh(ASLEEP)
    assert kept(str(session.run())).alive is True
    assert session.keeper_pid() == os.getpid()
    fleet.stop(session)
    assert is_kept(str(session.run())) is False
    assert not (session.run() / "ctl.sock").exists()


def test_what_the_log_has_dropped_is_dropped_in_the_copy_and_told_as_a_gap(fleet: Fleet):
    """A log of 1 MiB, and a reader that begins where the log has nothing any more."""
    settings = Settings(log_cap_mib=1)
    session = fleet.sh("stty raw -echo; head -c 5000000 /dev/urandom; exec sleep 1000", settings=settings)
    folder = str(session.run() / "output")
    eventually(lambda: output.bounds(folder)[1] == 5000000, what="all of the output")
    first, end = output.bounds(str(fleet.pod(session).truth.run() / "output"))
    assert (first > 3_900_000, end) == (True, 5000000)
    eventually(lambda: output.bounds(folder)[0] == first, what="the oldest segments to go")
    assert session.output() == truth(session, fleet)
    with output.Reader(folder) as reader:
        chunk = reader.read(10)
    assert (chunk.offset, chunk.lost) == (first, first)
    fleet.stop(session)


def test_who_comes_in_the_moment_of_the_end_is_turned_away(fleet: Fleet):
    """The connection was made before the socket was closed, and is taken up after it."""
    session = fleet.sh(ASLEEP)
    standin = fleet.links._standins[str(session.folder)][1]

    async def ends_meanwhile() -> bytes:
        late = LocalClient(standin)
        here, there = socket.socketpair()
        there.setblocking(False)
        standin.is_over = True
        await asyncio.get_running_loop().create_unix_connection(lambda: late, sock=here)
        try:
            return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(there, 1), 10)
        finally:
            standin.is_over = False
            there.close()

    assert asyncio.run(ends_meanwhile()) == b""
    fleet.stop(session)
