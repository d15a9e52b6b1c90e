"""The hub says what is true at the moment of the question, and tells of what nobody told it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import ExitStack
from functools import partial

import pytest

from hitchpost.hub import client as hub_client
from hitchpost.store.locks import SessionLock
from tests.ground import Ground, alive
from tests.hubs import HubProcess
from tests.support import Process, eventually, halt

STOPPED = "running (process stopped)"


def is_one_of(pid: int, states: str) -> bool:
    process = Process.read(pid)
    return process is not None and process.state in states


def label(hub: HubProcess) -> str:
    return hub.ask("GET", "/api/sessions")[0]["label"]


def test_a_lost_keeper_is_known_at_once_while_somebody_else_has_the_session(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("sleep 1000", name="dev")
    assert label(hub) == "running"
    with SessionLock(str(dev.folder)):
        dev.kill_keeper()
        told = [label(hub), hub.ask("GET", "/api/sessions/dev")["label"], hub.ask("GET", "/api/agents/dev")["state"]]
        assert told == ["failed: keeper lost", "failed: keeper lost", "error"]
        assert dev.state == "running"
    eventually(lambda: dev.state == "failed", what="that somebody writes it down")


def test_what_the_command_has_done_is_known_when_it_has_ended(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("sleep 1000", name="dev")
    assert hub.ask("GET", "/api/sessions/dev")["record"] == "active"
    for _ in range(5):
        ground.end(dev, grace_s=0)
        assert hub.ask("GET", "/api/sessions/dev")["state"] == "stopped"
        ground.hitch.here("restart", "dev")
        assert hub.ask("GET", "/api/sessions/dev")["state"] == "running"
    ground.end(dev, grace_s=0)
    ground.hitch.here("archive", "dev")
    assert hub.ask("GET", "/api/sessions/dev")["record"] == "archived"
    ground.hitch.here("rm", dev.id)
    assert hub.ask("GET", "/api/sessions?all=true") == []


def test_a_process_that_a_signal_stopped_is_known_and_told(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("sleep 1000", name="dev")

    async def listen() -> None:
        async with hub.ws() as socket:
            halt(dev.agent_pid())
            told = await socket.until("session.updated", dev.id)
            assert told["session"]["label"] == STOPPED

    assert label(hub) == "running"
    asyncio.run(listen())
    for number, states, words in ((signal.SIGCONT, "SR", "running"), (signal.SIGSTOP, "T", STOPPED)):
        os.kill(dev.agent_pid(), number)
        eventually(partial(is_one_of, dev.agent_pid(), states))
        assert label(hub) == words
    ground.end(dev, grace_s=0)
    assert not alive(dev.agent_pid())


def test_what_is_listed_is_not_said_to_be_missing(ground: Ground, hub: HubProcess) -> None:
    newer = ground.begin_sh("exit 0", name="newer")
    newer.ended()
    path = newer.folder / "state.json"
    path.with_name("new").write_text(json.dumps({**newer.state_file(), "schema": 99}))
    path.with_name("new").rename(path)
    assert label(hub) == "unknown (written by a newer hitchpost)"
    for route in ("", "/runs", "/explain", "/screen"):
        with pytest.raises(hub_client.HubRefused, match="was written by a newer hitchpost") as refused:
            hub.ask("GET", f"/api/sessions/newer{route}")
        assert refused.value.status == 409


@pytest.mark.ids("F73")
def test_five_hundred_who_come_while_the_hub_is_busy_all_get_an_answer(hub: HubProcess) -> None:
    assert hub.process is not None
    with ExitStack() as stack:
        hub.process.send_signal(signal.SIGSTOP)
        try:
            opened = [stack.enter_context(hub_client.connect(hub.home, 60)) for _ in range(500)]
        finally:
            hub.process.send_signal(signal.SIGCONT)
        for sock in opened:
            sock.sendall(b"GET /api/health HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n")
        assert {sock.recv(12) for sock in opened} == {b"HTTP/1.1 200"}
