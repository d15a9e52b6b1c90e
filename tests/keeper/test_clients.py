from __future__ import annotations

import json
import os
import select
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import ANY

import pytest

from hitchpost import wire
from hitchpost.keeper.clients import BRIEF_S, MOST_CLIENTS, MOST_UNREAD_BYTES, PLACES_FOR_REQUESTS, Client, Clients
from hitchpost.runtimes.link import Link, NoKeeper
from tests.ground import Ground, Truth
from tests.support import LeakWatch, eventually


class Door:
    """The keeper's side of a socket, without a keeper."""

    def __init__(self, folder: Path) -> None:
        self.poll = select.epoll()
        self.gone: list[Client] = []
        self.clients = Clients(str(folder), self.poll, self.gone.append)
        self.clients.open()
        self.ends: list[socket.socket] = []

    def connect(self) -> tuple[socket.socket, Client | None]:
        """A client's end, and the keeper's idea of it; None when it was turned away, or waits."""
        known = set(self.clients.by_fd)
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.ends.append(end)
        end.connect(self.clients.path)
        self.clients.accept()
        new = set(self.clients.by_fd) - known
        return end, self.clients.by_fd[new.pop()] if new else None

    def client(self) -> tuple[socket.socket, Client]:
        end, client = self.connect()
        assert client is not None
        client.greeted = True
        return end, client

    def close(self) -> None:
        self.clients.close_all()
        for end in self.ends:
            end.close()
        self.poll.close()


@pytest.fixture
def door(leak_watch: LeakWatch) -> Iterator[Door]:
    made = Door(leak_watch.scratch)
    yield made
    made.close()


def test_the_socket_is_for_its_owner_only_and_goes_with_the_keeper(door: Door):
    path = Path(door.clients.path)
    assert path.stat().st_mode & 0o777 == 0o600
    door.clients.close_all()
    assert not path.exists()


def test_frames_come_in_order_however_they_were_cut(door: Door):
    end, client = door.client()
    stream = wire.frame(b"I", b"one") + wire.frame(b"F", bytes(8)) + wire.frame(b"I", b"")
    found = []
    for at in range(len(stream)):
        end.sendall(stream[at : at + 1])
        found += door.clients.read(client)
    assert found == [(b"I", b"one"), (b"F", bytes(8)), (b"I", b"")]
    assert client.inbox == b""


def test_a_frame_that_is_too_large_closes_its_client(door: Door):
    end, client = door.client()
    end.sendall((wire.MAX_PAYLOAD_BYTES + 1).to_bytes(4, "big") + b"I")
    assert door.clients.read(client) == []
    assert (client.fd, door.gone, door.clients.by_fd) == (-1, [client], {})
    assert end.recv(1) == b""


def test_a_client_that_left_is_closed_once(door: Door):
    end, client = door.client()
    end.close()
    assert door.clients.read(client) == []
    door.clients.close(client)
    assert door.gone == [client]
    door.clients.send(client, b"P", b"")
    assert client.outbox == b""


def test_what_a_client_said_before_it_left_is_heard_even_if_it_is_told_something_meanwhile(door: Door):
    end, client = door.client()
    end.sendall(wire.frame(b"I", b"keys"))
    end.close()
    door.clients.tell_all({"event": "resize"})
    assert client.outbox == b""
    assert door.clients.read(client) == [(b"I", b"keys")]
    assert door.gone == []
    assert door.clients.read(client) == []
    assert door.gone == [client]


@pytest.mark.ids("F70")
def test_a_client_that_does_not_read_is_closed_with_bounded_memory(door: Door):
    end, slow = door.client()
    _, other = door.client()
    event: dict[str, object] = {"event": "attention", "text": "x" * 1000}
    told = most = 0
    while slow.fd >= 0:
        door.clients.send_json(slow, wire.EVENT, event)
        most = max(most, len(slow.outbox))
        told += 1
        assert told < 10_000
    assert most <= MOST_UNREAD_BYTES + 2000
    assert door.gone == [slow]
    assert other.fd >= 0
    assert end.recv(1) != b""


def test_a_slow_client_gets_the_rest_once_it_reads(door: Door):
    end, client = door.client()
    payload = b"x" * 200_000
    door.clients.send(client, wire.EVENT, payload)
    if not client.outbox:
        door.clients.send(client, wire.EVENT, payload)
    assert client.outbox
    assert door.clients.unread()
    inbox = bytearray()
    frames: list[tuple[bytes, bytes]] = []
    end.setblocking(False)
    while client.outbox or not frames:
        try:
            inbox += end.recv(65536)
        except BlockingIOError:
            pass
        for fd, events in door.poll.poll(0):
            if fd == client.fd and events & select.EPOLLOUT:
                door.clients.flush(client)
        frames += wire.take_frames(inbox)
    assert frames[0] == (wire.EVENT, payload)
    assert not door.clients.unread()


def test_followers_are_told_once(door: Door):
    end, client = door.client()
    client.follow = 10
    for reach in (5, 10, 11, 12):
        door.clients.poke(reach)
    assert wire.take_frames(bytearray(end.recv(1000))) == [(wire.POKE, (11).to_bytes(8, "big"))]
    assert client.follow is None


def test_only_those_who_said_hello_are_told(door: Door):
    end, _ = door.client()
    stranger, _ = door.connect()
    door.clients.tell_all({"event": "state"})
    assert [json.loads(payload) for _, payload in wire.take_frames(bytearray(end.recv(1000)))] == [{"event": "state"}]
    stranger.setblocking(False)
    with pytest.raises(BlockingIOError):
        stranger.recv(1)


@pytest.mark.ids("S14")
def test_who_comes_after_256_is_brief_and_the_first_of_16_such_gives_way(door: Door):
    everyone = [door.client() for _ in range(MOST_CLIENTS + PLACES_FOR_REQUESTS)]
    assert [client.brief for _, client in everyone] == [False] * MOST_CLIENTS + [True] * PLACES_FOR_REQUESTS
    assert door.connect()[1] is None, "it waits: the others have only just come"
    everyone[MOST_CLIENTS][1].since -= BRIEF_S
    door.clients.accept()
    assert everyone[MOST_CLIENTS][0].recv(1) == b""
    assert len(door.clients.by_fd) == MOST_CLIENTS + PLACES_FOR_REQUESTS
    for _, client in everyone[: PLACES_FOR_REQUESTS + 1]:
        door.clients.close(client)
    assert not door.client()[1].brief


# against a real keeper ------------------------------------------------------------------------------------------


@pytest.fixture
def dev(ground: Ground) -> Iterator[Truth]:
    session = ground.begin("cat")
    yield session
    ground.end(session)
    assert (session.state, session.exit()["intent"]) == ("stopped", "user")


def raw(session: Truth) -> socket.socket:
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    end.settimeout(10)
    end.connect(str(session.run() / "ctl.sock"))
    return end


HELLO = wire.frame(wire.HELLO, b'{"v": 1, "role": "attach", "cols": 80, "rows": 24}')


@pytest.mark.ids("S14")
@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        wire.frame(b"I", b"typed before hello"),
        wire.frame(wire.HELLO, b"not json"),
        wire.frame(wire.HELLO, b"[]"),
        wire.frame(wire.HELLO, b'{"v": ' + b"[" * 100_000),
        b"\xff" * 100,
        HELLO + wire.frame(wire.REQUEST, b"\xff\xfe"),
        HELLO + wire.frame(wire.REQUEST, b"7"),
        HELLO + b"\xff\xff\xff\xffI",
    ],
)
def test_garbage_costs_its_sender_the_connection_and_nobody_else(dev: Truth, garbage: bytes):
    with Link.connect(str(dev.run())) as friend, raw(dev) as end:
        end.sendall(garbage)
        while end.recv(65536):
            pass
        assert friend.request("send", text="hello")["ok"] is True
        eventually(lambda: b"hello" in dev.output())


@pytest.mark.parametrize(
    "odd",
    [
        wire.frame(b"?", b"a kind of the future"),
        wire.frame(wire.RESIZE, b""),
        wire.frame(wire.RESIZE, b"\xff\xff\xff\xff"),
        wire.frame(wire.FOLLOW, b"\xff" * 8),
        wire.frame(wire.FOLLOW, b""),
        wire.frame(wire.ANSWER, b"\x1b[0n"),
        wire.frame(wire.REQUEST, b'{"id": 1, "op": "fly"}'),
        wire.frame(wire.REQUEST, b'{"id": 1, "op": "send", "text": 7, "enter": false}'),
        wire.frame(wire.REQUEST, b"{}"),
    ],
)
def test_odd_frames_do_no_harm(dev: Truth, odd: bytes):
    with raw(dev) as end, Link.connect(str(dev.run())) as friend:
        end.sendall(HELLO + odd)
        assert friend.request("send", text="hello")["ok"] is True
        eventually(lambda: b"hello" in dev.output())


def test_a_read_only_client_types_nothing(dev: Truth):
    with Link.connect(str(dev.run()), role="attach", cols=50, rows=20, read_only=True) as viewer:
        viewer.send(wire.INPUT, b"typed\r")
        viewer.send(wire.ANSWER, b"answered\r")
        viewer.resize(33, 11)
        for op in ("send", "stop"):
            assert viewer.request(op, text="sent") == {"id": ANY, "ok": False, "why": "this client is read-only"}
        with Link.connect(str(dev.run())) as friend:
            assert (friend.welcome["cols"], friend.welcome["rows"]) == (80, 24)
            assert friend.request("send", text="last")["ok"] is True
    eventually(lambda: dev.output() == b"last\r\n" * 2)
    assert dev.state == "running"


def test_the_size_belongs_to_the_client_that_typed_last(dev: Truth):
    def size() -> tuple[int, int]:
        with Link.connect(str(dev.run())) as look:
            return look.welcome["cols"], look.welcome["rows"]

    with Link.connect(str(dev.run()), role="attach", cols=100, rows=30) as one:
        assert size() == (100, 30)
        with Link.connect(str(dev.run()), role="attach", cols=90, rows=20) as two:
            assert size() == (100, 30)
            two.send(wire.INPUT, b"x")
            eventually(lambda: size() == (90, 20))
            one.resize(101, 31)
            assert size() == (90, 20)
            two.resize(91, 21)
            eventually(lambda: size() == (91, 21))
        eventually(lambda: size() == (101, 31))


def test_input_that_the_agent_does_not_read_is_refused_in_the_end(ground: Ground):
    dev = ground.begin_sh("stty raw -echo; echo ready > ready; exec sleep 1000")
    ground.said("ready")
    with Link.connect(str(dev.run()), role="attach", cols=80, rows=24) as link:
        for _ in range(5):
            link.send(wire.INPUT, b"x" * 1_000_000)
        events = eventually(lambda: [json.loads(body) for kind, body in link.frames(1) if kind == wire.EVENT])
    assert {event["event"] for event in events} <= {"refused", "resize"}
    assert any(event.get("why") == "the agent does not read its input" for event in events)
    ground.end(dev)


@pytest.mark.ids("S14")
def test_256_clients_of_one_keeper_are_served_and_the_next_may_only_ask(ground: Ground):
    dev = ground.begin("cat")
    links = []
    try:
        for _ in range(MOST_CLIENTS):
            links.append(Link.connect(str(dev.run())))
        with pytest.raises(NoKeeper):
            Link.connect(str(dev.run()), role="attach", cols=80, rows=24)
        with Link.connect(str(dev.run())) as brief:
            assert brief.request("send", text="", enter=False)["ok"] is True
            brief.follow(0)
            assert brief.frames(10) == []
            assert brief.closed
        for link in links:
            link.follow(0)
        assert links[0].request("send", text="hello")["ok"] is True
        for link in links:
            assert wire.POKE in [kind for kind, _ in link.frames(10)]
        assert os.path.exists(f"/proc/{dev.keeper_pid()}")
    finally:
        for link in links:
            link.close()
    ground.end(dev)


@pytest.mark.ids("S14")
def test_everyone_is_heard_of_many_who_come_at_once_however_many_stay(ground: Ground):
    """Nobody hears that there is no keeper because there was no place, or because the kernel's queue was full."""
    dev = ground.begin("cat")
    at_once = threading.Barrier(200)

    def asked(_: int) -> bool:
        at_once.wait(60)
        with Link.connect(str(dev.run()), timeout_s=60) as link:
            return link.request("ping", timeout_s=60)["ok"] is True

    with ExitStack() as staying, ThreadPoolExecutor(at_once.parties) as pool:
        for _ in range(MOST_CLIENTS):
            staying.enter_context(Link.connect(str(dev.run())))
        assert all(pool.map(asked, range(at_once.parties)))
    ground.end(dev)


def test_when_the_owner_goes_the_size_is_of_who_typed_last_among_the_others(ground: Ground):
    dev = ground.begin("cat")
    where = str(dev.run())

    def joined(cols: int) -> Link:
        return Link.connect(where, role="attach", cols=cols, rows=20)

    def size() -> int:
        with Link.connect(where) as link:
            return link.welcome["cols"]

    with joined(81) as first, joined(82) as second, joined(83):
        assert size() == 81, "nobody has typed"
        second.send(wire.INPUT, b"b")
        eventually(lambda: size() == 82)
        with joined(84) as last:
            last.send(wire.INPUT, b"d")
            eventually(lambda: size() == 84)
        eventually(lambda: size() == 82)
        first.send(wire.RESIZE, (91).to_bytes(2, "big") + (20).to_bytes(2, "big"))
        first.request("send", text="", enter=False)
        assert size() == 82
    ground.end(dev)
