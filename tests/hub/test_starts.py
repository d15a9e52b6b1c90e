"""What the hub tells of starts: active is what runs, and a start that fails was never active."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hitchpost.hub.client import HubRefused
from tests.cli.own_agents import describe
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.support import eventually


def tool(ground: Ground, script: str) -> Path:
    """A program that can be taken away and changed between two runs."""
    path = ground.place / "tool"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def refused(hub: HubProcess, path: str, body: object = None) -> tuple[int, str]:
    with pytest.raises(HubRefused) as raised:
        hub.ask("POST", path, body)
    return raised.value.status, str(raised.value)


def known(hub: HubProcess, session: Truth, **words: str) -> None:
    """Wait until the hub says that of the session."""

    def rows() -> list[dict[str, Any]]:
        return [row for row in hub.ask("GET", "/api/sessions?all=true") if row["id"] == session.id]

    eventually(lambda: any(words.items() <= row.items() for row in rows()), what=f"the hub to see {words}")


def told_while(hub: HubProcess, session: Truth, *deeds: Any) -> list[tuple[str, Any, str]]:
    """(type, status, state) of what every client is told of the session while something is done to it."""

    async def scene() -> list[dict[str, Any]]:
        async with hub.ws() as client:
            for deed in deeds:
                await asyncio.to_thread(deed)
            hub.ask("PATCH", f"/api/sessions/{session.id}", {"description": "the end of the scene"})
            while not any(event.get("session", {}).get("description") for event in client.events):
                await client.read()
            return client.events

    return [
        (event["type"], event.get("status"), event.get("session", {}).get("state")) for event in asyncio.run(scene())
    ]


@pytest.mark.ids("C7")
def test_a_start_that_fails_is_told_as_that_and_never_as_active_or_a_crash(ground: Ground, hub: HubProcess) -> None:
    program = tool(ground, "exit 0")
    dev = ground.begin(str(program), name="dev")
    dev.ended()
    known(hub, dev, state="completed")
    program.unlink()
    told = told_while(hub, dev, lambda: refused(hub, "/api/sessions/dev/resume"))
    assert [event for event in told if event[0] == "session.status"] == [("session.status", "error", "failed")]
    assert "terminal.exit" not in [kind for kind, _, _ in told]
    assert "PTY crashed" not in hub.log()


@pytest.mark.ids("C7")
def test_the_reason_of_a_start_that_failed_is_told(ground: Ground, hub: HubProcess) -> None:
    program = tool(ground, "exit 0")
    dev = ground.begin(str(program), name="dev")
    dev.ended()
    known(hub, dev, state="completed")
    program.unlink()

    async def scene() -> None:
        async with hub.ws() as client:
            await client.say("session.resume", sessionId=dev.id)
            told = await client.until("session.status", dev.id)
            assert (told["status"], told["reason"]) == ("error", f"Failed to start: program not found: {program}")
            assert (told["session"]["run"], told["session"]["state"]) == (2, "failed")

    asyncio.run(scene())


@pytest.mark.ids("C7")
def test_a_run_is_active_once_it_runs(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin(str(tool(ground, "test -e again && exec sleep 1000")), name="dev")
    dev.ended()
    known(hub, dev, state="failed")
    (ground.place / "again").touch()
    told = told_while(hub, dev, lambda: hub.ask("POST", "/api/sessions/dev/resume"))
    assert [event for event in told if event[0] == "session.status"] == [("session.status", "active", "running")]
    ground.end(dev)


@pytest.mark.ids("C7")
def test_a_suspended_record_stays_so_when_its_next_run_does_not_start(ground: Ground, hub: HubProcess) -> None:
    hub.stop()
    ground.configure('on_shutdown = "suspend"\n')
    hub.start()
    program = tool(ground, "exec sleep 1000")
    dev = ground.begin(str(program), name="dev")
    known(hub, dev, state="running")
    hub.stop()
    hub.start()
    known(hub, dev, record="suspended")
    program.unlink()
    why = f"dev failed to start: program not found: {program}"
    assert refused(hub, "/api/sessions/dev/resume") == (422, why)
    records = [line["to"] for line in dev.story() if line["event"] == "record"]
    assert records == ["suspended"]
    assert hub.ask("GET", "/api/sessions/dev")["status"] == "suspended"
    tool(ground, "exec sleep 1000")
    assert hub.ask("POST", "/api/sessions/dev/resume")["status"] == "active"
    assert hub.ask("GET", "/api/sessions/dev")["status"] == "running"
    ground.end(dev)


@pytest.mark.ids("C70-9")
def test_an_agent_that_ends_at_once_with_an_error_is_answered_with_the_failure(ground: Ground, hub: HubProcess) -> None:
    program = tool(ground, "exit 3")
    dev = ground.begin(str(program), name="dev")
    dev.ended()
    known(hub, dev, state="failed")
    why = "dev ended at once: command exited with code 3; hitch logs dev shows what it printed"
    for path in ("sessions/dev/resume", "sessions/dev/restart", "agents/dev/start"):
        assert refused(hub, f"/api/{path}") == (422, why)
    wish = {"command": [str(program)], "folder": str(ground.place), "name": "new"}
    assert refused(hub, "/api/sessions", wish) == (422, why.replace("dev", "new"))


def lines_of(hub: HubProcess, wish: Mapping[str, object], between: Callable[[], object] = lambda: None) -> list[Any]:
    """The answer to a new session, line by line; what is done ``between`` comes after the first."""
    found = []
    with (
        hub.http(Accept="application/x-ndjson") as client,
        client.stream("POST", "/api/sessions", json=wish, timeout=60) as answer,
    ):
        for line in answer.iter_lines():
            found.append(json.loads(line))
            if len(found) == 1:
                between()
    return found


def test_a_new_session_is_told_when_its_run_has_begun_and_when_its_agent_is_ready(
    ground: Ground, hub: HubProcess
) -> None:
    script = "until [ -e go-on ]; do sleep 0.1; done; echo ready; exec sleep 1000"
    describe("slow", f'title = "Slow"\nargv = ["{tool(ground, script)}"]\nready_after_s = 600\n')
    wish = {"agent": "slow", "folder": str(ground.place), "name": "dev"}
    begun, ready = lines_of(hub, wish, (ground.place / "go-on").touch)
    assert begun["session"]["id"] == ready["session"]["id"]
    assert (begun["session"]["state"], begun["session"]["last_activity_at"]) == ("running", None)
    assert ready["session"]["last_activity_at"] is not None
    hub.ask("POST", "/api/sessions/dev/stop")


def test_what_an_agent_that_was_not_ready_came_to_is_the_last_line(ground: Ground, hub: HubProcess) -> None:
    script = "until [ -e go-on ]; do sleep 0.1; done; exit 3"
    describe("slow", f'title = "Slow"\nargv = ["{tool(ground, script)}"]\nready_after_s = 600\n')
    wish = {"agent": "slow", "folder": str(ground.place), "name": "dev"}
    begun, ended = lines_of(hub, wish, (ground.place / "go-on").touch)
    assert begun["session"]["name"] == "dev"
    assert "exited with code 3" in ended["error"]["message"]


def test_a_session_that_cannot_begin_is_an_error_as_any_other(ground: Ground, hub: HubProcess) -> None:
    (answer,) = lines_of(hub, {"command": ["no-such-program"], "folder": str(ground.place), "name": "dev"})
    assert "program not found" in answer["error"]["message"]
