"""A conversation over ACP, with an agent of the test's own at the other end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hitchpost.acp.conversation import CANCEL_WAITS, Asked, AskFailed, Conversation, Cost, Json, Ways
from hitchpost.acp.pipe import ErrorAnswer

ALL: Json = {"agentCapabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}}}}
SOON_S = 30.0
Answers = dict[str, Callable[["Agent", Json], Awaitable[Json]]]


class Agent:
    """Answers requests as a test wants it, and remembers what the conversation has told."""

    def __init__(self, ways: Ways = Ways(), **answers: Any) -> None:  # noqa: B008
        self.answers, self.asked, self.told = answers, [], []  # type: ignore[var-annotated]
        self.states: list[tuple[str, str, str]] = []
        self.request: Asked | None = None
        self.is_asked = asyncio.Event()
        self.said: list[tuple[str, Json]] = []
        self.answer = ""
        self.begun: tuple[str, bool] | None = None
        self.used: list[tuple[Json, Cost | None]] = []
        self.conversation = Conversation(self.ask, self.tell, self, ways, self.image)

    async def ask(self, method: str, params: Json) -> Json:
        self.asked.append((method, params))
        answer = self.answers.get(method.replace("session/", ""), {"sessionId": "new"})
        if isinstance(answer, Exception):
            raise answer
        return await answer(self) if callable(answer) else answer

    def image(self, name: str) -> Json:
        if name == "gone":
            raise AskFailed("it is gone")
        return {"type": "image", "data": name}

    async def tell(self, method: str, params: Json) -> None:
        self.told.append((method, params))

    def on_state(self, state: str, kind: str = "", message: str = "", asked: Asked | None = None) -> None:
        self.states.append((state, kind, message))
        self.request = asked
        if asked is not None:
            self.is_asked.set()

    def on_conversation(self, conversation: str, *, begun: bool) -> None:
        self.begun = (conversation, begun)

    def on_said(self, kind: str, details: Json) -> None:
        self.said.append((kind, details))

    def on_answer(self, text: str) -> None:
        self.answer = text

    def on_used(self, tokens: Json, cost: Cost | None) -> None:
        self.used.append((tokens, cost))

    def update(self, word: str, **more: Any) -> None:
        self.conversation.hear("session/update", {"update": {"sessionUpdate": word, **more}})

    def says(self, text: str) -> None:
        self.update("agent_message_chunk", content={"type": "text", "text": text})

    async def asks(self, **tool: Any) -> Json:
        options = [
            {"optionId": "once", "name": "Allow once", "kind": "allow_once"},
            {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
        ]
        found = self.conversation.hear("session/request_permission", {"toolCall": tool, "options": options})
        assert found is not None
        assert not isinstance(found, dict)
        return await found

    async def turn(self, text: str = "go") -> None:
        assert not self.conversation.prompt(text)
        assert self.conversation._turn is not None
        await self.conversation._turn


@pytest.mark.parametrize(
    ("can", "refused", "way", "begun"),
    [
        (ALL, (), "session/resume", True),
        (ALL, ("resume",), "session/load", True),
        ({"agentCapabilities": {"loadSession": True}}, (), "session/load", True),
        (ALL, ("resume", "load"), "it begins another one", False),
        ({}, (), "the agent has no way to resume one; it begins another one", False),
    ],
)
def test_a_conversation_goes_on_by_the_best_way_or_is_said_to_be_another(
    can: Json, refused: tuple[str, ...], way: str, begun: bool
) -> None:
    async def scene() -> Agent:
        agent = Agent(initialize=can, **dict[str, Any]({name: AskFailed("no such one") for name in refused}))
        await agent.conversation.begin("/place", "old")
        assert agent.begun == (("old", True) if begun else None), "the old one is not given up before the first prompt"
        assert agent.states == [("idle", "", "")]
        await agent.turn()
        return agent

    agent = asyncio.run(scene())
    assert agent.said[0] == ("begun", {"images": False, "resumed": begun})
    kind, notice = agent.said[1]
    assert (kind, way in notice["text"]) == ("notice", True)
    assert agent.begun == ("old" if begun else "new", True)


def test_what_a_load_tells_again_is_not_said_twice() -> None:
    async def load(agent: Agent) -> Json:
        agent.says("said long ago")
        return {}

    async def scene() -> Agent:
        agent = Agent(initialize={"agentCapabilities": {"loadSession": True}}, load=load)
        await agent.conversation.begin("/place", "old")
        agent.says("new")
        return agent

    said = [(kind, details) for kind, details in asyncio.run(scene()).said if kind != "notice"]
    assert said == [("begun", {"images": False, "resumed": True}), ("agent", {"text": "new"})]


@pytest.mark.parametrize(
    ("answer", "states"),
    [
        ({"stopReason": "end_turn"}, [("done", "", "well")]),
        ({"stopReason": "cancelled"}, [("idle", "", "")]),
        ({"stopReason": "refusal"}, [("error", "", "the model refuses to answer")]),
        (AskFailed("API error: out of order"), [("error", "", "API error: out of order")]),
        (AskFailed("usage limit, try again at 18:30"), [("error", "limit", "usage limit, try again at 18:30")]),
    ],
)
def test_how_a_turn_ends(answer: Any, states: list[tuple[str, str, str]]) -> None:
    async def prompt(agent: Agent) -> Json:
        agent.says("well\n")
        agent.says("done")
        if isinstance(answer, Exception):
            raise answer
        found: Json = answer
        return found

    async def scene() -> Agent:
        agent = Agent(prompt=prompt)
        await agent.turn()
        return agent

    agent = asyncio.run(scene())
    assert agent.states == [("working", "", ""), *states]
    assert agent.answer == ("well\ndone" if states[0][0] == "done" else "")


def test_an_end_that_tells_of_an_error_is_not_believed() -> None:
    async def prompt(agent: Agent) -> Json:
        agent.says("Ran into this error: 429 too many requests")
        return {"stopReason": "end_turn"}

    async def scene() -> Agent:
        agent = Agent(Ways(errors=("Ran into this error",)), prompt=prompt)
        await agent.turn()
        return agent

    assert asyncio.run(scene()).states[-1] == ("error", "limit", "Ran into this error: 429 too many requests")


def test_a_permission_counts_once_and_by_its_word() -> None:
    answers: list[Any] = []

    async def prompt(agent: Agent) -> Json:
        answers.append(await agent.asks(toolCallId="t", title="bash", rawInput={"command": "touch q"}))
        return {"stopReason": "end_turn"}

    async def scene() -> Agent:
        agent = Agent(prompt=prompt)
        turn = asyncio.ensure_future(agent.turn())
        await agent.is_asked.wait()
        assert agent.request is not None
        number = agent.request.number
        assert agent.states[-1] == ("blocked", "permission", "touch q")
        assert "expected yes or no" in agent.conversation.answer(number, "maybe")
        assert agent.conversation.answer(number, "yes") == ""
        assert "answered already" in agent.conversation.answer(number, "no")
        await turn
        return agent

    agent = asyncio.run(scene())
    assert answers == [{"outcome": {"outcome": "selected", "optionId": "once"}}]
    assert [state for state, _, _ in agent.states] == ["working", "blocked", "working", "done"]


def test_two_options_of_one_kind_have_two_words() -> None:
    options = [
        {"optionId": "session", "name": "Allow for this session", "kind": "allow_always"},
        {"optionId": "ever", "name": "Allow for ever", "kind": "allow_always"},
    ]

    async def scene() -> Asked | None:
        agent = Agent()
        params = {"toolCall": {"rawInput": {"command": ["/bin/bash", "-lc", "touch q"]}}, "options": options}
        found = agent.conversation.hear("session/request_permission", params)
        assert found is not None
        assert not isinstance(found, dict)
        waiting = asyncio.ensure_future(found)
        await agent.is_asked.wait()
        waiting.cancel()
        return agent.request

    asked = asyncio.run(scene())
    assert asked is not None
    assert asked.options == {"always": "session", "Allow for ever": "ever"}
    assert asked.text == "touch q"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["/bin/sh", "-c", "touch q"], "touch q"),
        (["su", "-c", "rm -rf /srv"], "su -c rm -rf /srv"),
        (["python", "-c", "print(1)"], "python -c print(1)"),
    ],
)
def test_a_permission_names_the_program_unless_it_is_a_shell(command: list[str], shown: str) -> None:
    async def scene() -> Agent:
        agent = Agent()
        waiting = asyncio.ensure_future(agent.asks(rawInput={"command": command}))
        await agent.is_asked.wait()
        waiting.cancel()
        return agent

    assert asyncio.run(scene()).states == [("blocked", "permission", shown)]


@pytest.mark.parametrize(
    ("tool", "shown"),
    [
        ({"title": "/a/b.py", "kind": "edit", "locations": [{"path": "/a/b.py"}]}, "edit: /a/b.py"),
        ({"title": "b.py", "kind": "edit", "locations": [{"path": "/a/b.py"}]}, "edit: b.py"),
        ({"title": "http://c", "kind": "fetch", "rawInput": {"url": "http://c"}}, "fetch: http://c"),
        ({"title": "/a/b.py", "locations": [{"path": "/a/b.py"}]}, "/a/b.py"),
        ({"title": "Write b.py", "kind": "edit", "locations": [{"path": "/a/b.py"}]}, "Write b.py"),
        ({"kind": "edit"}, "edit"),
        ({"title": "b.py", "kind": "edit", "locations": 7, "content": True}, "b.py"),
        ({"title": "b.py", "kind": "edit", "locations": [7, {"path": 7}], "content": [7]}, "b.py"),
    ],
)
def test_a_permission_says_what_is_to_be_done_with_a_path_or_an_address(tool: Json, shown: str) -> None:
    async def scene() -> Agent:
        agent = Agent()
        waiting = asyncio.ensure_future(agent.asks(**tool))
        async with asyncio.timeout(SOON_S):
            await agent.is_asked.wait()
        waiting.cancel()
        return agent

    assert asyncio.run(scene()).states == [("blocked", "permission", shown)]


def test_what_an_agent_is_about_to_write_is_told_with_its_question() -> None:
    async def scene() -> Agent:
        agent = Agent()
        change = {"type": "diff", "path": "/a/b.py", "oldText": "1", "newText": "2"}
        waiting = asyncio.ensure_future(agent.asks(toolCallId="t", title="Write b.py", content=[change]))
        await agent.is_asked.wait()
        waiting.cancel()
        return agent

    said = asyncio.run(scene()).said
    assert [kind for kind, _ in said] == ["tool", "permission"]
    assert said[0][1] == {"id": "t", "diffs": [{"path": "/a/b.py", "old": "1", "new": "2"}]}


def test_the_answer_is_what_was_said_after_the_last_tool() -> None:
    async def prompt(agent: Agent) -> Json:
        agent.says("I will look.")
        agent.update("tool_call", toolCallId="t", title="ls", status="pending")
        agent.says("It was the ")
        agent.update("tool_call_update", toolCallId="t", status="completed")
        agent.says("third test.\nMended.")
        agent.update("tool_call", toolCallId="u", title="ls", status="pending")
        return {"stopReason": "end_turn"}

    async def scene() -> Agent:
        agent = Agent(prompt=prompt)
        await agent.turn()
        return agent

    agent = asyncio.run(scene())
    assert agent.answer == "It was the third test.\nMended."
    assert agent.states[-1] == ("done", "", "It was the third test.")


def test_an_edit_that_an_agent_makes_itself_is_no_error() -> None:
    async def scene() -> list[object]:
        agents = Agent(Ways(proposes_edits=True)), Agent()
        return [agent.conversation.hear("fs/write_text_file", {"path": "/a/b.py"}) for agent in agents]

    assert asyncio.run(scene()) == [{}, None]


def test_what_an_agent_would_lose_is_not_loaded() -> None:
    async def scene() -> Agent:
        agent = Agent(Ways(loses_loaded=True), initialize=ALL)
        await agent.conversation.begin("/place", "old")
        await agent.turn()
        return agent

    agent = asyncio.run(scene())
    assert [method for method, _ in agent.asked] == ["initialize", "session/new", "session/prompt"]
    assert agent.begun == ("new", False), "the next run begins anew, too"
    assert agent.said[1] == (
        "notice",
        {"text": "its conversation cannot be resumed: this agent would lose it; it begins another one"},
    )


def test_a_cancel_waits_for_the_results_of_tools_where_it_would_spoil_the_conversation() -> None:
    answers: list[Any] = []
    reached = asyncio.Event()
    goes_on = asyncio.Event()

    async def prompt(agent: Agent) -> Json:
        agent.says("I call two tools")
        agent.update("tool_call", toolCallId="t", title="read", status="in_progress")
        reached.set()
        await goes_on.wait()
        answers.append(await agent.asks(title="touch q"))
        assert agent.told == []
        agent.says("they are done")
        agent.says("and more")
        return {"stopReason": "cancelled"}

    async def scene() -> Agent:
        agent = Agent(Ways(refuses_first=True), prompt=prompt)
        turn = asyncio.ensure_future(agent.turn())
        await reached.wait()
        assert await agent.conversation.cancel()
        assert agent.said[-1] == ("notice", {"text": CANCEL_WAITS})
        goes_on.set()
        await turn
        return agent

    agent = asyncio.run(scene())
    assert answers == [{"outcome": {"outcome": "selected", "optionId": "reject"}}]
    assert [method for method, _ in agent.told] == ["session/cancel"]
    assert [state for state, _, _ in agent.states] == ["working", "idle"]


def test_a_second_cancel_does_not_wait() -> None:
    async def prompt(agent: Agent) -> Json:
        agent.update("tool_call", toolCallId="t", title="sleep for ever", status="in_progress")
        assert await agent.conversation.cancel()
        assert agent.told == []
        assert await agent.conversation.cancel()
        assert await agent.conversation.cancel()
        return {"stopReason": "cancelled"}

    async def scene() -> Agent:
        agent = Agent(Ways(refuses_first=True), prompt=prompt)
        await agent.turn()
        return agent

    agent = asyncio.run(scene())
    assert [method for method, _ in agent.told] == ["session/cancel"] * 2
    assert [kind for kind, _ in agent.said].count("notice") == 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ({"message": "Internal error", "data": {"details": "no"}}, ("Internal error", "no")),
        ({"message": "Internal error", "data": '{"error": {"message": "no"}}'}, ("Internal error", "no")),
        ({"message": '{"error": {"code": 400, "message": "no"}}'}, ("no", "")),
        ({"message": "[1]", "data": "{"}, ("[1]", "{")),
        (None, ("the request has failed", "")),
    ],
)
def test_an_error_is_told_in_plain_words(error: Any, told: tuple[str, str]) -> None:
    found = ErrorAnswer(error)
    assert (str(found), found.details) == told


@pytest.mark.parametrize(
    ("ways", "outcome", "told"),
    [
        (Ways(), {"outcome": "cancelled"}, ["session/cancel"]),
        (Ways(refuses_first=True), {"outcome": "selected", "optionId": "reject"}, []),
    ],
)
def test_a_cancel_while_it_asks(ways: Ways, outcome: Json, told: list[str]) -> None:
    answers: list[Any] = []

    async def prompt(agent: Agent) -> Json:
        answers.append(await agent.asks(title="touch q"))
        return {"stopReason": "end_turn"}

    async def scene() -> Agent:
        agent = Agent(ways, prompt=prompt)
        turn = asyncio.ensure_future(agent.turn())
        await agent.is_asked.wait()
        assert agent.request is not None
        assert agent.conversation.prompt("and then this")
        assert await agent.conversation.cancel()
        await turn
        assert not await agent.conversation.cancel()
        return agent

    agent = asyncio.run(scene())
    assert answers == [{"outcome": outcome}]
    assert [method for method, _ in agent.told] == told
    assert [method for method, _ in agent.asked] == ["session/prompt"], "what waited is forgotten"
    assert ("not_sent", {"prompt": "2", "text": "and then this"}) in agent.said, "and that is told"
    assert agent.states[-1] == ("idle", "", "")


def test_prompts_wait_for_each_other_up_to_twenty_and_are_taken_back_once() -> None:
    async def scene() -> Agent:
        agent = Agent()
        waits = [agent.conversation.prompt(str(number)) for number in range(1, 21)]
        assert waits == [False, *[True] * 19]
        assert agent.conversation.refusal() == "20 prompts wait already"
        assert agent.conversation.take_back("7") == ""
        assert agent.conversation.take_back("7") == "it does not wait any more"
        assert agent.conversation.refusal() == ""
        assert agent.conversation._turn is not None
        await agent.conversation._turn
        assert agent.conversation.take_back("8") == "it does not wait any more"
        return agent

    agent = asyncio.run(scene())
    sent = [str(number) for number in range(1, 21) if number != 7]
    assert [params["prompt"][0]["text"] for _, params in agent.asked] == sent
    told = [(kind, details["prompt"]) for kind, details in agent.said if "prompt" in details]
    assert told[:20] == [*(("queued", str(number)) for number in range(2, 21)), ("taken_back", "7")]
    assert told[20:] == [("user", number) for number in sent]


@pytest.mark.parametrize(
    "answer", [AskFailed("usage limit, try again at 18:30"), AskFailed("out of order"), {"stopReason": "refusal"}]
)
def test_what_waits_behind_a_turn_that_fails_is_not_sent(answer: Any) -> None:
    async def scene() -> Agent:
        agent = Agent(prompt=answer)
        assert [agent.conversation.prompt(text) for text in ("1", "2", "3")] == [False, True, True]
        assert agent.conversation._turn is not None
        await agent.conversation._turn
        assert agent.conversation.refusal() == ""
        return agent

    agent = asyncio.run(scene())
    assert len(agent.asked) == 1
    assert [(kind, details.get("prompt")) for kind, details in agent.said if kind != "queued"] == [
        ("user", "1"),
        ("turn", None),
        ("not_sent", "2"),
        ("not_sent", "3"),
    ]
    assert [state for state, _, _ in agent.states] == ["working", "error"]


def test_nothing_is_sent_to_an_agent_that_ends() -> None:
    async def prompt(agent: Agent) -> Json:
        agent.conversation.close()
        return {"stopReason": "end_turn"}

    async def scene() -> Agent:
        agent = Agent(prompt=prompt)
        assert [agent.conversation.prompt(text) for text in ("1", "2")] == [False, True]
        assert agent.conversation._turn is not None
        await agent.conversation._turn
        assert agent.conversation.refusal() == "the agent has ended"
        return agent

    agent = asyncio.run(scene())
    assert len(agent.asked) == 1
    assert [kind for kind, _ in agent.said] == ["queued", "user", "not_sent", "turn"]


def test_images_go_where_they_are_taken() -> None:
    async def scene(*names: str) -> Agent:
        agent = Agent(initialize={"agentCapabilities": {"promptCapabilities": {"image": True}}})
        assert agent.conversation.refusal(names) == "this agent takes no images", "as long as it has not said so"
        await agent.conversation.begin("/place", "")
        assert agent.conversation.refusal(names) == ""
        agent.conversation.prompt("", names)
        assert agent.conversation._turn is not None
        await agent.conversation._turn
        return agent

    agent = asyncio.run(scene("a", "b"))
    assert agent.said[0] == ("begun", {"images": True, "resumed": False})
    assert agent.said[1] == ("user", {"prompt": "1", "text": "", "images": ["a", "b"]})
    assert agent.asked[-1][1]["prompt"] == [{"type": "image", "data": "a"}, {"type": "image", "data": "b"}]
    agent = asyncio.run(scene("gone"))
    assert agent.states[-1] == ("error", "", "it is gone")
    assert [kind for kind, _ in agent.said] == ["begun", "not_sent", "turn"]


def test_tools_and_plans_are_kept_as_they_go() -> None:
    async def scene() -> Agent:
        agent = Agent()
        agent.update("tool_call", toolCallId="t", title="edit", kind="edit", status="pending")
        diff = {"type": "diff", "path": "a.py", "oldText": "1", "newText": "2"}
        shown = {"type": "content", "content": {"type": "text", "text": "all well"}}
        agent.update("tool_call_update", toolCallId="t", status="completed", content=[diff, shown, None])
        agent.update("plan", entries=[{"content": "first", "status": "pending"}, 7])
        agent.update("something_new")
        assert agent.conversation.hear("fs/read_text_file", {}) is None
        return agent

    assert asyncio.run(scene()).said == [
        ("tool", {"id": "t", "title": "edit", "kind": "edit", "status": "pending"}),
        (
            "tool",
            {
                "id": "t",
                "status": "completed",
                "output": "all well",
                "diffs": [{"path": "a.py", "old": "1", "new": "2"}],
            },
        ),
        ("plan", {"entries": [{"text": "first", "status": "pending"}]}),
    ]


def test_a_bug_is_an_error_and_not_work_without_an_end() -> None:
    async def prompt(agent: Agent) -> Json:
        raise ZeroDivisionError("of nothing")

    async def scene() -> Agent:
        agent = Agent(prompt=prompt)
        with pytest.raises(ZeroDivisionError):
            await agent.turn()
        return agent

    assert asyncio.run(scene()).states[-1] == ("error", "", "ZeroDivisionError: of nothing")


def costs(usd: object, currency: object = "USD") -> Json:
    return {"used": 1, "size": 10, "cost": {"amount": usd, "currency": currency}}


def test_the_sum_that_an_agent_tells_goes_with_the_turn_also_with_one_that_fails():
    async def deal() -> list[tuple[Json, Cost | None]]:
        answers: list[Json | Exception] = [{"usage": {"inputTokens": 7}}, {}, AskFailed("out of order"), {}]

        async def pays(agent: Agent) -> Json:
            answer = answers.pop(0)
            if answers:
                agent.update("usage_update", **costs(4 - len(answers)))
                agent.update("usage_update", used=1, size=10)
            if isinstance(answer, Exception):
                raise answer
            return answer

        agent = Agent(initialize={}, prompt=pays)
        await agent.conversation.begin("/", "")
        for _ in range(4):
            await agent.turn()
        return agent.used

    assert asyncio.run(deal()) == [({"inputTokens": 7}, Cost(1.0, 0.0)), ({}, Cost(2.0, 0.0)), ({}, Cost(3.0, 0.0))]


def test_what_a_conversation_had_cost_before_is_told_with_the_first_sum():
    async def deal() -> list[tuple[Json, Cost | None]]:
        async def told_again(agent: Agent) -> Json:
            agent.update("usage_update", **costs(2))
            return {}

        async def pays(agent: Agent) -> Json:
            agent.update("usage_update", **costs(2.5))
            return {}

        agent = Agent(initialize={"agentCapabilities": {"loadSession": True}}, load=told_again, prompt=pays)
        await agent.conversation.begin("/", "old")
        await agent.turn()
        return agent.used

    assert asyncio.run(deal()) == [({}, Cost(2.5, 2.0))]


@pytest.mark.parametrize(
    "told",
    [
        costs(-1),
        costs(float("nan")),
        costs(float("inf")),
        costs("1"),
        costs(True),
        costs(None),
        costs(10**400),
        costs(1, "EUR"),
        costs(1, None),
        {"cost": 1},
        {"cost": None},
    ],
)
def test_what_is_no_amount_in_dollars_counts_nothing(told: Json):
    async def deal() -> list[tuple[Json, Cost | None]]:
        async def pays(agent: Agent) -> Json:
            agent.update("usage_update", **told)
            return {"usage": {"inputTokens": 7}}

        agent = Agent(initialize={}, prompt=pays)
        await agent.conversation.begin("/", "")
        await agent.turn()
        return agent.used

    assert asyncio.run(deal()) == [({"inputTokens": 7}, None)]
