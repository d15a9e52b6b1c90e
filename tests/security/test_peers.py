"""S3: the hub's socket and the keepers' are this user's, and not a container's, wherever they can be seen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from socket import socketpair

import pytest

from hitchpost import wire
from hitchpost.system import peer
from tests.boxes import SOMEBODY, somebody
from tests.ground import Ground
from tests.hubs import HubProcess

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else or make a namespace")
ASK = """
import os, socket, sys
name, uid, request = sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3])
if uid:
    os.setgroups([]); os.setgid(uid); os.setuid(uid)
with socket.socket(socket.AF_UNIX) as peer:
    peer.settimeout(20)
    peer.connect(name)
    try:
        peer.sendall(request)
        said = peer.recv(4096)
        while request.startswith(b"GET") and (more := peer.recv(4096)):
            said += more
        print(said)
    except (BrokenPipeError, ConnectionResetError):
        print(b"")
"""
NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc")
HEALTH = b"GET /api/health HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n"
GREETING = f'{{"v":{wire.VERSION},"role":"control","cols":0,"rows":0,"read_only":false}}'
HELLO = wire.frame(wire.HELLO, GREETING.encode())


def answer(path: Path, request: bytes, *wrapper: str, uid: int = 0) -> str:
    argv = [*wrapper, sys.executable, "-I", "-S", "-c", ASK, path.name, str(uid), request.hex()]
    done = subprocess.run(argv, cwd=path.parent, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


@pytest.mark.ids("S3")
def test_S3_the_hub_answers_neither_a_container_nor_another_user(hub: HubProcess):
    socket = hub.ground.home / "hub.sock"
    assert "200 OK" in answer(socket, HEALTH)
    said = answer(socket, HEALTH, *NAMESPACE)
    assert "403" in said
    assert "process namespace" in said
    socket.chmod(0o666)
    hub.ground.home.chmod(0o711)
    said = answer(socket, HEALTH, uid=SOMEBODY)
    assert "403" in said
    assert f"user {SOMEBODY}" in said


@pytest.mark.ids("S3")
def test_S3_a_keeper_hangs_up_on_a_container_and_on_another_user(ground: Ground):
    session = ground.sh("exec sleep 1000")
    socket = session.run() / wire.SOCKET
    assert answer(socket, HELLO) != "b''"
    assert answer(socket, HELLO, *NAMESPACE) == "b''"
    socket.chmod(0o666)
    session.run().chmod(0o711)
    assert answer(socket, HELLO, uid=SOMEBODY) == "b''"
    ground.stop(session)


@pytest.mark.ids("S3")
def test_S3_root_may_speak_to_somebodys_keeper_but_not_from_a_container(ground: Ground):
    theirs = somebody(ground)
    session = theirs.sh("exec sleep 1000")
    socket = session.run() / wire.SOCKET
    assert answer(socket, HELLO) != "b''"
    assert answer(socket, HELLO, *NAMESPACE) == "b''"
    theirs.stop(session)


@pytest.mark.ids("S3")
def test_S3_all_may_live_in_a_namespace_together(ground: Ground):
    # to send needs the keeper's answer; to stop does not
    inside = "$0 run --json -- cat && $0 send --force 1 hello && $0 stop 1"
    script = f"exec unshare --pid --fork --mount-proc --kill-child sh -c '{inside}'"
    done = subprocess.run(
        ["sh", "-c", script.replace("$0", f"{sys.executable} -m hitchpost")],
        cwd=ground.place,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.ids("S3")
def test_S3_an_older_kernel_names_the_peer_by_its_number(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(peer, "SO_PEERPIDFD", 9999)
    ours, theirs = socketpair()
    with ours, theirs:
        assert peer.why_refused(ours.fileno()) == ""
