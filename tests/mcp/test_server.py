"""``hitch mcp`` on standard input and output, asked by the library that agents use."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any, TextIO

import pytest

from tests.ground import Ground
from tests.support import Hitch

TOOLS = {
    "list_sessions",
    "start_session",
    "prompt_session",
    "wait_for_sessions",
    "read_session",
    "answer_session",
    "stop_session",
    "make_workspace",
}


def told(answer: Any) -> dict[str, Any]:
    return json.loads(answer.content[0].text)


async def asked(ground: Ground, nowhere: TextIO) -> None:
    from mcp import ClientSession, StdioServerParameters  # two seconds, in every process that collects the tests
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(
        command=sys.executable, args=["-m", "hitchpost", "mcp"], env=Hitch.environment(), cwd=str(ground.place)
    )
    async with stdio_client(server, errlog=nowhere) as streams, ClientSession(*streams) as client:
        about = await client.initialize()
        assert about.server_info.name == "hitchpost"
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        (dev,) = told(await client.call_tool("list_sessions", {}))["sessions"]
        assert (dev["name"], dev["own"], dev["live"]) == ("dev", False, True)
        seen = told(await client.call_tool("read_session", {"session": "dev"}))
        assert seen["text"] == "ready"
        refused = await client.call_tool("stop_session", {"session": "dev"})
        assert refused.is_error
        assert "dev was started by somebody else" in refused.content[0].text  # type: ignore[union-attr]
        unknown = await client.call_tool("read_session", {"session": "nobody"})
        assert "no session 'nobody'" in unknown.content[0].text  # type: ignore[union-attr]
        waited = told(await client.call_tool("wait_for_sessions", {"sessions": ["dev"], "timeout_s": 0}))
        assert waited == {"session": None, "timed_out": True}


@pytest.mark.timeout(120)
def test_every_tool_is_offered_and_an_error_is_told_as_the_command_line_tells_it(ground: Ground) -> None:
    dev = ground.begin_sh("echo ready; exec cat", name="dev")
    with open(os.devnull, "w") as nowhere:
        asyncio.run(asked(ground, nowhere))
    assert dev.state == "running"
    ground.end(dev)
