"""Many tiny pieces: no flood, with or without credentials, keeps the owner waiting or fills the hub's memory."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import pytest

from hitchpost.hub.http.tokens import create_bearer
from tests.ground import Ground
from tests.hubs import HubProcess, hub_of
from tests.security.attacks import UPGRADE, Headers, ask, bearer, connected, host_of, until_running
from tests.support import eventually

FLOOD_S = 4.0
LONGEST_S = 60.0
SLOWER = 20
"""How many times longer than in a quiet moment the owner may wait, where that is more than ``AT_LEAST_S``."""
AT_LEAST_S = 0.5
UNKNOWN_BYTES = 64 << 10
FORK = multiprocessing.get_context("fork")
CHUNKS = b"1\r\nx\r\n" * 50_000
PING = b"\x89\x80\0\0\0\0"
EMPTY_TEXT = b"\x81\x80\0\0\0\0"


def head_of(hub: HubProcess, method: str, path: str, headers: Headers = ()) -> bytes:
    lines = [f"{name}: {value}\r\n" for name, value in (("Host", host_of(hub)), *headers)]
    return f"{method} {path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode()


def chunked(hub: HubProcess, path: str, headers: Headers = ()) -> bytes:
    wanted = (("Content-Type", "application/json"), ("Transfer-Encoding", "chunked"), *headers)
    return head_of(hub, "POST", path, wanted)


@contextmanager
def flood(attacks: Sequence[Callable[[], object]]) -> Iterator[None]:
    """Each of the attacks again and again, in a process of its own."""

    def again(attack: Callable[[], object]) -> None:
        ends = time.monotonic() + LONGEST_S
        while time.monotonic() < ends:
            try:
                attack()
            except OSError:
                time.sleep(0.001)  # it was hung up on

    processes = [FORK.Process(target=again, args=(attack,)) for attack in attacks]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()
            process.close()


def waits_of_the_owner(hub: HubProcess, for_s: float) -> list[float]:
    """How long each of the owner's requests took, on connections of their own."""
    found: list[float] = []
    signed = [bearer(hub)]
    ends = time.monotonic() + for_s
    while time.monotonic() < ends:
        began = time.monotonic()
        assert ask(hub, "GET", "/api/health", signed).status == 200
        found.append(time.monotonic() - began)
        time.sleep(0.01)
    return found


def assert_owner_is_served(hub: HubProcess, attacks: Sequence[Callable[[], object]]) -> None:
    """The owner's requests are all answered, about as soon as the machine allows: it is busy with the flood, too."""
    quiet = statistics.median(waits_of_the_owner(hub, 1.0))
    with flood(attacks):
        time.sleep(0.3)
        waits = waits_of_the_owner(hub, FLOOD_S)
    middle, worst = statistics.median(waits), max(waits)
    told = f"{len(waits)} answers, in the middle {middle:.3f} s, at worst {worst:.3f} s, when quiet {quiet:.4f} s"
    print(told)
    assert middle < max(SLOWER * quiet, AT_LEAST_S), told


def sends(hub: HubProcess, request: bytes) -> Callable[[], None]:
    def attack() -> None:
        with connected(hub) as sock:
            sock.sendall(request)

    return attack


def websocket(hub: HubProcess, token: str) -> socket.socket:
    """A WebSocket, as it is on the wire."""
    sock = connected(hub)
    sock.sendall(head_of(hub, "GET", "/ws", (*UPGRADE, ("Authorization", f"Bearer {token}"))))
    answer = b""
    while b"\r\n\r\n" not in answer and (part := sock.recv(1)):
        answer += part
    if not answer.startswith(b"HTTP/1.1 101"):
        sock.close()
        raise AssertionError(answer)
    return sock


def text_frame(text: str) -> bytes:
    """Masked with zeros."""
    data = text.encode()
    return b"\x81\xff" + len(data).to_bytes(8, "big") + bytes(4) + data


def memory_bytes(hub: HubProcess) -> int:
    assert hub.process is not None
    with open(f"/proc/{hub.process.pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def send_for(sock: socket.socket, data: bytes, seconds: float, times: int = 1_000_000) -> int:
    """Send it again and again, as far as it is taken; how many bytes that were. Nothing is read."""
    sock.settimeout(0.2)
    ends = time.monotonic() + seconds
    sent = 0
    while sent < times * len(data) and time.monotonic() < ends:
        try:
            sent += sock.send(memoryview(data)[sent % len(data) :])
        except TimeoutError:
            continue
        except ConnectionError:
            break
    return sent


# without credentials --------------------------------------------------------------------------------------------


@pytest.mark.ids("S14")
@pytest.mark.parametrize("path", ["/api/sign-in", "/api/sessions"])
def test_S14_tiny_chunks_without_credentials_do_not_hold_up_the_owner(hub: HubProcess, path: str) -> None:
    assert_owner_is_served(hub, [sends(hub, chunked(hub, path) + CHUNKS)] * 4)


@pytest.mark.ids("S14")
def test_S14_heads_of_many_lines_do_not_hold_up_the_owner(hub: HubProcess) -> None:
    request = head_of(hub, "GET", "/", [(f"a{number}", "") for number in range(1500)]) * 20
    assert_owner_is_served(hub, [sends(hub, request)] * 4)


@pytest.mark.ids("S14")
def test_S14_who_is_not_known_is_heard_only_so_long(hub: HubProcess) -> None:
    """Requests that anybody may make, one behind the other, without an end."""
    client, answered = http.client.HTTPConnection(host_of(hub), timeout=20), 0
    padding = {"X": "x" * 1000}
    with suppress(http.client.HTTPException, ConnectionError):
        while answered < 1000:
            client.request("GET", "/favicon.svg", headers=padding)
            assert client.sock is not None
            client.auto_open = 0
            assert client.getresponse().read()
            answered += 1
    client.close()
    assert 10 < answered < UNKNOWN_BYTES / 1000


@pytest.mark.ids("S14")
def test_S14_an_answer_that_refuses_a_long_body_reaches_who_is_still_sending_it(hub: HubProcess) -> None:
    body = b" " * (7 << 20)  # more than the kernel holds
    for ends in ("close", "keep-alive"):
        headers = [("Content-Type", "application/json"), ("Connection", ends)]
        assert (ends, ask(hub, "POST", "/api/sessions", headers, body).status) == (ends, 401)


@pytest.mark.ids("S14")
def test_S14_a_long_head_is_taken_in_its_pieces(hub: HubProcess) -> None:
    assert ask(hub, "GET", f"/api/health?{'x' * 40_000}", [bearer(hub)]).status == 200
    assert ask(hub, "GET", f"/api/health?{'x' * 60_000}", [bearer(hub)]).status == 400


@pytest.mark.ids("S14")
def test_S14_bare_connections_do_not_keep_the_owner_out(hub: HubProcess) -> None:
    assert_owner_is_served(hub, [sends(hub, b"")] * 4)


# with a viewer's token ------------------------------------------------------------------------------------------


@pytest.mark.ids("S14")
@pytest.mark.parametrize("role", ["viewer", "owner"])
def test_S14_tiny_chunks_of_somebody_with_one_session_do_not_hold_up_the_owner(hub: HubProcess, role: str) -> None:
    token = create_bearer(hub.home, "shared", role, frozenset(["0123456789ab"]))
    request = chunked(hub, "/api/ws-ticket", [("Authorization", f"Bearer {token}")]) + CHUNKS
    assert_owner_is_served(hub, [sends(hub, request)] * 4)


@pytest.mark.ids("S14")
@pytest.mark.parametrize("frame", [PING, EMPTY_TEXT], ids=["pings", "texts"])
def test_S14_tiny_frames_of_a_viewer_do_not_hold_up_the_owner(hub: HubProcess, frame: bytes) -> None:
    frames = frame * 40_000
    with ExitStack() as stack:
        socks = [stack.enter_context(websocket(hub, hub.token("viewer"))) for _ in range(8)]
        assert_owner_is_served(hub, [partial(send_for, sock, frames, LONGEST_S) for sock in socks])


@pytest.mark.ids("S14")
def test_S14_pings_of_a_viewer_that_reads_nothing_take_no_memory(hub: HubProcess) -> None:
    with websocket(hub, hub.token("viewer")) as sock:
        assert most_memory_bytes(hub, sock, (b"\x89\xfd" + bytes(129)) * 150_000) < 5 << 20
    assert hub.ask("GET", "/api/health")["ok"]


def frames_of(count: int, **wanted: str) -> bytes:
    """Each is about another session."""
    texts = [json.dumps({**wanted, "sessionId": f"{number}{wanted['sessionId']}"}) for number in range(count)]
    return b"".join(map(text_frame, texts))


def most_memory_bytes(hub: HubProcess, sock: socket.socket, data: bytes) -> int:
    """By how much the hub has grown at most while it was sent the bytes, as far as it took them in a few seconds."""
    before = most = memory_bytes(hub)
    sending = threading.Thread(target=send_for, args=(sock, data, FLOOD_S, 1))
    sending.start()
    while sending.is_alive():
        most = max(most, memory_bytes(hub))
        time.sleep(0.05)
    print(f"{(most - before) >> 20} MiB")
    return most - before


@pytest.mark.ids("S14")
@pytest.mark.parametrize("length", [3_900_000, 60_000, 100], ids=str)
def test_S14_names_of_sessions_that_a_viewer_makes_up_take_no_memory(hub: HubProcess, length: int) -> None:
    token = create_bearer(hub.home, "shared", "viewer", frozenset(["0123456789ab"]))
    data = frames_of(min(20_000, 120_000_000 // length), type="session.attach", sessionId="x" * length)
    with websocket(hub, token) as sock:
        assert most_memory_bytes(hub, sock, data) < 40 << 20
    assert hub.ask("GET", "/api/health")["ok"]


@pytest.mark.ids("S14")
def test_S14_what_is_asked_by_somebody_who_reads_no_answers_is_bounded(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("head -c 14000000 /dev/zero | tr '\\0' x; echo; echo the end; exec cat", name="dev")
    eventually(lambda: b"the end" in dev.output()[-4000:], 60)
    until_running(hub, dev.id)
    token = create_bearer(hub.home, "shared", "owner", frozenset([dev.id]))
    with websocket(hub, token) as sock:
        sock.sendall(text_frame(json.dumps({"type": "session.attach", "sessionId": dev.id, "from": 0})))
        time.sleep(1)  # what it shows is more than the connection holds
        data = frames_of(200, type="terminal.input", sessionId="nobody", data="x" * 1_000_000)
        assert most_memory_bytes(hub, sock, data) < 60 << 20
    ground.end(dev)


# descriptors ----------------------------------------------------------------------------------------------------


@pytest.mark.ids("S14")
def test_S14_what_viewers_look_at_leaves_the_owner_enough_descriptors(ground: Ground) -> None:
    sessions = [ground.begin_sh("echo output; exec cat", name=f"dev{number}") for number in range(8)]
    with hub_of(ground, "sh", "-c", 'ulimit -n 200; exec "$@"', "sh") as hub, ExitStack() as stack:
        for session in sessions:
            until_running(hub, session.id)
        for number in range(2):
            token = create_bearer(hub.home, f"viewer {number}", "viewer")
            for _ in range(32):
                try:
                    sock = stack.enter_context(websocket(hub, token))
                except AssertionError:
                    break  # there are enough
                for session in sessions:
                    wanted = {"type": "session.attach", "sessionId": session.id, "from": 0}
                    sock.sendall(text_frame(json.dumps(wanted)))
        time.sleep(1)
        assert min(waits_of_the_owner(hub, 2.0)) > 0
        with websocket(hub, hub.token()) as sock:
            sock.sendall(text_frame(json.dumps({"type": "session.attach", "sessionId": sessions[0].id, "from": 0})))
            said = b""
            while b"output" not in said:
                said += sock.recv(1 << 16)
        assert "Too many open files" not in hub.log()
    for session in sessions:
        ground.end(session)
