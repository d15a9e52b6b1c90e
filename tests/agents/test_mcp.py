"""Real agents that drive others over MCP: every tool is called by a model, through Claude Code and through Codex."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tests.agents.homes import AgentHome
from tests.agents.modelserver import ModelServer
from tests.agents.test_smoke import told
from tests.ground import Ground
from tests.repos import Repo
from tests.support import Hitch
from tests.watched import say

ASKS = f"""#!/bin/sh
stty -echo
{say("done")}
while read -r line; do
    {say("working")}
    echo "<$line>"
    if [ "$line" = ask ]; then
        printf 'Allow to touch it?'
        {say("blocked", ":kind=permission")}
        read -r _
        printf '\\033[2J\\033[H'
        {say("working")}
        echo allowed
    fi
    {say("done", message="it is done")}
done
"""
TOML = """
title = "Echo"
argv = ["{}"]
adapter = "rules"
ready_after_s = 1
[rules]
version = 1
[[screen]]
state = "blocked"
kind = "permission"
find = ['Allow .*\\?']
options = {{ yes = "\\r" }}
"""
TEXTS = ("text", "input_text", "output_text")
SERVER = [sys.executable, "-m", "hitchpost", "mcp"]


def calls(begin: str, deeds: Sequence[tuple[str, Mapping[str, object]]]) -> str:
    return " ".join(f"[[call {begin}{tool}|{json.dumps(words)}]]" for tool, words in deeds) + " [[say all is well]]"


def of_server(ground: Ground) -> dict[str, str]:
    """What the server needs to know of where it is: agents pass on less than shells do."""
    names = ("HITCHPOST_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "TMPDIR")
    return {name: value for name, value in Hitch.environment().items() if name in names}


def claude(ground: Ground, prompt: str) -> list[str]:
    # else it begins before the server is there
    words = ["env", "MCP_CONNECTION_NONBLOCKING=0", "MCP_TIMEOUT=120000", "claude", "-p", prompt]
    server = {"type": "stdio", "command": SERVER[0], "args": SERVER[1:], "env": of_server(ground)}
    config = json.dumps({"mcpServers": {"hitchpost": server}})
    return [*words, "--mcp-config", config, "--strict-mcp-config", "--allowedTools=mcp__hitchpost"]


def codex(ground: Ground, prompt: str) -> list[str]:
    env = ", ".join(f"{name} = {json.dumps(value)}" for name, value in of_server(ground).items())
    settings = {
        "command": json.dumps(SERVER[0]),
        "args": json.dumps(SERVER[1:]),
        "env": f"{{{env}}}",
        "default_tools_approval_mode": '"approve"',
        "tool_timeout_sec": "120",
        "required": "true",  # else it begins before the server is there
        "startup_timeout_sec": "60",
    }
    words = [word for name, text in settings.items() for word in ("-c", f"mcp_servers.hitchpost.{name}={text}")]
    return ["codex", "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", *words, prompt]


AGENTS: dict[str, tuple[Callable[[Ground, str], list[str]], str]] = {
    "claude": (claude, "mcp__hitchpost__"),
    "codex": (codex, "mcp__hitchpost/"),
}


def answers(model: ModelServer, agent: str) -> list[dict[str, Any]]:
    """What the tools have answered, as the agent's model was told in the end."""
    of_claude = agent == "claude"
    key = "messages" if of_claude else "input"
    body = next(request.body for request in reversed(model.requests()) if key in request.body)
    if not of_claude:
        return [found(item["output"]) for item in body["input"] if item["type"] == "function_call_output"]
    parts = [
        part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]
    ]
    return [found(part["content"]) for part in parts if part["type"] == "tool_result"]


def found(answer: Any) -> dict[str, Any]:
    text = answer if isinstance(answer, str) else "".join(part["text"] for part in answer if part["type"] in TEXTS)
    return json.JSONDecoder().raw_decode(text[text.index("{") :])[0]  # agents may add words of their own


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", AGENTS)
def test_every_tool_is_called_by_a_real_agent(
    name: str, ground: Ground, repo: Repo, model: ModelServer, agent_home: Callable[[str], AgentHome]
) -> None:
    home = agent_home(name)
    program = home.home / "echo-agent"
    program.write_text(ASKS)
    program.chmod(0o755)
    ground.add_agent("echo", TOML.format(program))
    ground.configure(f"[mcp]\nfolders = [{json.dumps(str(repo.path))}]\n")
    argv, begin = AGENTS[name]
    where = {"folder": str(repo.path)}
    deeds: list[tuple[str, dict[str, object]]] = [
        ("make_workspace", {"branch": "fix", **where}),
        ("start_session", {"agent": "echo", "prompt": "first", "name": "dev", "branch": "fix", **where}),
        ("wait_for_sessions", {"sessions": ["dev"]}),
        ("read_session", {"session": "dev"}),
        ("prompt_session", {"session": "dev", "text": "ask"}),
        ("wait_for_sessions", {"sessions": ["dev"], "until": "blocked"}),
        ("answer_session", {"session": "dev", "choice": "yes"}),
        ("wait_for_sessions", {"sessions": ["dev"]}),
        ("read_session", {"session": "dev"}),
        ("list_sessions", {}),
        ("stop_session", {"session": "dev"}),
    ]
    prompt = calls(begin, deeds)
    assert "all is well" in told(home, argv(ground, prompt))
    made, begun, waited, read, prompted, asks, answered, again, last, listed, stopped = answers(model, name)
    assert (made["branch"], os.path.isdir(made["path"])) == ("fix", True)
    assert (begun["name"], begun["own"], begun["folder"]) == ("dev", True, made["path"])
    assert waited["session"]["detail"] == "it is done"
    assert read["text"].endswith("<first>")
    assert prompted["name"] == "dev"
    assert asks["session"]["headline"] == "Needs permission"
    assert answered["name"] == "dev"
    assert again["session"]["attention"] == "done"
    assert last["text"].endswith("allowed")
    assert [one["name"] for one in listed["sessions"]] == ["dev"]
    assert stopped["label"] == "stopped"


@pytest.mark.timeout(400)
def test_a_coordinating_agent_starts_two_others_in_worktrees_and_waits_for_both(
    ground: Ground, repo: Repo, model: ModelServer, agent_home: Callable[[str], AgentHome]
) -> None:
    boss, worker = agent_home("claude"), agent_home("codex")
    ground.configure(f'pass_env = ["SCRIPTED_KEY"]\n[mcp]\nfolders = [{json.dumps(str(repo.path))}]\n')
    where: dict[str, object] = {"agent": "codex", "folder": str(repo.path)}
    deeds: list[tuple[str, dict[str, object]]] = [
        *(
            ("start_session", {**where, "prompt": f"[[say part {name} is done]]", "name": name, "branch": name})
            for name in ("one", "two")
        ),
        ("wait_for_sessions", {"sessions": ["one"], "timeout_s": 120}),
        ("wait_for_sessions", {"sessions": ["two"], "timeout_s": 120}),
        ("stop_session", {"session": "one"}),
        ("stop_session", {"session": "two"}),
    ]
    path = os.pathsep.join((boss.env["PATH"], worker.env["PATH"]))
    more = {"CODEX_HOME": str(worker.home / ".codex"), "SCRIPTED_KEY": worker.env["SCRIPTED_KEY"], "PATH": path}
    home = AgentHome(boss.name, boss.home, boss.place, {**boss.env, **more})
    assert "all is well" in told(home, claude(ground, calls("mcp__hitchpost__", deeds)))
    one, two, first, second, *stopped = answers(model, "claude")
    assert {one["branch"], two["branch"]} == {"one", "two"}
    assert one["folder"] != two["folder"]
    for name, waited in (("one", first), ("two", second)):
        assert (waited["session"]["name"], waited["session"]["attention"]) == (name, "done")
        assert waited["session"]["detail"] == f"part {name} is done"
    assert [end["label"] for end in stopped] == ["stopped", "stopped"]
