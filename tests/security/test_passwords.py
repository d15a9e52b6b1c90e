"""What is typed at a password prompt is typed, and kept nowhere: not in the story, not in any other file."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest

from hitchpost.ops.sessions.prompt import NOT_KEPT, prompt
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.support import Hitch, eventually
from tests.tmuxes import Panes
from tests.watched import begin, say

ASKS = """while :; do
    read -rp 'name: ' name; read -rsp 'password: ' word; printf '\\n'; printf %s "$word" | cksum > "sum of $name"
done"""
"""A shell that asks for a name, which it shows, and a password, which it does not."""
FULL_SCREEN = "stty raw -echo; printf ready; head -c 10; printf got; exec sleep 1000"


def bash(script: str) -> tuple[str, str, str]:
    return "bash", "-c", script


def told(session: Truth) -> list[dict[str, object]]:
    lines = (line for line in session.story() if line["event"] == "prompt")
    return [{key: line[key] for key in ("text", "letters", "reason") if key in line} for line in lines]


def holders(ground: Ground, canary: str) -> list[str]:
    files = (path for path in ground.home.rglob("*") if path.is_file())
    return [path.name for path in files if canary.encode() in path.read_bytes()]


def given(ground: Ground, session: Truth, text: str) -> None:
    prompt(str(ground.home), session.id, text, actor="test", caller=Hitch.environment())


def is_asked(session: Truth, what: str, times: int = 1) -> None:
    eventually(lambda: session.output().count(f"{what}: ".encode()) >= times, what=what)


def log_in(session: Truth, send: Callable[[str], object], ground: Ground, name: str, times: int = 1) -> str:
    """Give a name and a password, which is returned, once it has been read."""
    password = f"canary {secrets.token_hex(8)}"
    is_asked(session, "name", times)
    send(name)
    is_asked(session, "password", times)
    send(password)
    assert ground.said(f"sum of {name}").split()[1] == str(len(password))
    return password


@pytest.mark.ids("S10")
@pytest.mark.parametrize("runtime", ["local", "tmux"])
def test_S10_the_story_has_no_letter_of_a_text_that_the_terminal_hid(ground: Ground, panes: Panes, runtime: str):
    session = ground.begin(*bash(ASKS)) if runtime == "local" else panes.begin(*bash(ASKS))

    password = log_in(session, lambda text: given(ground, session, text), ground, "ann")
    assert told(session) == [{"text": "ann"}, {"letters": len(password), "reason": NOT_KEPT}]
    assert holders(ground, password) == []
    ground.end(session)


@pytest.mark.ids("S10")
def test_S10_the_command_and_the_hub_keep_none_either(ground: Ground, hub: HubProcess):
    session = ground.begin(*bash(ASKS))
    path = f"/api/sessions/{session.id}/prompt"
    first = log_in(session, lambda text: ground.hitch("send", session.id, "-", stdin=text), ground, "ann")
    second = log_in(session, lambda text: hub.ask("POST", path, {"text": text}), ground, "bob", times=2)
    assert [line.get("text") for line in told(session)] == ["ann", None, "bob", None]
    assert [holders(ground, password) for password in (first, second)] == [[], []]
    ground.end(session)


def test_a_text_for_a_full_screen_program_is_told(ground: Ground):
    session = ground.begin_sh(FULL_SCREEN)
    eventually(lambda: b"ready" in session.output(), what="the program")
    given(ground, session, "123456789")
    assert told(session) == [{"text": "123456789"}]
    ground.end(session)


@pytest.mark.ids("S10")
@pytest.mark.parametrize("then", [say("working") + "exec sleep 1000", "exit 0"])
def test_S10_what_a_watcher_types_is_kept_as_little(ground: Ground, then: str):
    (ground.place / "asks").write_text(f"read -rsp password: word\n{then}")
    session = begin(ground, f"{say('idle')}exec bash asks")
    eventually(lambda: b"password:" in session.output(), what="the question")
    given(ground, session, "canary")
    assert told(session) == [{"letters": 6, "reason": NOT_KEPT}]
    ground.end(session)
