"""What a title says of the end of a turn, beside a screen that is read again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hitchpost.agents import rules
from hitchpost.model.attention import IDLE, TITLE, WORKING, Evidence
from hitchpost.watcher.looks import LOOK_S
from hitchpost.watcher.title_prompt import ODD_TITLE, SAID_S, TitlePrompt
from tests.ground import Ground
from tests.support import eventually
from tests.watched import begin, link, report

SOON_S = 30.0


class Agent:
    """One whose hook says how a turn has ended, or does not. Its titles are its states."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.evidence: dict[str, Any] = {TITLE: Evidence(TITLE, WORKING, 0.0)}
        self.put_states: list[str] = []
        self.asked = 0
        self.changed = asyncio.Event()
        self.watching = self
        self.rules = SimpleNamespace(title=(), screen=("one",), composer=None, enter_after_s=0.0)
        monkeypatch.setattr(rules, "first_match", lambda _, text: SimpleNamespace(state=text, details={}))
        self.title = TitlePrompt(self)  # type: ignore[arg-type]

    def put(self, source: str, state: str, **details: Any) -> None:
        self.evidence[source] = Evidence(source, state, 0.0)
        self.put_states.append(state)
        self.changed.set()

    def end_of_turn(self) -> str | None:
        self.asked += 1
        self.changed.set()
        return None

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(SOON_S):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


def test_a_screen_that_is_read_often_at_the_end_of_a_turn_starts_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = 50

    async def scene() -> Agent:
        agent = Agent(monkeypatch)
        agent.title.on_title(IDLE)
        for _ in range(reads):
            agent.title.on_screen("", None)
        await agent.until(lambda: bool(agent.put_states))
        return agent

    agent = asyncio.run(scene())
    assert agent.put_states == [IDLE]
    assert agent.asked <= reads + SAID_S / LOOK_S + 1


def test_a_timer_of_one_turn_does_not_settle_how_the_next_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """For that, the screen must have agreed since."""

    async def scene() -> Agent:
        agent = Agent(monkeypatch)
        agent.title.on_title(IDLE)
        agent.title.on_screen("", None)
        agent.title.on_title(WORKING)
        agent.title.on_title(IDLE)
        await asyncio.sleep(2 * LOOK_S)  # longer than the timer takes
        return agent

    assert asyncio.run(scene()).asked == 1


TITLES = """
[[title_rules]]
state = "idle"
find = '^Ready'

[[title_rules]]
state = "working"
find = '^Busy'
"""


def test_an_agent_whose_title_no_rule_knows_is_unknown_and_gets_no_prompt(ground: Ground) -> None:
    script = "stty -echo; printf '\\033]0;Ready\\a'; read -r _; printf '\\033]0;Updating\\a'; exec cat >got\n"
    session = begin(ground, script, more=TITLES)
    eventually(lambda: report(session).get("state") == "idle", 60)
    with link(session) as connection:
        connection.request("send", text="go", enter=True, force=True, timeout_s=60)
        eventually(lambda: report(session).get("state") == "unknown", 60)
        assert report(session) == {"source": "title", "state": "unknown", "message": ODD_TITLE}
        answer = connection.request("send", text="hello", enter=True, timeout_s=60)
    why = f"it is not known whether the agent is at its prompt: {ODD_TITLE}"
    assert (answer["ok"], answer["why"]) == (False, why)
    assert (ground.place / "got").read_bytes() == b""
    ground.end(session)
