"""The hub as a whole: adoption, live truth, streams, and what a kill leaves."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from datetime import UTC, datetime

import pytest

from hitchpost.cli.ps import from_hub
from hitchpost.hub.client import HubRefused
from hitchpost.ops.views.observe import observe
from hitchpost.ops.views.session_json import to_json
from hitchpost.settings import Settings
from tests.ground import Ground
from tests.hubs import OUTPUT, SNAPSHOT, HubProcess
from tests.support import eventually

ECHO = 'stty -echo; while read line; do echo "<$line>"; done'


@pytest.mark.ids("F30", "E-11")
def test_a_hub_finds_what_runs_and_what_has_ended(ground: Ground, hub: HubProcess) -> None:
    live, dead = ground.begin_sh(ECHO, name="live"), ground.begin_sh("exit 3", name="dead")
    dead.ended()
    hub.kill()
    assert live.state == "running"
    hub.start()
    rows = {row["name"]: row for row in hub.ask("GET", "/api/sessions")}
    assert rows["live"]["status"] == "running"
    assert rows["dead"]["label"] == "failed: command exited with code 3"
    assert hub.ask("GET", "/api/health")["live"] == 1
    ground.end(live)


def test_what_the_command_line_does_is_known_at_once(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh(ECHO, name="dev")
    eventually(lambda: [row["name"] for row in hub.ask("GET", "/api/sessions")] == ["dev"])
    ground.end(dev)
    eventually(lambda: hub.ask("GET", "/api/sessions/dev")["state"] == "stopped")
    ground.hitch("archive", "dev")
    eventually(lambda: hub.ask("GET", "/api/sessions/dev")["record"] == "archived")
    ground.hitch("rm", "dev")
    eventually(lambda: hub.ask("GET", "/api/sessions?all=true") == [])


@pytest.mark.ids("E-2", "E-3", "E-4", "E-10", "X24")
def test_a_crash_is_told_to_every_client_with_its_signal(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("sleep 1000", name="dev")

    async def scene() -> None:
        async with hub.ws() as first, hub.ws() as second:
            await first.say("session.attach", sessionId=dev.id)
            await first.until("session.attached")
            os.kill(dev.agent_pid(), signal.SIGSEGV)
            for client in (first, second):
                told = await client.until("terminal.exit", dev.id)
                assert (told["exitCode"], told["signal"], told["signalNumber"], told["run"]) == (139, "SIGSEGV", 11, 1)
                status = await client.until("session.status", dev.id, status="error")
                assert status["reason"] == "Process crashed"
                assert status["session"]["label"] == "failed: command killed by SIGSEGV"

    asyncio.run(scene())
    assert "PTY crashed for" in hub.log()


@pytest.mark.ids("E-6", "E-7", "E-10")
def test_resume_starts_the_next_run_and_the_view_goes_on_with_it(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("echo hello; read line; exit 1", name="dev")

    async def scene() -> None:
        async with hub.ws() as client:
            attached = await client.attach(dev.id)
            await client.until_shown(attached["channel"], b"hello")
            await client.say("session.resume", sessionId=dev.id)
            assert (await client.until("error", dev.id))["code"] == "wrong_state"
            await client.say("terminal.input", sessionId=dev.id, data="x\r")
            assert (await client.until("session.status", dev.id, status="error"))["reason"] == "Exit code 1"
            await client.say("session.resume", sessionId=dev.id)
            again = await client.until("session.attached", dev.id)
            assert again["run"] == 2
            await client.until_shown(again["channel"], b"hello")

    asyncio.run(scene())
    ground.end(dev)


@pytest.mark.ids("F73")
def test_a_late_joiner_gets_the_screen_and_then_every_byte(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh(f"echo before; {ECHO}", name="dev")
    eventually(lambda: b"before" in dev.output())

    async def scene() -> None:
        async with hub.ws() as client:
            attached = await client.attach(dev.id, cols=100, rows=30)
            shown = await client.until_shown(attached["channel"], b"before")
            assert client.frames[0].kind == SNAPSHOT
            await client.say("terminal.input", sessionId=dev.id, data="häßlich\r")
            await client.until_shown(attached["channel"], "<häßlich>".encode())
            frames = [frame for frame in client.frames if frame.kind == OUTPUT]
            assert b"".join(frame.data for frame in frames) == dev.output()[frames[0].offset :]
            assert shown
        async with hub.ws() as client:
            attached = await client.attach(dev.id, **{"from": 3})
            await client.until_shown(attached["channel"], "<häßlich>".encode())
            assert (client.frames[0].kind, client.frames[0].offset) == (OUTPUT, 3)
            assert client.shown(attached["channel"]) == dev.output()[3:]

    asyncio.run(scene())
    ground.end(dev)


@pytest.mark.ids("F73", "F30")
def test_a_killed_hub_loses_no_byte(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh(ECHO, name="dev")

    async def first() -> int:
        async with hub.ws() as client:
            attached = await client.attach(dev.id)
            await client.say("terminal.input", sessionId=dev.id, data="one\r")
            await client.until_shown(attached["channel"], b"<one>")
            last = client.frames[-1]
            return last.offset + (len(last.data) if last.kind == OUTPUT else 0)

    async def second(offset: int) -> bytes:
        async with hub.ws() as client:
            attached = await client.attach(dev.id, **{"from": offset})
            await client.say("terminal.input", sessionId=dev.id, data="three\r")
            return await client.until_shown(attached["channel"], b"<three>")

    offset = asyncio.run(first())
    hub.kill()
    ground.hitch("send", "dev", "two")
    hub.start()
    assert asyncio.run(second(offset)) == dev.output()[offset:]
    ground.end(dev)


def test_a_read_only_viewer_types_nothing(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh(ECHO, name="dev")

    async def scene() -> None:
        async with hub.ws() as client, hub.ws("viewer") as viewer:
            for one, fields, words in ((client, {"readOnly": True}, "read-only"), (viewer, {}, "only the owner")):
                await one.attach(dev.id, **fields)
                await one.say("terminal.input", sessionId=dev.id, data="x\r")
                assert words in (await one.until("error", dev.id))["message"]
            await viewer.say("session.resume", sessionId=dev.id)
            assert "only the owner" in (await viewer.until("error"))["message"]

    asyncio.run(scene())
    ground.end(dev)
    assert dev.output() == b""


@pytest.mark.ids("D-1", "D-2", "D-8", "D-11", "X17")
def test_a_session_is_created_prompted_cancelled_and_resumed(ground: Ground, hub: HubProcess) -> None:
    wanted = {"command": ["sh", "-c", ECHO], "folder": str(ground.place), "name": "dev"}
    made = hub.ask("POST", "/api/sessions", wanted)["session"]
    assert (made["record"], made["state"], made["name"]) == ("active", "running", "dev")
    with pytest.raises(HubRefused, match="already named"):
        hub.ask("POST", "/api/sessions", wanted)
    receipt = hub.ask("POST", "/api/sessions/dev/prompt", {"text": "hello"})
    assert (receipt["delivered"], receipt["started"]) == (True, False)
    eventually(lambda: "<hello>" in hub.ask("GET", "/api/sessions/dev/screen")["text"])
    assert hub.ask("POST", "/api/sessions/dev/stop")["state"] == "stopped"
    with pytest.raises(HubRefused, match="not running"):
        hub.ask("POST", "/api/sessions/dev/prompt", {"text": "hello"})
    answer = hub.ask("POST", "/api/sessions/dev/resume")
    assert (answer["status"], answer["session"]["run"], answer["session"]["state"]) == ("active", 2, "running")
    with pytest.raises(HubRefused, match="nothing to resume"):
        hub.ask("POST", "/api/sessions/dev/resume")
    answer = hub.ask("POST", "/api/sessions/dev/cancel")
    assert (answer["sessionId"], answer["status"], answer["cancelled"]) == (made["id"], "archived", True)
    assert answer["session"]["state"] == "stopped"
    with pytest.raises(HubRefused, match="archived"):
        hub.ask("POST", "/api/sessions/dev/resume")
    assert hub.ask("DELETE", f"/api/sessions/{made['id']}") is None


@pytest.mark.ids("F32")
def test_a_second_hub_refuses(ground: Ground, hub: HubProcess) -> None:
    answer = ground.hitch("up", "--foreground", "--port", "0", check=4)
    assert "another hub serves this home" in answer.err
    assert hub.ask("GET", "/api/health")["ok"] is True


@pytest.mark.ids("A31-7", "A22-10")
def test_a_session_that_prints_twice_a_second_works_in_every_look(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("while echo tick; do sleep 0.5; done", name="dev", settings=Settings(quiet_s=5))
    eventually(lambda: [row["name"] for row in hub.ask("GET", "/api/sessions")] == ["dev"])
    begun = time.monotonic()

    def looks() -> list[str]:
        rows = json.loads(from_hub(hub.home, "/api/sessions?all=False") or b"[]")
        alone = to_json(observe(hub.home, dev.id), datetime.now(UTC))
        found = [row["attention"] for row in rows]
        found += [hub.ask("GET", f"/api/sessions/{dev.id}")["attention"], alone["attention"]]
        found += [row["attention"] for row in hub.ask("GET", "/api/status")["sessions"]]
        return [*found, hub.ask("GET", f"/api/sessions/{dev.id}/explain")["session"]["attention"]]

    told: list[list[str]] = []
    while len(told) < 40 or time.monotonic() < begun + 11:
        told.append(looks())
        time.sleep(0.1)
    assert {word for words in told for word in words} == {"working"}
    ground.end(dev)


@pytest.mark.ids("A31-14")
def test_the_words_of_a_silent_session_go_on_beside_a_hub(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("echo once; sleep 1000", name="dev")
    path = f"/api/sessions/{dev.id}"
    eventually(lambda: hub.ask("GET", path)["attention"] == "idle", what="the session to be idle for its own route")
    assert ground.ps(dev)["attention"] == "idle"
    ground.end(dev)


def test_a_picture_comes_without_what_has_scrolled_off_the_screen_and_takes_no_input(
    ground: Ground, hub: HubProcess
) -> None:
    dev = ground.begin_sh("seq -f 'line %g.' 200; exec cat", name="dev")
    eventually(lambda: b"line 200." in dev.output())

    async def scene() -> None:
        async with hub.ws() as client:
            whole = await client.attach(dev.id, readOnly=True)
            assert b"line 1." in await client.until_shown(whole["channel"], b"line 200.")
            screen = await client.attach(dev.id, picture=True)
            shown = await client.until_shown(screen["channel"], b"line 200.")
            assert b"line 190." in shown
            assert b"line 1." not in shown
            await client.say("terminal.input", sessionId=dev.id, data="typed\r")
            assert "read-only" in (await client.until("error"))["message"]

    asyncio.run(scene())
    ground.end(dev)
