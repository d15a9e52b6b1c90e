"""What agents say, and what is read of them, in the orders that a busy machine makes of it: no older word counts.

A prompt that was delivered, and an answer, change at once what an agent is said to do.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hitchpost.watcher.copilot import Copilot
from tests.ground import Ground
from tests.watcher.linked import Watched, run_folder, watched

ASKED = {"sessionID": "s", "id": "p1", "permission": "bash", "metadata": {"command": "touch it"}}
SCREENS = Path(__file__).with_name("screens")
Watch = Callable[[str, Callable[[Watched], Awaitable[None]]], None]


@pytest.fixture
def watch(ground: Ground) -> Watch:
    """Run a test beside a watcher of an agent."""

    def run(agent: str, test: Callable[[Watched], Awaitable[None]]) -> None:
        async def main() -> None:
            async with watched(agent, run_folder(ground, agent)) as beside:
                await test(beside)

        asyncio.run(main())

    return run


class OpencodeServer:
    """``between`` comes to pass after a request was taken and before its answer is read."""

    def __init__(self) -> None:
        self.between: Callable[[], Awaitable[None]] | None = None
        self.statuses: dict[str, Any] = {}

    async def ask(self, method: str, path: str, body: Any = None, **how: Any) -> tuple[int, Any]:
        between, self.between = self.between, None
        if between is not None and method == "POST":
            await between()
        elif method == "POST":
            await asyncio.sleep(0)
        if path == "/session/status":
            return 200, self.statuses
        return (200, {}) if path.startswith("/session") else (200, [])


async def opencode_asks(agent: Watched) -> OpencodeServer:
    server = agent.adapter.server = OpencodeServer()
    tell = agent.adapter._on_event
    await tell("session.created", {"sessionID": "s", "info": {"id": "s"}})
    await tell("session.status", {"sessionID": "s", "status": {"type": "busy"}})
    await tell("permission.asked", ASKED)
    assert agent.keeper.report["state"] == "blocked"
    return server


def test_an_answer_to_opencode_ends_what_was_asked_before_its_server_says_so(watch: Watch) -> None:
    async def test(agent: Watched) -> None:
        await opencode_asks(agent)
        assert (await agent.answer("p1", "yes"))["ok"]
        await agent.keeper.stays("working", 6)

    watch("opencode", test)


def test_a_turn_of_opencode_that_ends_before_its_answer_was_read_is_over(watch: Watch) -> None:
    async def test(agent: Watched) -> None:
        server = await opencode_asks(agent)

        async def goes_on() -> None:
            await agent.adapter._on_event("permission.replied", {"sessionID": "s", "requestID": "p1", "reply": "once"})
            await agent.adapter._on_event("session.status", {"sessionID": "s", "status": {"type": "idle"}})

        server.between = goes_on
        assert (await agent.answer("p1", "yes"))["ok"]
        assert agent.keeper.report["state"] == "done"

    watch("opencode", test)


def test_a_turn_over_acp_that_ends_before_the_receipt_was_read_is_over(watch: Watch, ground: Ground) -> None:
    def state(word: str) -> bytes:
        told = {"event": "state", "state": word, "kind": "", "message": "", "request": "", "options": []}
        return json.dumps(told).encode() + b"\n"

    async def test(agent: Watched) -> None:
        async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(state("idle"))
            asked = json.loads(await reader.readline())
            receipt = json.dumps({"id": asked["id"], "ok": True}).encode() + b"\n"
            writer.write(state("working") + receipt + state("done"))
            await reader.read()
            writer.close()

        path = f"{agent.watching.run_folder}/acp.sock"
        async with await asyncio.start_unix_server(client, path):
            assert (await agent.send("one"))["ok"]
            assert agent.keeper.report["state"] == "done"
            agent.adapter._writer.close()
            await agent.adapter._writer.wait_closed()

    watch("opencode-acp", test)


def test_a_screen_that_was_read_before_copilot_took_a_prompt_does_not_count_after_it(watch: Watch) -> None:
    async def test(agent: Watched) -> None:
        copilot: Copilot = agent.adapter
        shows = asyncio.Event()

        async def text() -> str:
            """The look has begun, and drawing takes its time."""
            agent.watching.screen.read_at = asyncio.get_running_loop().time()
            await shows.wait()
            return (SCREENS / "copilot-prompt.txt").read_text()

        agent.watching.screen.text = text  # type: ignore[method-assign]
        copilot.look()
        await asyncio.sleep(0.01)
        await copilot.on_hook("userPromptSubmitted", {"sessionId": "x", "prompt": "one"})
        assert agent.keeper.report["state"] == "working"
        shows.set()
        await asyncio.sleep(0.1)
        assert agent.keeper.states == ["working"]

    watch("copilot", test)


def test_the_end_of_a_turn_of_qwen_is_known_when_its_hook_has_said_how(watch: Watch) -> None:
    """Its title may say so first: that alone would be an interruption."""

    async def test(agent: Watched) -> None:
        title = agent.adapter._title
        title.on_title("Qwen - place")
        agent.adapter.on_screen(f"{'─' * 20}\n>   Type your message\n{'─' * 20}\n")
        await agent.adapter.on_hook("UserPromptSubmit", {"session_id": "x", "prompt": "one"})
        title.on_title("◐ Qwen - place")
        title.on_title("Qwen - place")
        agent.adapter.on_screen(f"{'─' * 20}\n>   Type your message\n{'─' * 20}\n")
        await asyncio.sleep(0.3)
        await agent.adapter.on_hook("Stop", {"last_assistant_message": "well"})
        await agent.keeper.becomes("done")
        assert agent.keeper.states[-2:] == ["working", "done"]

        # one that was interrupted has no hook
        await agent.adapter.on_hook("UserPromptSubmit", {"session_id": "x", "prompt": "two"})
        title.on_title("◐ Qwen - place")
        title.on_title("Qwen - place")
        agent.adapter.on_screen(f"{'─' * 20}\n>   Type your message\n{'─' * 20}\n")
        await agent.keeper.becomes("idle")

    watch("qwen", test)


def test_a_hook_of_claude_that_comes_after_its_question_was_answered_asks_nothing(watch: Watch) -> None:
    """It is a program that has to start. Who sits at the terminal can be faster."""

    async def test(agent: Watched) -> None:
        for seq, report in enumerate(({"state": "blocked", "kind": "permission"}, {"state": "working"}), 1):
            agent.keeper.says({"event": "osc7501", "seq": seq, "report": report})
        await agent.keeper.becomes("working")
        asked = {"tool_name": "Bash", "tool_input": {"command": "touch it"}}
        late = asyncio.create_task(agent.adapter.on_hook("PermissionRequest", asked))
        question = {"tool_name": "AskUserQuestion", "tool_input": {"questions": [{"question": "Which?"}]}}
        await agent.adapter.on_hook("PermissionRequest", question)
        await agent.keeper.stays("working", 3)
        agent.keeper.says({"event": "osc7501", "seq": 3, "report": {"state": "done"}})
        assert await late is None

    watch("claude", test)


def test_a_hook_of_claude_may_come_before_its_own_report(watch: Watch) -> None:
    async def test(agent: Watched) -> None:
        agent.keeper.says({"event": "osc7501", "seq": 1, "report": {"state": "working"}})
        await agent.keeper.becomes("working")
        question = {"tool_name": "AskUserQuestion", "tool_input": {"questions": [{"question": "Which?"}]}}
        await agent.adapter.on_hook("PermissionRequest", question)
        agent.keeper.says({"event": "osc7501", "seq": 2, "report": {"state": "blocked", "kind": "question"}})
        assert (await agent.keeper.becomes("blocked"))["message"] == "Which?"

    watch("claude", test)
