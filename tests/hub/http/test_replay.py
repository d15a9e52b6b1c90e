"""What a player asks the hub for."""

from __future__ import annotations

import json
from base64 import b64decode
from datetime import datetime
from typing import Any

from tests.ground import Ground
from tests.hubs import HubProcess
from tests.support import eventually

SCRIPT = """trap 'printf "\\033[2J\\033[H"; echo the end; exit 0' TERM
echo before; while :; do read x; done"""
WRONG = {
    "?run=2": 404,
    "?run=0": 422,
    "/part?at=-1": 422,
    "/part?at=nan": 422,
    "/part?at=inf": 422,
    "/part?from=x": 422,
}


def shown(part: dict[str, Any]) -> bytes:
    return b64decode(part["screen"]["data"])


def test_a_moment_is_answered_with_its_screen_and_what_followed(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh(SCRIPT, name="dev")
    eventually(lambda: b"before" in dev.output())
    ground.end(dev)
    eventually(lambda: hub.ask("GET", f"/api/sessions/{dev.id}")["state"] == "stopped")
    outline = hub.ask("GET", f"/api/sessions/{dev.id}/replay")
    began = datetime.fromisoformat(outline["began_at"])
    stopping = next(line for line in dev.story() if line.get("to") == "stopping")
    at_s = (datetime.fromisoformat(stopping["at"]) - began).total_seconds()
    part = hub.ask("GET", f"/api/sessions/{dev.id}/replay/part?run=1&at={at_s}")
    assert (part["screen"]["cols"], part["screen"]["rows"], part["next"]) == (80, 24, None)
    assert b"before" in shown(part)
    assert b"the end" not in shown(part)
    rest = b"".join(b64decode(event["data"]) for event in part["events"] if event["data"])
    assert dev.output() == dev.output()[: part["offset"]] + rest
    assert b"the end" in rest
    last = hub.ask("GET", f"/api/sessions/{dev.id}/replay/part?at={outline['length_s']}")
    assert b"the end" in shown(last)
    assert b"before" not in shown(last)
    again = hub.ask("GET", f"/api/sessions/{dev.id}/replay/part?from={part['offset']}&at=5")
    assert again == {**part, "screen": None}


def test_what_cannot_be_replayed_is_refused(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("exit 0", name="dev")
    dev.ended()
    eventually(lambda: [row["state"] for row in hub.ask("GET", "/api/sessions")] == ["completed"])
    with hub.http("viewer") as viewer:
        asked = {path: viewer.get(f"/api/sessions/dev/replay{path}") for path in WRONG}
        assert viewer.get("/api/sessions/dev/replay/part").status_code == 200
    assert {path: answer.status_code for path, answer in asked.items()} == WRONG
    assert json.loads(asked["?run=2"].text)["error"]["code"] == "not_found"
