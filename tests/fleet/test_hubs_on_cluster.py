"""Two hubs over the real cluster and a real PostgreSQL: any of them answers, none of them is missed."""

from __future__ import annotations

import json
import os
import re
import time
from urllib.parse import urlsplit

import pytest

from hitchpost.hub.client import HubRefused
from tests.fleet.cluster_hubs import ECHO, Hubs, output, shown
from tests.hubs import HubProcess
from tests.kube import images
from tests.postgres import Server
from tests.support import eventually

AWAY_S = 60.0 if "LONG" in os.environ else 5.0


def test_a_session_of_one_hub_is_shown_driven_and_stopped_by_the_other(
    hubs: Hubs, two: tuple[HubProcess, HubProcess]
) -> None:
    first, second = two
    session = hubs.run(first, ECHO, name="dev")
    eventually(lambda: b"ready" in output(first, session), what="its output")
    eventually(lambda: shown(first, session) == shown(second, session), what="the same words")
    assert shown(second, session)["node"] in hubs.cluster.nodes
    second.ask("POST", f"/api/sessions/{session}/prompt", {"text": "hello"})
    for hub in two:
        eventually(lambda hub=hub: b"<hello>" in output(hub, session), what="the answer")  # type: ignore[misc]
    second.ask("POST", f"/api/sessions/{session}/stop")
    for hub in two:
        eventually(lambda hub=hub: shown(hub, session)["label"] == "stopped", what="its end")  # type: ignore[misc]
    story = [line["event"] for line in first.ask("GET", f"/api/sessions/{session}/story")]
    assert story.count("state") == 4
    assert not hubs.cluster.exists("pod", f"hitch-{session}", hubs.namespace)


def test_a_hub_that_is_killed_takes_nothing_along_and_a_new_one_knows_everything(
    hubs: Hubs, two: tuple[HubProcess, HubProcess]
) -> None:
    first, second = two
    session = hubs.run(first, f"seq 2000; {ECHO}", name="dev")
    eventually(lambda: b"ready" in output(second, session), what="its output")
    first.kill()
    second.ask("POST", f"/api/sessions/{session}/prompt", {"text": "after"})
    eventually(lambda: b"<after>" in output(second, session), what="the answer")
    assert shown(second, session)["state"] == "running"
    hubs.start(first)
    eventually(lambda: shown(first, session) == shown(second, session), what="the same words")
    eventually(lambda: output(first, session) == output(second, session), what="the same output")
    second.ask("POST", f"/api/sessions/{session}/stop")
    whole = output(second, session)
    with hubs.one_more() as third:
        eventually(lambda: shown(third, session)["label"] == "stopped", what="what became of it")
        third.ask("GET", f"/api/sessions/{session}/screen")
        assert output(third, session) == whole
        assert whole.startswith(b"1\r\n2\r\n3\r\n")
        assert os.listdir(os.path.join(third.home, "sessions")) == [session]


NEIGHBOUR = """
import socket, ssl, sys
from hitchpost.fleet.tls import Identity, name_of_session
host, session, database, port = sys.argv[1:]
def meet(context):
    with socket.create_connection((host, 8751), 10) as peer:
        try:
            with context.wrap_socket(peer, server_hostname=name_of_session(session)) as tls:
                return tls.recv(100) or "closed"
        except OSError as error:
            return getattr(error, "reason", None) or error
own = Identity("/run/hitchpost/identity", is_pod=False).context()
nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
nobody.load_verify_locations("/run/hitchpost/identity/authority.pem")
print("as itself:", meet(own))
print("as nobody:", meet(nobody))
with socket.create_connection((database, int(port)), 10) as peer:
    words = b"user\\0hitch\\0database\\0postgres\\0\\0"
    peer.sendall((len(words) + 8).to_bytes(4, "big") + (196608).to_bytes(4, "big") + words)
    answer = peer.recv(100)
    print("database:", answer[:1], int.from_bytes(answer[5:9], "big"))
print("done", flush=True)
import time
time.sleep(1000)
"""
"""PostgreSQL answers R 0 to whoever may come in, and R with another number to who has to show a password."""


def test_a_pod_reaches_neither_another_s_keeper_nor_the_database(hubs: Hubs) -> None:
    """By identity: the test cluster enforces no NetworkPolicy, so the packets arrive."""
    parts = urlsplit(hubs.database)
    with hubs.one_more() as hub:
        session = hubs.run(hub, ECHO, name="dev")
        eventually(lambda: b"ready" in output(hub, session), what="its output")
        pod = json.loads(hubs.cluster.kubectl("get", "pod", f"hitch-{session}", "-n", hubs.namespace, "-o", "json"))
        words = [pod["status"]["podIP"], session, str(parts.hostname), str(parts.port)]
        command = [images.PYTHON, "-c", NEIGHBOUR, *words]
        body = {"command": command, "folder": "/", "runtime": "pod", "name": "neighbour"}
        other = hub.ask("POST", "/api/sessions", body)["session"]["id"]
        eventually(lambda: b"done" in output(hub, other), what="its answers")
        said = output(hub, other).decode()
        told = dict(line.split(": ", 1) for line in said.splitlines() if ": " in line)
        assert "UNSUPPORTED_CERTIFICATE" in told["as itself"]
        assert "CERTIFICATE_REQUIRED" in told["as nobody"]
        kind, number = told["database"].split()
        assert (kind, number != "0") == ("b'R'", True)
        assert parts.password is not None
        everything = hubs.cluster.kubectl("get", "pods,secrets", "-n", hubs.namespace, "-o", "yaml")
        assert parts.password not in everything + said
        log = hubs.cluster.kubectl("logs", f"hitch-{session}", "-n", hubs.namespace)
        assert log.count("refused ") == 2
        assert shown(hub, session)["state"] == "running"


@pytest.mark.timeout(900)
def test_while_postgresql_is_away_pods_go_on_and_hubs_catch_up(hubs: Hubs, postgres: Server) -> None:
    with postgres.fresh() as name:
        hubs.database = postgres.address(name)
        with hubs.one_more() as first, hubs.one_more() as second:
            session = hubs.run(first, f"(n=0; while :; do echo tick $((n+=1)); sleep 0.1; done) & {ECHO}", name="dev")
            eventually(lambda: b"tick 5\r" in output(second, session), what="its output")
            postgres.restart()
            eventually(lambda: not second.ask("GET", "/api/health")["problems"], what="PostgreSQL again")
            second.ask("POST", f"/api/sessions/{session}/prompt", {"text": "restarted"})
            eventually(lambda: b"<restarted>" in output(first, session), what="the answer")
            postgres.stop()
            stopped_s = time.monotonic()
            for hub in (first, second):
                eventually(lambda hub=hub: "PostgreSQL" in str(hub.ask("GET", "/api/health")["problems"]))  # type: ignore[misc]
                before = output(hub, session).count(b"tick")

                def goes_on(hub: HubProcess = hub, before: int = before) -> bool:
                    is_long = time.monotonic() - stopped_s > AWAY_S
                    return output(hub, session).count(b"tick") > before + 20 and is_long

                eventually(goes_on, AWAY_S + 60, "output without PostgreSQL")
                assert shown(hub, session)["state"] == "running"
                with pytest.raises(HubRefused, match="PostgreSQL"):
                    hub.ask("POST", f"/api/sessions/{session}/stop")
            postgres.start()
            for hub in (first, second):
                eventually(lambda hub=hub: not hub.ask("GET", "/api/health")["problems"], what="PostgreSQL")  # type: ignore[misc]
            second.ask("POST", f"/api/sessions/{session}/stop")
            whole = output(second, session)
            with hubs.one_more() as third:

                def knows_all() -> bool:
                    third.ask("GET", f"/api/sessions/{session}/screen")
                    return output(third, session) == whole

                eventually(knows_all, what="everything at a new hub")

                def story() -> list[str]:
                    return [line["to"] for line in third.ask("GET", f"/api/sessions/{session}/story") if "to" in line]

                wanted = ["starting", "running", "stopping", "stopped"]
                eventually(lambda: story() == wanted, what="the whole story")
            ticks = [int(n) for n in re.findall(rb"tick (\d+)\r\n", whole)]
            assert ticks == list(range(1, len(ticks) + 1))
