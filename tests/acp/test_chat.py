"""The chat of a session, as its client writes it and everybody reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitchpost.acp import chat
from tests.ground import Ground
from tests.hubs import HubProcess


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
