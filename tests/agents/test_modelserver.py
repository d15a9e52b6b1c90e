"""The scripted model itself, asked with plain HTTP in each dialect."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from tests.agents.directives import BadDirective, Step, directives
from tests.agents.modelserver import ModelServer
from tests.support import eventually

SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


def post(model: ModelServer, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> str:
    request = urllib.request.Request(model.url + path, json.dumps(body).encode(), dict(headers or {}))
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read().decode()


def events(text: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@dataclass(frozen=True)
class Speaker:
    """How a dialect asks, answers a call, and where its answers have text and calls."""

    path: str
    ask: Callable[[list[str], bool], dict[str, Any]]
    with_call: Callable[[str, str, bool], dict[str, Any]]
    """A prompt, the call that followed, and its result or none."""
    text: Callable[[list[Any]], str]
    call: Callable[[list[Any]], tuple[str, Any]]
    stream_path: str = ""


def tools_of(dialect: str) -> list[Any]:
    tools: dict[str, list[Any]] = {
        "anthropic": [{"name": "Bash", "input_schema": SHELL}],
        "responses": [{"type": "function", "name": "shell", "parameters": SHELL}],
        "chat": [{"type": "function", "function": {"name": "bash", "parameters": SHELL}}],
        "gemini": [{"functionDeclarations": [{"name": "run_shell_command", "parametersJsonSchema": SHELL}]}],
    }
    return tools[dialect]


def anthropic(prompts: list[str], stream: bool) -> dict[str, Any]:
    messages: list[Any] = []
    for prompt in prompts:
        messages += [{"role": "user", "content": prompt}, {"role": "assistant", "content": "ok"}]
    return {"model": "m", "stream": stream, "tools": tools_of("anthropic"), "messages": messages[:-1]}


def anthropic_call(prompt: str, arguments: str, result: bool) -> dict[str, Any]:
    body = anthropic([prompt], True)
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": arguments}}
    body["messages"].append({"role": "assistant", "content": [use]})
    answer = [{"type": "tool_result", "tool_use_id": "t1", "content": "fine"}] if result else []
    body["messages"].append(
        {"role": "user", "content": [*answer, {"type": "text", "text": "<system-reminder>x</system-reminder>"}]}
    )
    return body


def responses(prompts: list[str], stream: bool) -> dict[str, Any]:
    entries = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]} for prompt in prompts
    ]
    return {"model": "m", "stream": stream, "tools": tools_of("responses"), "input": entries}


def responses_call(prompt: str, arguments: str, result: bool) -> dict[str, Any]:
    body = responses([prompt], True)
    body["input"].append({"type": "function_call", "call_id": "t1", "name": "shell", "arguments": arguments})
    if result:
        body["input"].append({"type": "function_call_output", "call_id": "t1", "output": "fine"})
    return body


def chat(prompts: list[str], stream: bool) -> dict[str, Any]:
    messages = [{"role": "user", "content": prompt} for prompt in prompts]
    return {"model": "m", "stream": stream, "tools": tools_of("chat"), "messages": messages}


def chat_call(prompt: str, arguments: str, result: bool) -> dict[str, Any]:
    body = chat([prompt], True)
    function = {"name": "bash", "arguments": arguments}
    body["messages"].append(
        {"role": "assistant", "content": None, "tool_calls": [{"id": "t1", "type": "function", "function": function}]}
    )
    if result:
        body["messages"].append({"role": "tool", "tool_call_id": "t1", "content": "fine"})
    return body


def gemini(prompts: list[str], stream: bool) -> dict[str, Any]:
    contents = [{"role": "user", "parts": [{"text": prompt}]} for prompt in prompts]
    return {"tools": tools_of("gemini"), "contents": contents}


def gemini_call(prompt: str, arguments: str, result: bool) -> dict[str, Any]:
    body = gemini([prompt], True)
    call = {"functionCall": {"name": "run_shell_command", "args": {"command": arguments}}}
    body["contents"].append({"role": "model", "parts": [call]})
    answer = {"functionResponse": {"name": "run_shell_command", "response": {"output": "fine"}}}
    body["contents"].append({"role": "user", "parts": [answer] if result else [{"text": "and?"}]})
    return body


def anthropic_tool(found: list[Any]) -> tuple[str, Any]:
    (block,) = (event["content_block"] for event in found if event.get("content_block", {}).get("type") == "tool_use")
    (given,) = (event["delta"]["partial_json"] for event in found if "partial_json" in event.get("delta", {}))
    assert found[-2]["delta"]["stop_reason"] == "tool_use"
    return block["name"], json.loads(given)


def responses_tool(found: list[Any]) -> tuple[str, Any]:
    (item,) = (item for item in found[-1]["response"]["output"] if item["type"] == "function_call")
    return item["name"], json.loads(item["arguments"])


def chat_tool(found: list[Any]) -> tuple[str, Any]:
    (call,) = (
        event["choices"][0]["delta"]["tool_calls"][0] for event in found if "tool_calls" in event["choices"][0]["delta"]
    )
    assert found[-1]["choices"][0]["finish_reason"] == "tool_calls"
    return call["function"]["name"], json.loads(call["function"]["arguments"])


def gemini_parts(found: list[Any]) -> list[Any]:
    return [part for event in found for part in event["candidates"][0]["content"]["parts"]]


def gemini_tool(found: list[Any]) -> tuple[str, Any]:
    (call,) = (part["functionCall"] for part in gemini_parts(found) if "functionCall" in part)
    return call["name"], call["args"]


SPEAKERS = {
    "anthropic": Speaker(
        "/v1/messages",
        anthropic,
        anthropic_call,
        lambda found: "".join(event.get("delta", {}).get("text", "") for event in found),
        anthropic_tool,
    ),
    "responses": Speaker(
        "/v1/responses",
        responses,
        responses_call,
        lambda found: "".join(event["delta"] for event in found if event["type"] == "response.output_text.delta"),
        responses_tool,
    ),
    "chat": Speaker(
        "/v1/chat/completions",
        chat,
        chat_call,
        lambda found: "".join(event["choices"][0]["delta"].get("content") or "" for event in found),
        chat_tool,
    ),
    "gemini": Speaker(
        "/v1beta/models/m:generateContent",
        gemini,
        gemini_call,
        lambda found: "".join(part.get("text", "") for part in gemini_parts(found)),
        gemini_tool,
        "/v1beta/models/m:streamGenerateContent?alt=sse",
    ),
}


@pytest.fixture(params=SPEAKERS)
def speaker(request: pytest.FixtureRequest) -> Speaker:
    return SPEAKERS[request.param]


def streamed(model: ModelServer, speaker: Speaker, body: Mapping[str, Any]) -> list[Any]:
    return events(post(model, speaker.stream_path or speaker.path, body))


def refused(model: ModelServer, speaker: Speaker, body: Mapping[str, Any]) -> tuple[int, str]:
    with pytest.raises(urllib.error.HTTPError) as error:
        streamed(model, speaker, body)
    with error.value as answer:
        return answer.code, json.loads(answer.read())["error"]["message"]


def test_the_model_says_what_the_newest_prompt_tells_it(model: ModelServer, speaker: Speaker):
    found = streamed(model, speaker, speaker.ask(["[[say one]]", "[[say two]][[say  three]]"], True))
    assert speaker.text(found) == "two three"
    assert model.history() == ["[[say one]]", "[[say two]][[say  three]]"]


def test_without_a_stream_it_says_the_same(model: ModelServer, speaker: Speaker):
    assert "hello you" in post(model, speaker.path, speaker.ask(["[[say hello you]]"], False))


def test_each_call_ends_a_round_and_its_result_begins_the_next(model: ModelServer, speaker: Speaker):
    prompt = "[[say first]] [[bash make]] [[say then]] [[bash test]] [[say last]]"
    found = streamed(model, speaker, speaker.ask([prompt], True))
    tool = next(iter(model.tools()))
    assert (speaker.text(found), speaker.call(found)) == ("first", (tool, {"command": "make"}))
    found = streamed(model, speaker, speaker.with_call(prompt, "make", True))
    assert (speaker.text(found), speaker.call(found)) == ("then", (tool, {"command": "test"}))
    assert [seen.text for seen in model.prompts()] == [prompt]


def test_calls_can_be_made_in_one_answer(model: ModelServer, speaker: Speaker):
    prompt = '[[call one|{"a": 1}]] [[also two|{"b": 2}]] [[also three]] [[say last]]'
    found = json.dumps(streamed(model, speaker, speaker.ask([prompt], True)))
    whole = post(model, speaker.path, speaker.ask([prompt], False))
    for text in (found, whole):
        assert [name for name in ("one", "two", "three") if f'"name": "{name}"' in text] == ["one", "two", "three"]


def test_a_call_without_a_result_is_refused(model: ModelServer, speaker: Speaker):
    code, text = refused(model, speaker, speaker.with_call("[[say hi]]", "make", False))
    assert code == 400
    assert "call" in text or "tool_use" in text


def test_an_error_is_answered_with_its_text(model: ModelServer, speaker: Speaker):
    assert refused(model, speaker, speaker.ask(["[[error 529 too much to do]]"], True)) == (529, "too much to do")
    assert refused(model, speaker, speaker.ask(["[[usage-limit enough for today]]"], True)) == (429, "enough for today")


def test_a_held_answer_waits_until_it_is_released(model: ModelServer, speaker: Speaker):
    body = speaker.ask(["[[say before]][[hold here]][[say after]]"], True)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(streamed, model, speaker, body)
        eventually(lambda: model.waiting("here") == 1)
        assert not answer.done()
        model.release("here")
        assert speaker.text(answer.result(10)) == "beforeafter"
    assert model.waiting("here") == 0


def test_an_answer_whose_agent_has_gone_no_longer_waits(model: ModelServer):
    body = json.dumps(anthropic(["[[hold here]]"], True)).encode()
    with socket.create_connection(("127.0.0.1", int(model.url.rpartition(":")[2]))) as agent:
        agent.sendall(b"POST /v1/messages HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        eventually(lambda: model.waiting("here"))
    eventually(lambda: not model.waiting("here"))


def test_a_server_that_closes_ends_held_answers():
    with ModelServer() as model, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(post, model, "/v1/messages", anthropic(["[[hold here]]"], True))
        eventually(lambda: model.waiting("here"))
        model.close()
        assert "message_stop" not in answer.result(10)


def test_what_the_agent_puts_around_a_prompt_is_left_out_and_the_rest_is_exact(model: ModelServer):
    prompt = "  !  two\n lines \\  "
    content = [{"type": "text", "text": "<system-reminder>\nnow\n</system-reminder>"}, {"type": "text", "text": prompt}]
    post(model, "/v1/messages", {**anthropic(["x"], True), "messages": [{"role": "user", "content": content}]})
    assert model.history() == [prompt]


def test_requests_on_the_side_are_kept_apart(model: ModelServer):
    body = {**anthropic(["Generate a title for: [[error 500 x]]"], False), "tools": []}
    assert "A title" in post(model, "/v1/messages", body)
    assert (model.history(), len(model.requests(side=True))) == ([], 1)


def test_a_repeated_request_is_no_new_prompt(model: ModelServer):
    post(model, "/v1/messages", anthropic(["hello"], True))
    post(model, "/v1/messages", anthropic(["hello"], True), {"X-Stainless-Retry-Count": "1"})
    assert [seen.text for seen in model.prompts()] == ["hello"]
    assert len(model.requests()) == 2


def test_a_request_that_is_repeated_after_an_error_is_no_new_prompt(model: ModelServer, speaker: Speaker):
    for _ in range(3):
        refused(model, speaker, speaker.ask(["[[error 500 sorry]]"], True))
    assert [seen.text for seen in model.prompts()] == ["[[error 500 sorry]]"]


def test_the_same_request_after_an_answer_is_a_new_prompt(model: ModelServer, speaker: Speaker):
    for _ in range(2):
        streamed(model, speaker, speaker.ask(["[[say hi]]"], True))
    assert [seen.text for seen in model.prompts()] == ["[[say hi]]", "[[say hi]]"]


def test_prompts_that_claude_puts_into_one_message_are_told_apart(model: ModelServer):
    content = [{"type": "text", "text": "one\n"}, {"type": "text", "text": "two\n"}]
    post(model, "/v1/messages", {**anthropic(["x"], True), "messages": [{"role": "user", "content": content}]})
    assert model.history() == ["one", "two\n"]


def test_tokens_are_counted_and_models_listed(model: ModelServer):
    assert json.loads(post(model, "/v1/messages/count_tokens", anthropic(["hello"], True)))["input_tokens"] > 0
    with urllib.request.urlopen(f"{model.url}/v1/models") as answer:
        assert json.load(answer)["data"]
    assert model.others() == ["POST /v1/messages/count_tokens", "GET /v1/models"]


def test_the_json_of_a_call_may_hold_brackets_and_directives():
    prompt = '[[call Tool|{"a": [[1]], "b": "[[say no]]"}]] [[say yes]]'
    assert directives(prompt) == [Step("call", 'Tool|{"a": [[1]], "b": "[[say no]]"}'), Step("say", "yes")]


def test_a_directive_that_is_not_closed_is_told():
    with pytest.raises(BadDirective, match="is not closed"):
        directives("[[say for ever")


def test_a_prompt_that_cannot_be_carried_out_fails_the_test():
    other = [{"type": "function", "function": {"name": "other"}}]
    with pytest.raises(AssertionError, match="expected one of the tools"), ModelServer() as model:
        assert refused(model, SPEAKERS["chat"], {**chat(["[[bash make]]"], True), "tools": other})[0] == 400
