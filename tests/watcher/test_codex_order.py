"""What Codex's app-server says, in the orders that a busy machine makes of it: no older word counts after a newer."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, unix_serve

from hitchpost.watcher import codex
from tests.ground import Ground
from tests.watcher.linked import SOON_S, Watched, run_folder, watched

PAUSE_S = codex.AGAIN_S
IDLE, ACTIVE = {"type": "idle"}, {"type": "active", "activeFlags": []}
T = "0199a213-81c0-7800-8aa1-bbab2a035a53"


class Server:
    """An app-server. It answers what the test has an answer for, and keeps the rest until the test answers it."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.connections: list[ServerConnection] = []
        self.refuses = 0
        """So many connections it closes at once."""
        self.hangs_up_after = ""
        """The request after which it closes a connection, once."""
        self.always_hangs_up = False
        self._kept: list[tuple[ServerConnection, dict[str, Any]]] = []
        self._came, self._connected = asyncio.Event(), asyncio.Event()

    async def serve(self, connection: ServerConnection) -> None:
        if self.refuses:
            self.refuses -= 1
            await connection.close()
            return
        self.connections.append(connection)
        self._connected.set()
        async for message in connection:
            asked = json.loads(message)
            if "id" not in asked or "method" not in asked:
                continue
            if asked["method"] == self.hangs_up_after:
                self.hangs_up_after = self.hangs_up_after if self.always_hangs_up else ""
                await connection.close()
                return
            answer = self.answers.get(asked["method"], None)
            if answer is None:
                self._kept.append((connection, asked))
                self._came.set()
            else:
                result = answer if answer is REFUSED else {"result": answer}
                await connection.send(json.dumps({"id": asked["id"], **result}))

    async def asked(self, method: str, within_s: float = SOON_S) -> dict[str, Any]:
        """The frame that answers the oldest kept request of a kind, but for its result."""
        async with asyncio.timeout(within_s):
            while True:
                for at, (_, asked) in enumerate(self._kept):
                    if asked["method"] == method:
                        del self._kept[at]
                        return {"id": asked["id"]}
                self._came.clear()
                await self._came.wait()

    async def connected(self, times: int) -> None:
        async with asyncio.timeout(SOON_S):
            while len(self.connections) < times:
                self._connected.clear()
                await self._connected.wait()

    async def says(self, *frames: dict[str, Any]) -> None:
        """All of it arrives at once."""
        for frame in frames:
            await self.connections[-1].send(json.dumps(frame))


class Codex:
    """The watcher and the server, as a test sees them."""

    def __init__(self, watched: Watched, server: Server) -> None:
        self.server, self.send, self.answer = server, watched.send, watched.answer
        self.becomes, self.stays, self.keeper = watched.keeper.becomes, watched.keeper.stays, watched.keeper


def told(method: str, **params: Any) -> dict[str, Any]:
    return {"method": method, "params": {"threadId": T, **params}}


def status(found: dict[str, Any]) -> dict[str, Any]:
    return told("thread/status/changed", status=found)


def turn(number: str, state: str, text: str = "") -> dict[str, Any]:
    items = [{"type": "agentMessage", "text": text}] if text else []
    ended = {"completedAt": int(time.time()) + 1} if state != "inProgress" else {"completedAt": None}
    return {"id": number, "status": state, "items": items, **ended}


def started(number: str) -> dict[str, Any]:
    return told("turn/started", turn=turn(number, "inProgress"))


def completed(number: str, text: str) -> dict[str, Any]:
    return told("turn/completed", turn=turn(number, "completed", text))


def thread(found: dict[str, Any], preview: str = "") -> dict[str, Any]:
    return {"thread": {"id": T, "preview": preview, "createdAt": 1, "status": found}}


FRESH = {
    "initialize": {},
    "thread/loaded/list": {"data": [T]},
    "thread/read": thread(IDLE),
    "thread/resume": {"model": "m", **thread(IDLE)},
    "thread/turns/list": {"data": []},
    "thread/backgroundTerminals/list": {"data": []},
}
"""A conversation without a turn."""
REFUSED = {"error": {"code": -32600, "message": "not now"}}


@pytest.fixture
def watch(ground: Ground) -> Callable[[dict[str, Any], Callable[[Codex], Awaitable[None]]], None]:
    """Run a test beside a watcher of Codex, whose app-server answers so."""
    folder = run_folder(ground, "codex")

    def run(answers: dict[str, Any], test: Callable[[Codex], Awaitable[None]]) -> None:
        async def main() -> None:
            server = Server(answers)
            path = str(folder / "codex.sock")
            async with unix_serve(server.serve, path, compression=None), watched("codex", folder) as beside:
                beside.keeper.says({"event": "osc7501", "seq": 1, "report": {"state": "idle"}})
                await test(Codex(beside, server))

        asyncio.run(main())

    return run


def test_a_turn_that_its_server_is_slow_to_begin_is_not_told_as_over(watch: Any) -> None:
    async def test(codex: Codex) -> None:
        await codex.becomes("idle")
        sent = codex.send("one")
        await codex.server.says({**await codex.server.asked("turn/start"), "result": {"turn": turn("1", "inProgress")}})
        assert (await sent)["proof"] == "turn/start: 1"
        await codex.stays("working", 5)
        await codex.server.says(status(ACTIVE), started("1"), status(IDLE), completed("1", "well"))
        assert (await codex.becomes("done"))["message"] == "well"
        assert codex.keeper.states == ["idle", "working", "done"]

    watch(dict(FRESH), test)


def test_how_an_older_turn_ended_is_not_told_of_the_one_that_has_just_begun(watch: Any) -> None:
    """It is asked for when the watcher comes back: the answer may come beside that to a prompt."""
    answers = {name: answer for name, answer in FRESH.items() if name != "thread/read"}

    async def test(codex: Codex) -> None:
        server = codex.server
        await server.says({**await server.asked("thread/read"), "result": thread(IDLE)})
        await codex.becomes("idle")
        await server.says(status(ACTIVE), started("0"), status(IDLE), completed("0", "well"))
        await codex.becomes("done")
        server.answers["thread/turns/list"] = {"data": [turn("0", "completed", "well")]}
        await server.connections[0].close()
        await server.says({**await server.asked("thread/read"), "result": thread(IDLE, "zero")})
        asked = await server.asked("thread/read")
        sent = codex.send("one")
        prompt = await server.asked("turn/start")
        await server.says(
            {**asked, "result": thread(IDLE, "zero")}, {**prompt, "result": {"turn": turn("1", "inProgress")}}
        )
        assert (await sent)["ok"]
        await codex.stays("working", 0.5)
        await server.says(status(ACTIVE), started("1"), status(IDLE), completed("1", "well"))
        assert (await codex.becomes("done"))["message"] == "well"

    watch(answers, test)


def test_what_was_read_of_a_conversation_is_older_than_what_is_told_of_it_meanwhile(watch: Any) -> None:
    answers = {name: answer for name, answer in FRESH.items() if name != "thread/read"}

    async def test(codex: Codex) -> None:
        server = codex.server
        asked = await server.asked("thread/read")
        await server.says(status(ACTIVE), {**asked, "result": thread(IDLE)})
        await server.says({**await server.asked("thread/read"), "result": thread(ACTIVE)})
        await codex.becomes("working")
        assert codex.keeper.states == ["working"]

    watch(answers, test)


def test_a_turn_that_is_over_before_its_conversation_was_read_is_told_as_over(watch: Any) -> None:
    answers = {name: answer for name, answer in FRESH.items() if name != "thread/read"}
    answers["thread/turns/list"] = {"data": [turn("1", "completed", "well")]}

    async def test(codex: Codex) -> None:
        server = codex.server
        asked = await server.asked("thread/read")
        await server.says(status(ACTIVE), status(IDLE), {**asked, "result": thread(IDLE)})
        server.answers["thread/read"] = thread(IDLE, "one")
        for _ in range(2):
            with suppress(TimeoutError):
                await server.says({**await server.asked("thread/read", 2), "result": thread(IDLE, "one")})
        assert (await codex.becomes("done"))["message"] == "well"
        assert codex.keeper.states == ["done"]

    watch(answers, test)


def test_a_turn_whose_end_is_not_listed_yet_is_not_told_as_interrupted(watch: Any) -> None:
    answers = {**FRESH, "turn/start": {"turn": turn("1", "inProgress")}}
    answers["thread/turns/list"] = {"data": [turn("1", "inProgress")]}

    async def test(codex: Codex) -> None:
        await codex.becomes("idle")
        assert (await codex.send("one"))["ok"]
        await codex.server.says(status(ACTIVE), started("1"), status(IDLE))
        await codex.stays("working", 5)
        codex.server.answers["thread/turns/list"] = {"data": [turn("1", "completed", "well")]}
        assert (await codex.becomes("done"))["message"] == "well"
        assert codex.keeper.states == ["idle", "working", "done"]
        await codex.server.says(completed("1", "well"))  # late, and no news

    watch(answers, test)


def test_a_turn_whose_outcome_is_never_told_is_over_all_the_same(watch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex, "LISTED_S", 0.5)
    answers = {**FRESH, "turn/start": {"turn": turn("1", "inProgress")}, "thread/turns/list": REFUSED}

    async def test(codex: Codex) -> None:
        await codex.becomes("idle")
        assert (await codex.send("one"))["ok"]
        await codex.server.says(status(ACTIVE), started("1"), status(IDLE))
        await codex.becomes("idle")
        assert codex.keeper.states == ["idle", "working", "idle"]

    watch(answers, test)


def test_a_prompt_that_comes_while_an_outcome_is_asked_for_the_last_time_is_at_work(
    watch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codex, "OUTCOME_S", 0.1)
    monkeypatch.setattr(codex, "LISTED_S", 2.0)
    answers = {**FRESH, "turn/start": {"turn": turn("1", "inProgress")}}
    del answers["thread/turns/list"]

    async def test(codex: Codex) -> None:
        server = codex.server
        await codex.becomes("idle")
        assert (await codex.send("one"))["ok"]
        await server.says(status(ACTIVE), started("1"), status(IDLE))
        asked = await server.asked("thread/turns/list")
        await codex.stays("working", 2.2)
        await server.says({**asked, **REFUSED})
        last = await server.asked("thread/turns/list")
        server.answers["turn/start"] = {"turn": turn("2", "inProgress")}
        assert (await codex.send("two"))["ok"]
        await server.says({**last, **REFUSED})
        await codex.stays("working", 0.5)
        await server.says(status(ACTIVE), started("2"), status(IDLE), completed("2", "well"))
        await codex.becomes("done")
        assert codex.keeper.states == ["idle", "working", "done"]

    watch(answers, test)


def test_how_one_turn_ended_is_not_told_of_the_next(watch: Any) -> None:
    answers = {**FRESH, "turn/start": {"turn": turn("1", "inProgress")}}

    async def test(codex: Codex) -> None:
        server = codex.server
        await codex.becomes("idle")
        assert (await codex.send("one"))["ok"]
        await server.says(status(ACTIVE), started("1"), status(IDLE), completed("1", "well"))
        await codex.becomes("done")
        server.answers["turn/start"] = {"turn": turn("2", "inProgress")}
        server.answers["thread/turns/list"] = {"data": [turn("1", "completed", "well")]}
        assert (await codex.send("two"))["ok"]
        await server.says(completed("1", "well"), status(ACTIVE), started("2"), status(IDLE))
        await codex.stays("working", 3)
        await server.says(completed("2", "better"))
        assert (await codex.becomes("done"))["message"] == "better"

    watch(answers, test)


def test_a_connection_that_breaks_in_a_turn_leaves_what_is_known(watch: Any) -> None:

    async def test(codex: Codex) -> None:
        server = codex.server
        await codex.becomes("idle")
        await server.says(status(ACTIVE), started("1"))
        await codex.becomes("working")
        server.answers["thread/read"] = thread(ACTIVE, "one")
        server.answers["thread/resume"] = {"model": "m", **thread(ACTIVE, "one")}
        await server.connections[0].close()
        await codex.stays("working", 2)
        assert len(server.connections) == 2
        await server.says(status(IDLE), completed("1", "well"))
        assert (await codex.becomes("done"))["message"] == "well"
        assert codex.keeper.states == ["idle", "working", "done"]

    watch(dict(FRESH), test)


def test_a_server_that_knows_no_conversation_any_more_says_nothing_of_it(watch: Any) -> None:
    async def test(codex: Codex) -> None:
        server = codex.server
        await codex.becomes("idle")
        await server.says(status(ACTIVE), started("1"))
        await codex.becomes("working")
        server.answers["thread/loaded/list"] = {"data": []}
        await server.connections[0].close()
        await codex.becomes("")
        assert codex.keeper.states == ["idle", "working", ""]

    watch(dict(FRESH), test)


@pytest.mark.parametrize("how", ["at once", "after a request"])
def test_a_server_that_is_not_reached_the_first_time_is_tried_again(watch: Any, how: str) -> None:
    """Alone, Codex would be heard by its own reports, and some versions of it have no word for the end of a turn."""

    async def test(codex: Codex) -> None:
        await codex.becomes("idle")
        assert codex.keeper.report["source"] == "app-server"

    answers = dict(FRESH)

    async def prepared(codex: Codex) -> None:
        codex.server.refuses = 2 if how == "at once" else 0
        codex.server.hangs_up_after = "thread/loaded/list" if how != "at once" else ""
        await test(codex)

    watch(answers, prepared)


def test_a_server_that_hangs_up_again_and_again_is_asked_with_pauses(watch: Any) -> None:
    answers = {**FRESH, "thread/read": thread(IDLE, "one"), "thread/resume": {"model": "m", **thread(IDLE, "one")}}

    async def test(codex: Codex) -> None:
        server, began = codex.server, time.monotonic()
        server.hangs_up_after, server.always_hangs_up = "thread/turns/list", True
        await server.connected(5)
        assert time.monotonic() - began > 3 * PAUSE_S

    watch(answers, test)


def test_a_turn_that_ends_in_the_second_in_which_its_run_began_is_told_as_over(watch: Any, ground: Ground) -> None:
    """Its server tells ends in whole seconds. A thread that is read, and not told of, is asked how its turn ended."""
    (run_file,) = ground.home.glob("sessions/*/runs/1/run.json")
    began = "2026-11-19T05:20:00.700000Z"
    run_file.write_text(json.dumps({**json.loads(run_file.read_text()), "started_at": began}))
    ended = {**turn("1", "completed", "well"), "completedAt": int(datetime.fromisoformat(began).timestamp())}
    answers = {**FRESH, "turn/start": {"turn": turn("1", "inProgress")}, "thread/turns/list": {"data": [ended]}}

    async def test(codex: Codex) -> None:
        await codex.becomes("idle")
        assert (await codex.send("one"))["ok"]
        await codex.server.says(status(ACTIVE), status(IDLE))
        assert (await codex.becomes("done"))["message"] == "well"
        assert codex.keeper.states == ["idle", "working", "done"]

    watch(answers, test)


def test_a_conversation_that_comes_back_in_the_second_of_its_last_turn_is_at_its_prompt(
    watch: Any, ground: Ground
) -> None:
    (run_file,) = ground.home.glob("sessions/*/runs/1/run.json")
    began = "2026-11-19T05:20:00.700000Z"
    run_file.write_text(json.dumps({**json.loads(run_file.read_text()), "started_at": began}))
    ended = {**turn("1", "completed", "well"), "completedAt": int(datetime.fromisoformat(began).timestamp())}
    answers = {**FRESH, "thread/read": thread(IDLE, "one"), "thread/turns/list": {"data": [ended]}}

    async def test(codex: Codex) -> None:
        await codex.becomes("idle")
        assert codex.keeper.states == ["idle"]

    watch(answers, test)


def test_a_turn_that_ended_before_another_keeper_took_over_is_told_as_over(watch: Any, ground: Ground) -> None:
    """The file of the run is written anew then."""
    (run_file,) = ground.home.glob("sessions/*/runs/1/run.json")
    os.utime(run_file, (time.time() + 100, time.time() + 100))
    answers = {**FRESH, "thread/read": thread(IDLE, "one")}
    answers["thread/turns/list"] = {"data": [turn("1", "completed", "well")]}

    async def test(codex: Codex) -> None:
        assert (await codex.becomes("done"))["message"] == "well"

    watch(answers, test)


@pytest.mark.parametrize("how", ["is told", "can be read"])
def test_a_conversation_that_is_listed_before_it_can_be_read_costs_no_server(watch: Any, how: str) -> None:
    """It has just begun. Without its server, the end of its first turn would be told as its prompt."""
    answers = {name: answer for name, answer in FRESH.items() if name != "thread/read"}

    async def test(codex: Codex) -> None:
        server = codex.server
        asked = await server.asked("thread/read")
        await server.says({**asked, "error": {"code": -32600, "message": f"thread not loaded: {T}"}})
        if how == "is told":
            await server.says({"method": "thread/started", "params": thread(IDLE)})
        else:
            await server.says({**await server.asked("thread/read"), "result": thread(IDLE)})
        assert (await codex.becomes("idle"))["source"] == "app-server"
        await codex.stays("idle", 1)
        assert codex.keeper.report["source"] == "app-server"

    watch(answers, test)


def test_of_two_permissions_the_second_is_told_when_the_first_is_answered(watch: Any) -> None:
    def asks(number: int, command: str) -> dict[str, Any]:
        return {"id": number, **told("item/commandExecution/requestApproval", itemId=str(number), command=command)}

    async def test(codex: Codex) -> None:
        await codex.becomes("idle")
        flags = {"type": "active", "activeFlags": ["waitingOnApproval"]}
        await codex.server.says(status(ACTIVE), started("1"), status(flags), asks(7, "touch one"), asks(8, "touch two"))
        for number, command in ((7, "touch one"), (8, "touch two")):
            asked = await codex.becomes("blocked")
            assert asked["message"] == f"run {command}"
            answered = codex.answer(asked["request"], "no")
            await codex.becomes("working")
            await codex.server.says(told("serverRequest/resolved", requestId=number))
            assert (await answered)["ok"]
        await codex.stays("working", 6)  # its server may take long to say that it goes on

    watch(dict(FRESH), test)


@pytest.mark.parametrize("how", [{"ephemeral": True}, {"parentThreadId": T}])
@pytest.mark.parametrize("known", [True, False])
def test_a_thread_that_the_screen_cannot_show_changes_nothing(watch: Any, how: dict[str, Any], known: bool) -> None:
    """It is one that makes a title, or a helper's. ``known``: its beginning was heard."""
    own = {"threadId": "0199a213-81c0-7800-8aa1-bbab2a035a54"}
    other = {"id": own["threadId"], "preview": "", "createdAt": 1, "status": IDLE, **how}
    answers = {name: answer for name, answer in FRESH.items() if name != "thread/read"}

    async def test(codex: Codex) -> None:
        server = codex.server
        await server.says({**await server.asked("thread/read"), "result": thread(IDLE)})
        await codex.becomes("idle")
        await server.says(status(ACTIVE), started("1"))
        await codex.becomes("working")
        if known:
            await server.says({"method": "thread/started", "params": {"thread": other}})
        news = (status(ACTIVE), started("2"), status(IDLE), completed("2", "a title"))
        await server.says(*({**frame, "params": {**frame["params"], **own}} for frame in news))
        asked = await server.asked("thread/read")
        await server.says({**asked, "result": {"thread": other}})
        await codex.stays("working", 0.5)
        await server.says(status(IDLE), completed("1", "well"))
        assert (await codex.becomes("done"))["message"] == "well"
        assert codex.keeper.states == ["idle", "working", "done"]

    watch(answers, test)
