"""S10: the secrets of the shell that started the hub are not those of every session that the page makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hitchpost.hub import client as hub_client
from hitchpost.ops.sessions.environment import of_hub, told_missing
from tests.ground import Ground, Truth
from tests.support import eventually

SHELL = {"CANARY": "of-the-shell", "NAMED": "by-option", "SET": "by-settings", "ANTHROPIC_API_KEY": "of-the-person"}
SHELL |= {"DISPLAY": ":7", "HITCHPOST_SESSION": "another"}


def environment_of(pid: int) -> dict[str, str]:
    texts = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return {name: text for name, _, text in (line.partition("=") for line in texts) if name}


@pytest.mark.ids("S10")
@pytest.mark.parametrize("foreground", [False, True])
def test_S10_a_session_of_the_page_has_only_what_a_login_has_and_what_was_named(ground: Ground, foreground: bool):
    ground.configure('pass_env = ["SET", "NOT_SET"]')
    how = ("up", "--port", "0", "--keep-env", "NAMED")
    if foreground:
        # what it becomes is the hub
        hub = ground.sh(f'exec "$@" {" ".join(how)} --foreground', *ground.hitch.command, env=SHELL)
        eventually((ground.home / "hub.json").exists, 60, "the hub")
    else:
        said = ground.hitch(*how, env=SHELL)
        agents = "aider, claude, claude-acp, goose, goose-acp, opencode, opencode-acp"
        assert f"do not get ANTHROPIC_API_KEY ({agents});" in said.err
        assert "of-the-person" not in said.err + said.out
    home = str(ground.home)
    try:
        body = {"command": ["sleep", "1000"], "folder": str(ground.place)}
        made = eventually(lambda: asked(home, body), 60, "a session")
        session = Truth(ground.home, made["session"]["id"])
        pid = json.loads((ground.home / "hub.json").read_bytes())["pid"]
        for found in (environment_of(pid), environment_of(session.agent_pid())):
            wanted = {"NAMED": "by-option", "SET": "by-settings"}
            assert {name: text for name, text in found.items() if name in SHELL and text == SHELL[name]} == wanted
            assert {"PATH", "HITCHPOST_HOME"} <= set(found)
        ground.hitch("stop", session.id)
    finally:
        if foreground:
            ground.hitch("stop", hub.id)
        else:
            ground.hitch("down")


def asked(home: str, body: object) -> dict[str, Any] | None:
    try:
        made: dict[str, Any] = hub_client.ask(home, "POST", "/api/sessions", body, timeout_s=60)
        return made
    except hub_client.NoHub:
        return None


@pytest.mark.ids("S10")
def test_S10_a_variable_that_is_not_set_cannot_be_kept(ground: Ground):
    assert "NOT_SET" in ground.hitch("up", "--port", "0", "--keep-env", "NOT_SET", check=2).err


def test_a_hub_is_told_who_and_where_and_no_more():
    shell = {
        "HOME": "/h",
        "LC_ALL": "C",
        "XDG_RUNTIME_DIR": "/r",
        "AWS_SECRET_ACCESS_KEY": "x",
        "TERM": "xterm",
        "A": "b",
    }
    assert of_hub(shell, ("A", "B")) == {"HOME": "/h", "LC_ALL": "C", "XDG_RUNTIME_DIR": "/r", "A": "b"}


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, []),
        (1, ["A was set in run 3 and is not now"]),
        (2, ["A, B were set in run 3 and are not now"]),
        (7, ["A, B, C, D, E and 2 more were set in run 3 and are not now"]),
    ],
)
def test_what_a_run_lacks_is_one_note(count: int, said: list[str]):
    assert told_missing(list("ABCDEFG")[:count], 3) == said
