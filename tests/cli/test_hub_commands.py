"""``up``, ``down``, ``status``, ``resume``, ``cancel``, ``prune``, ``token``: with a hub and without one."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hitchpost.hub import client as hub_client
from hitchpost.hub.http.local import LocalSocket
from hitchpost.hub.http.server import take_locks
from tests.ground import Ground, Truth, alive
from tests.hubs import refused
from tests.signing import launched
from tests.support import eventually, halt

ECHO = 'stty -echo; while read line; do echo "<$line>"; done'


@pytest.fixture
def up(ground: Ground) -> Iterator[dict[str, Any]]:
    """A hub that ``hitch up`` started, with what it printed; it is ended at the end."""
    yield ground.hitch("up", "--port", "0", "--json").json()
    ground.hitch("down")


def hub_file(ground: Ground) -> dict[str, Any]:
    return json.loads((ground.home / "hub.json").read_bytes())


def test_up_prints_a_url_that_signs_in_once(ground: Ground, up: dict[str, Any]) -> None:
    assert set(up) == {"url", "launch_url"}
    assert up["url"] == hub_file(ground)["url"]
    assert up["launch_url"].startswith(f"{up['url']}#code=")
    assert [launched(up["launch_url"]) for _ in range(2)] == [200, 0]


def test_up_again_is_the_same_hub_with_a_fresh_url(ground: Ground, up: dict[str, Any]) -> None:
    before = hub_file(ground)
    again = ground.hitch("up")
    assert hub_file(ground) == before
    first, url = again.out.strip().rsplit(" ", 1)
    assert first == "the hub is up:"
    assert url.startswith(up["url"])
    assert url != up["launch_url"]
    assert "works once" in again.err
    assert launched(url) == 200


def test_down_ends_the_hub_and_leaves_sessions_alone(ground: Ground) -> None:
    ground.hitch("up", "--port", "0")
    pid = hub_file(ground)["pid"]
    dev = ground.begin_sh(ECHO)
    assert ground.hitch("down").out == "the hub is down\n"
    eventually(lambda: not alive(pid))
    assert not (ground.home / "hub.json").exists()
    assert not (ground.home / "hub.sock").exists()
    assert (dev.state, alive(dev.agent_pid())) == ("running", True)
    assert ground.hitch("down").out == "the hub is not running\n"
    ground.end(dev)


def test_up_works_after_a_kill(ground: Ground) -> None:
    ground.hitch("up", "--port", "0")
    pid = hub_file(ground)["pid"]
    os.kill(pid, 9)
    # its first thread may be gone while another still holds the lock
    eventually(lambda: not alive(pid) and not hub_client.is_up(str(ground.home)))
    assert ground.hitch("down").out == "the hub is not running\n"
    assert ground.hitch("status", "--json").json()["hub"] is None
    assert launched(ground.hitch("up", "--port", "0", "--json").json()["launch_url"]) == 200
    assert hub_file(ground)["pid"] != pid
    ground.hitch("down")


@pytest.mark.parametrize("names", [["hub.lock"], ["hub.json"], ["hub.lock", "hub.json"]])
@pytest.mark.ids("F32")
def test_a_hub_whose_files_are_deleted_stays_the_only_one_and_is_found(ground: Ground, names: list[str]) -> None:
    ground.hitch("up", "--port", "0")
    pid = hub_file(ground)["pid"]
    for name in names:
        (ground.home / name).unlink()
    second = refused()
    assert second.code == 4
    assert "another hub serves this home" in second.err
    ground.hitch("up")
    assert ground.hitch("status", "--json").json()["hub"]["pid"] == pid
    assert ground.hitch("down").out == "the hub is down\n"
    assert not alive(pid)


@pytest.mark.ids("C21")
def test_a_hub_whose_socket_is_removed_is_not_told_as_stopped_and_makes_it_again(ground: Ground) -> None:
    ground.hitch("up", "--port", "0")
    pid = hub_file(ground)["pid"]
    (ground.home / "hub.sock").unlink()
    halt(pid)  # it has no time to make it again
    words = f"does not answer (process stopped); kill -CONT {pid} resumes it, hitch down ends it"
    assert ground.hitch("status").out.splitlines()[1] == f"  hub       {words}"
    os.kill(pid, signal.SIGCONT)
    assert launched(ground.hitch("up", "--json").json()["launch_url"]) == 200
    assert (hub_file(ground)["pid"], (ground.home / "hub.sock").stat().st_mode & 0o777) == (pid, 0o600)
    assert ground.hitch("status", "--json").json()["hub"]["pid"] == pid
    assert ground.hitch("down").out == "the hub is down\n"
    assert not (ground.home / "hub.sock").exists()


@pytest.mark.ids("C21")
def test_a_hub_listens_on_one_socket_however_often_that_is_removed(ground: Ground) -> None:
    ground.hitch("up", "--port", "0")
    pid, path = hub_file(ground)["pid"], ground.home / "hub.sock"
    listeners = local_listeners(pid)
    before = hub_client.connect(str(ground.home), 60)
    for _ in range(2):
        path.unlink()
        eventually(path.exists, 60, "another socket")
        eventually(lambda: local_listeners(pid) == listeners, 60, "that the one before is closed")
        assert ground.hitch("status", "--json").json()["hub"]["pid"] == pid
    with before:
        before.sendall(b"GET /api/health HTTP/1.1\r\nHost: hub\r\n\r\n")
        assert before.recv(100).startswith(b"HTTP/1.1 "), "who is connected stays"
    assert ground.hitch("down").out == "the hub is down\n"


def local_listeners(pid: int) -> int:
    """On how many Unix sockets a process listens."""
    links = (os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd"))
    rows = [line.split() for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]]
    listening = {f"socket:[{row[6]}]" for row in rows if row[3] == "00010000"}
    return len(listening.intersection(links))


@pytest.mark.ids("C21")
def test_a_hub_that_nobody_can_reach_is_told_so(ground: Ground) -> None:
    held = take_locks(str(ground.home))
    words = f"does not answer (pid {os.getpid()}): it starts or ends, or its socket was removed; try again in a moment"
    assert ground.hitch("status").out.splitlines()[1] == f"  hub       {words}"
    assert f"the hub {words}" in ground.hitch("doctor", check=False).out
    for fd in held:
        os.close(fd)
    assert ground.hitch("status", "--json").json()["hub"] is None


def test_a_hub_that_breaks_off_is_not_told_as_one_whose_socket_was_removed(ground: Ground) -> None:
    held = take_locks(str(ground.home))
    with LocalSocket(str(ground.home)).open() as listener, ThreadPoolExecutor(1) as threads:
        broken = threads.submit(lambda: listener.accept()[0].close())
        with pytest.raises(hub_client.SilentHub) as error:
            hub_client.ask(str(ground.home), "GET", "/api/health")
        broken.result()
    for fd in held:
        os.close(fd)
    why = "it broke the connection off; try again in a moment"
    assert str(error.value) == f"the hub does not answer (pid {os.getpid()}): {why}"


@pytest.mark.ids("F31")
def test_a_hub_that_was_stopped_is_told_so_with_what_to_do_and_down_ends_it(ground: Ground) -> None:
    ground.hitch("up", "--port", "0")
    pid = hub_file(ground)["pid"]
    halt(pid)
    words = f"does not answer (process stopped); kill -CONT {pid} resumes it, hitch down ends it"
    assert ground.hitch("status").out.splitlines()[1] == f"  hub       {words}"
    status = ground.hitch("status", "--json").json()
    assert status["hub"] == {"ok": False, "pid": pid, "problems": [f"the hub {words}"]}
    assert f"the hub {words}" in ground.hitch("up", check=1).err
    assert f"the hub {words}" in ground.hitch("doctor", check=False).out
    down = ground.hitch("down")
    assert down.out == "the hub is down\n"
    assert f"the hub (pid {pid}) was stopped" in down.err
    assert not alive(pid)


def test_a_port_that_is_taken_is_said(ground: Ground) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = ground.hitch("up", "--port", str(port), check=False)
        assert answer.code != 0
        assert f"cannot listen on 127.0.0.1:{port}: address already in use; choose another --port, or 0" in answer.err
        assert "Traceback" not in answer.err
        direct = ground.hitch("up", "--foreground", "--port", str(port), check=4)
        assert "address already in use" in direct.err
    assert not (ground.home / "hub.json").exists()


@pytest.mark.ids("S13")
def test_an_address_that_others_reach_is_refused(ground: Ground) -> None:
    for words in ((), ("--foreground",)):
        answer = ground.hitch("up", "--host", "0.0.0.0", "--port", "0", *words, check=False)
        assert answer.code != 0
        assert "will not listen on 0.0.0.0" in answer.err
    assert ground.hitch("down").out == "the hub is not running\n"


@pytest.mark.ids("X21")
def test_status_has_three_sections_with_a_hub_and_without(ground: Ground) -> None:
    assert ground.hitch("status").out.splitlines() == [
        "Services:",
        "  hub       stopped   (hitch up starts it)",
        "Containers:",
        "  none",
        "Sessions:",
        "  none",
    ]
    live, dead, done = ground.begin_sh(ECHO), ground.begin_sh("exit 1"), ground.begin_sh("exit 0")
    dead.ended()
    done.ended()
    ground.hitch("up", "--port", "0")
    lines = ground.hitch("status").out.splitlines()
    pid = hub_file(ground)["pid"]
    assert lines[1].startswith(f"  hub       running   pid {pid}, up ")
    assert lines[1].endswith("(1 failed, 1 completed)")
    name = ground.ps(dead)["name"]
    counted = [f"Sessions: 1 needs you ({name})", "  1 completed", "  1 failed", "  1 running"]
    assert lines[2:] == ["Containers:", "  none", *counted]
    status = ground.hitch("status", "--json").json()
    assert (status["hub"]["pid"], status["hub"]["sessions"], status["hub"]["live"]) == (pid, 3, 1)
    assert status["counts"] == {"running": 1, "error": 1, "stopped": 1}
    assert len(status["sessions"]) == 3
    ground.hitch("down")
    assert ground.hitch("status", "--json").json()["counts"] == status["counts"]
    ground.end(live)


@pytest.mark.ids("D-8", "X26")
def test_resume_starts_the_next_run_and_says_which_conversation(ground: Ground) -> None:
    dev = ground.begin_sh(f"echo $HITCHPOST_RUN; {ECHO}", name="dev")
    answer = ground.hitch("resume", "dev", check=4)
    assert "dev is running; there is nothing to resume" in answer.err
    ground.hitch("stop", "dev")
    assert ground.hitch("resume", "dev").out == "dev: running (run 2), a new conversation\n"
    ground.hitch("stop", "dev")
    found = ground.hitch("resume", "dev", "--json").json()
    assert (found["id"], found["run"], found["state"], found["resumed_conversation"]) == (dev.id, 3, "running", False)
    ground.end(dev)
    ground.hitch("archive", "dev")
    assert "dev is archived: it takes no new run" in ground.hitch("resume", "dev", check=4).err
    assert ground.hitch("resume", "nobody", check=3).err


@pytest.mark.ids("D-11", "X17")
def test_cancel_asks_first_and_archives_what_it_ends(ground: Ground) -> None:
    dev = ground.begin_sh(ECHO, name="dev")
    answer = ground.hitch("cancel", "dev", stdin="n\n", check=False)
    assert (answer.code, dev.state) == (1, "running")
    assert "end dev now, and archive it?" in answer.err
    assert ground.hitch("cancel", "dev", stdin="y\n").out == "dev: cancelled\n"
    assert (dev.ended(), dev.exit()["intent"]) == ("stopped", "user")
    assert "archived" in ground.hitch("resume", "dev", check=4).err
    ground.begin_sh(ECHO, name="other")
    found = ground.hitch("cancel", "other", "--yes", "--json").json()
    assert (found["record"], found["state"], found["run"]) == ("archived", "stopped", 1)
    assert ground.hitch("cancel", "nobody", "--yes", check=3).err


@pytest.mark.ids("D-11")
def test_cancel_asks_only_what_it_will_do(ground: Ground) -> None:
    dev = ground.begin("sh", "-c", "exit 3", name="dev")
    assert dev.ended() == "failed"
    assert "archive dev? [y/N]" in ground.hitch("cancel", "dev", stdin="n\n", check=1).err
    ground.hitch("cancel", "dev", stdin="y\n")
    again = ground.hitch("cancel", "dev", stdin="y\n", check=4).err
    assert "dev is archived already" in again
    assert "?" not in again


@pytest.mark.ids("D-10")
def test_prune_says_what_it_would_do_and_then_does_it(ground: Ground) -> None:
    assert ground.hitch("prune").out == "nothing is due\n"
    dev = Truth(ground.home, ground.begin_sh("exit 1", name="dev").id)
    dev.ended()
    old = (datetime.now(UTC) - timedelta(days=2)).isoformat()
    value = json.loads((dev.folder / "session.json").read_bytes())
    new = ground.home / "changed.json"
    new.write_text(json.dumps({**value, "record": "error", "last_active_at": old}))
    new.rename(dev.folder / "session.json")
    assert ground.hitch("prune", "--dry-run").out.startswith(f"dev ({dev.id}): would be deleted, error since ")
    assert dev.folder.exists()
    assert ground.hitch("prune").out.startswith(f"dev ({dev.id}): deleted, error since ")
    assert not dev.folder.exists()


@pytest.mark.ids("S1", "S15")
def test_a_token_is_printed_once_and_has_the_role_that_was_asked_for(ground: Ground, up: dict[str, Any]) -> None:
    tokens = {role: ground.hitch("token", "create", "--role", role).out.strip() for role in ("owner", "viewer")}
    api = f"{up['url']}api"
    wish = {"command": ["true"], "folder": str(ground.place)}
    for role, made in (("owner", 201), ("viewer", 403)):
        headers = {"Authorization": f"Bearer {tokens[role]}"}
        assert httpx2.get(f"{api}/sessions", headers=headers).status_code == 200
        assert httpx2.post(f"{api}/sessions", json=wish, headers=headers).status_code == made
    assert httpx2.get(f"{api}/sessions").status_code == 401
    kept = b"".join(path.read_bytes() for path in ground.home.rglob("*") if path.is_file())
    assert not [token for token in tokens.values() if token.encode() in kept]
    assert ground.hitch("token", "create", "--role", "king", check=2).err
