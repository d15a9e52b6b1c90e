"""Every route of the hub, for a session in every state: whatever is asked, the answer is never a mistake of ours."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.fuzz.states import ENDED, LIVING, STOPPING, States
from tests.hubs import HubProcess

LONG = "LONG" in os.environ
"""Set by ``script/faults --long``."""
BODIES: dict[str, tuple[Any, ...]] = {
    "prompt": ({"text": "hello"}, {"text": "a\x01"}, {"text": ""}, {"text": "\udcff"}, {"text": 5}, {}, [], None),
    "stop": (None, {"reason": "x"}, {"reason": 5}),
    "": ({"name": "other"}, {"name": ""}, {"name": "a\nb"}, {"description": "x" * 5000}, {"name": "7"}, {}, [], None),
}
QUERIES = ("", "?run=1", "?run=0", "?run=-1", "?run=99999999999999999999", "?run=x", "?at=nan", "?at=-1", "?start=1e9")
NOBODY = ("nobody", "0", "-1", "..", "%00", "%ff", "日本", "x" * 300, " ", "a/b")
MESSAGES = ("session.attach", "session.detach", "terminal.input", "terminal.resize", "session.resume")
FIELDS: tuple[dict[str, Any], ...] = ({}, {"cols": 80, "rows": 24, "data": "x"}, {"cols": -1, "rows": "x", "data": 5})


class Asked:
    """Asks the hub over TCP, as a script with a token would, and remembers what must not be."""

    def __init__(self, hub: HubProcess) -> None:
        self.hub, self.count = hub, 0
        self.wrong: list[str] = []
        self.http = hub.http()
        found = hub.ask("GET", "/api/openapi.json")["paths"]
        self.routes = [(path, method.upper()) for path, methods in found.items() for method in methods]

    def ask(self, what: str, method: str, path: str, body: Any = None) -> int:
        more = {} if body is None else {"content": _json(body), "headers": {"Content-Type": "application/json"}}
        answer = self.http.request(method, path, **more)  # type: ignore[arg-type]
        self.count += 1
        if answer.status_code == 500 or (answer.status_code > 500 and "busy" not in answer.text):
            self.wrong.append(f"{answer.status_code} for {method} {path} {body!r}, {what}: {answer.text[:300]}")
        return answer.status_code

    def of_sessions(self, *methods: str) -> Iterator[tuple[str, str]]:
        for path, method in self.routes:
            if method in methods and ("{session}" in path or "{agent}" in path):
                yield path, method

    def check(self) -> None:
        self.http.close()
        assert not self.wrong, f"{len(self.wrong)} mistakes:\n" + "\n".join(self.wrong[:20])
        assert "Traceback" not in self.hub.log(), self.hub.log()[-4000:]


def _json(body: Any) -> bytes:
    import json

    return json.dumps(body).encode()


def filled(path: str, session: str) -> str:
    return path.replace("{session}", session).replace("{agent}", session)


def bodies(path: str) -> tuple[Any, ...]:
    last = path.rpartition("/")[2]
    return BODIES.get("" if last.startswith("{") else last, (None,))


@pytest.fixture
def asked(hub: HubProcess) -> Iterator[Asked]:
    asked = Asked(hub)
    yield asked
    asked.check()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_reading_a_session_in_every_state(states: States, asked: Asked) -> None:
    known = {**states.copies(), **{state: states.live(state).id for state in LIVING}}
    for state, session in known.items():
        for number, (path, method) in enumerate(asked.of_sessions("GET")):
            for query in QUERIES if LONG else ("", QUERIES[number % len(QUERIES)]):
                asked.ask(state, method, filled(path, session) + query)
    for path, method in asked.routes:
        if method == "GET" and "{" not in path:
            asked.ask("all of them", method, path + "?all=true")
    assert asked.count > 200


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_changing_a_session_in_every_state_twice(states: States, asked: Asked) -> None:
    changes = list(asked.of_sessions("POST", "PATCH", "DELETE"))
    for number, (path, method) in enumerate(changes, 1):
        for state, session in states.copies(number, 1 if LONG else 4).items():
            for body in (*bodies(path), bodies(path)[0]) if LONG else (bodies(path)[0], bodies(path)[-1]):
                asked.ask(state, method, filled(path, session), body)
        for session in os.listdir(states.ground.home / "sessions"):
            asked.ask("removed", "DELETE", f"/api/sessions/{quote(session)}?force=true")
    for state in LIVING if LONG else [state for state in LIVING if state != STOPPING]:
        for number, (path, method) in enumerate(changes, 1):
            if LONG or number % len(LIVING) == LIVING.index(state):
                session = states.live(state, f"{state}{number}").id
                for _ in range(2):
                    asked.ask(state, method, filled(path, session), bodies(path)[0])
                asked.ask("removed", "DELETE", f"/api/sessions/{session}?force=true")


@pytest.mark.timeout(600)
def test_sessions_that_are_not_there(asked: Asked) -> None:
    for path, method in asked.of_sessions("GET", "POST", "PATCH", "DELETE"):
        for name in NOBODY:
            asked.ask("not there", method, filled(path, quote(name, safe="%/")), bodies(path)[0])


@pytest.mark.long
@pytest.mark.timeout(600)
def test_every_message_about_a_session_in_every_state(states: States, hub: HubProcess, asked: Asked) -> None:
    known = {**states.copies(), "nobody": "nobody", "running": states.live("running").id}

    async def talk() -> None:
        async with hub.ws() as socket:
            for session in known.values():
                for kind in MESSAGES:
                    for fields in FIELDS:
                        await socket.say(kind, sessionId=session, **fields)
            for odd in ("", "{", "[]", "null", '{"type": 5}', '{"type": "nothing"}', '{"type": "session.attach"}'):
                await socket.connection.send(odd)
            await socket.say("session.attach", sessionId="nobody at all", cols=80, rows=24)
            while True:
                event = await socket.read()
                if isinstance(event, dict) and event.get("sessionId") == "nobody at all":
                    assert event["type"] == "error"
                    return

    asyncio.run(talk())


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_two_requests_at_a_time_about_the_same_session(states: States, asked: Asked) -> None:
    from concurrent.futures import ThreadPoolExecutor

    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    changes = list(asked.of_sessions("POST", "PATCH", "DELETE"))
    pairs = [(one, other) for one in changes for other in changes]
    with ThreadPoolExecutor(2) as two:
        for number, pair in enumerate(pairs if LONG else chance.sample(pairs, 8)):
            state = chance.choice((*ENDED, "running"))
            session = states.live("running", f"r{number}").id if state == "running" else states.copy(state, number + 1)

            def change(route: tuple[str, str], state: str = state, session: str = session) -> int:
                path, method = route
                return asked.ask(f"{state}, two at a time, seed {seed}", method, filled(path, session), bodies(path)[0])

            list(two.map(change, pair))
            asked.ask("removed", "DELETE", f"/api/sessions/{session}?force=true")
