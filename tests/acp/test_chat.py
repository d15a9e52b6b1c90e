"""The chat of a session, as its client writes it and everybody reads it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hitchpost.acp import chat
from tests.acp.sessions import begin, let_go
from tests.ground import Ground
from tests.hubs import HubProcess, Socket


def test_what_was_said_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = chat.Chat(str(tmp_path), 2)
    assert chat.read(str(tmp_path)) == ([], 0)
    for number in range(10):
        written.add("agent", text=f"part {number} " + "x" * 100)
    monkeypatch.setattr(chat, "PART_BYTES", 500)
    found: list[dict[str, object]] = []
    start = 0
    while True:
        lines, end = chat.read(str(tmp_path), start)
        if end == start:
            break
        assert len(lines) < 10
        found, start = found + lines, end
    assert [str(line["text"]).split(" x")[0] for line in found] == [f"part {number}" for number in range(10)]
    assert {(line["run"], line["type"]) for line in found} == {(2, "agent")}


def test_a_torn_line_and_nonsense_are_left_out_and_what_is_too_much_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = chat.Chat(str(tmp_path), 1)
    written.add("user", text="one")
    written.add("turn", kind="limit", state="error")
    with (tmp_path / chat.CHAT).open("a") as file:
        file.write('[]\n{"no": "type"}\n{"type": "agent", "text": "to')
    assert [(line["type"], line.get("kind")) for line in chat.read(str(tmp_path))[0]] == [
        ("user", None),
        ("turn", "limit"),
    ]
    written.add("user", text="two")
    assert [line.get("text") for line in chat.read(str(tmp_path))[0]] == ["one", None, "two"]
    monkeypatch.setattr(chat, "MOST_BYTES", 10)
    written.add("user", text="three")
    assert len(chat.read(str(tmp_path))[0]) == 3


def test_the_hub_serves_it(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin("sleep", "1000", name="dev")
    assert hub.ask("GET", "/api/sessions/dev/chat") == {"lines": [], "next": 0}
    chat.Chat(str(dev.folder), 1).add("user", text="hello")
    first = hub.ask("GET", "/api/sessions/dev/chat")
    assert [line["text"] for line in first["lines"]] == ["hello"]
    assert hub.ask("GET", f"/api/sessions/dev/chat?start={first['next']}") == {"lines": [], "next": first["next"]}
    ground.end(dev)


def test_what_a_tool_has_written_may_be_too_long_to_be_kept_and_the_chat_goes_on(tmp_path: Path) -> None:
    written = chat.Chat(str(tmp_path), 1)
    written.add("tool", id="t1", title="write", diffs=[{"path": "a", "old": "", "new": "x" * (10 << 20)}])
    written.add("agent", text="\N{PILE OF POO}" * chat.LONGEST_TEXT)
    written.add("user", text="next")
    lines, end = chat.read(str(tmp_path))
    assert [{name: item for name, item in line.items() if name not in ("at", "run")} for line in lines] == [
        {"type": "tool", "id": "t1", "title": "write", "output": chat.TOO_LONG},
        {"type": "agent", "text": chat.TOO_LONG},
        {"type": "user", "text": "next"},
    ]
    # and one that somebody else has written is passed over
    path = tmp_path / chat.CHAT
    with path.open("a") as file:
        file.write('{"type": "agent", "text": "' + "x" * (20 << 20) + '"}\n')
    written.add("user", text="last")
    found = []
    while end < path.stat().st_size:
        lines, end = chat.read(str(tmp_path), end)
        found += lines
    assert [line["text"] for line in found] == ["last"]


async def lines_of(socket: Socket, count: int) -> list[dict[str, Any]]:
    """So many lines from now on, and not one twice."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        part = await socket.until("chat.lines")
        found += part["lines"]
    assert len(found) == count
    return found


def test_a_client_follows_it_from_an_offset_on_and_goes_on_after_it_came_back(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin("sleep", "1000", name="dev")
    written = chat.Chat(str(dev.folder), 1)

    async def scene() -> None:
        async with hub.ws() as socket:
            await socket.say("chat.follow", sessionId="dev")
            nothing = {"type": "chat.lines", "sessionId": dev.id, "from": 0, "lines": [], "next": 0}
            assert await socket.until("chat.lines") == nothing
            written.add("user", text="one")
            first = await socket.until("chat.lines")
            assert (first["from"], [line["text"] for line in first["lines"]]) == (0, ["one"])
            assert first["next"] == (dev.folder / chat.CHAT).stat().st_size
            # nobody tells who has left
            await socket.say("chat.leave", sessionId=dev.id)
            await socket.say("chat.leave", sessionId=dev.id)
            await socket.say("chat.follow", sessionId="nobody")
            assert (await socket.until("error"))["code"] == "not_found"
            written.add("user", text="two")
        async with hub.ws("viewer") as socket, hub.ws() as other:
            await socket.say("chat.follow", sessionId=dev.id, **{"from": first["next"]})
            assert [line["text"] for line in await lines_of(socket, 1)] == ["two"]
            await other.say("chat.follow", sessionId=dev.id)
            assert [line["text"] for line in await lines_of(other, 2)] == ["one", "two"]
            for number in range(100):
                written.add("agent", text=str(number))
            assert [line["text"] for line in await lines_of(socket, 100)] == [str(number) for number in range(100)]
            assert [line["text"] for line in await lines_of(other, 100)] == [str(number) for number in range(100)]
            # who asks again is told from there on, once
            await other.say("chat.follow", sessionId=dev.id, **{"from": first["next"]})
            assert [line["text"] for line in await lines_of(other, 101)][:2] == ["two", "0"]
            written.add("user", text="end")
            assert [line["text"] for line in await lines_of(other, 1)] == ["end"]
            await other.say("chat.follow", sessionId=dev.id, **{"from": -1})
            assert (await other.until("error"))["code"] == "bad_input"

    asyncio.run(scene())
    ground.end(dev)


def test_a_part_is_sent_at_a_time_and_a_client_that_does_not_read_holds_up_nobody(
    ground: Ground, hub: HubProcess
) -> None:
    dev = ground.begin("sleep", "1000", name="dev")
    written = chat.Chat(str(dev.folder), 1)
    for number in range(40):
        written.add("agent", text=f"{number} " + "x" * 1_000_000)

    async def scene() -> None:
        async with hub.ws() as idle, hub.ws() as socket:
            await idle.say("chat.follow", sessionId=dev.id)
            await socket.say("chat.follow", sessionId=dev.id)
            found: list[str] = []
            parts = 0
            while len(found) < 40:
                part = await socket.until("chat.lines")
                found += [line["text"].split()[0] for line in part["lines"]]
                parts += 1
            assert found == [str(number) for number in range(40)]
            assert parts >= 20
            written.add("agent", text="more")
            assert (await socket.until("chat.lines"))["lines"][0]["text"] == "more"

    asyncio.run(scene())
    ground.end(dev)


def test_what_an_agent_says_comes_as_it_says_it_and_a_removed_session_is_followed_no_more(
    ground: Ground, hub: HubProcess
) -> None:
    dev = begin(ground)

    async def scene() -> None:
        async with hub.ws() as socket:
            await socket.say("chat.follow", sessionId=dev.id)
            await asyncio.to_thread(hub.ask, "POST", "/api/sessions/dev/prompt", {"text": "hold on"})
            found: list[tuple[str, object]] = []
            while not found or found[-1] != ("agent", "I hold"):
                part = await socket.until("chat.lines")
                found += [(line["type"], line.get("text")) for line in part["lines"]]
            assert found == [("begun", None), ("user", "hold on"), ("agent", "I hold")]
            await asyncio.to_thread(let_go, ground)
            assert (await lines_of(socket, 1))[0]["type"] == "turn"
            await asyncio.to_thread(ground.end, dev)
            await asyncio.to_thread(hub.ask, "DELETE", "/api/sessions/dev")
            await socket.until("session.removed")
            await socket.say("chat.follow", sessionId=dev.id)
            assert (await socket.until("error"))["code"] == "not_found"

    asyncio.run(scene())
