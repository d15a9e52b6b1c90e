"""From what the model does to the four dialects of answers. Each writer makes events; the server sends them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

from tests.agents import reading
from tests.agents.directives import Call, Conversation

Event = tuple[str, Mapping[str, Any] | str]
"""The event's name, or nothing where the dialect has no names; and its data."""
RESETS_IN_S = 3600


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is an error."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str]


class Writer(Protocol):
    def __init__(self, model: str) -> None: ...
    def begin(self) -> Iterator[Event]: ...
    def text(self, text: str) -> Iterator[Event]: ...
    def call(self, call: Call) -> Iterator[Event]: ...
    def end(self) -> Iterator[Event]: ...
    def whole(self, text: str, calls: tuple[Call, ...]) -> Mapping[str, Any]: ...
    @staticmethod
    def refusal(status: int, text: str) -> Refusal: ...
    @staticmethod
    def limit(text: str) -> Refusal: ...


class Anthropic:
    USAGE: Mapping[str, int] = {
        "input_tokens": 100,
        "output_tokens": 20,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }

    def __init__(self, model: str) -> None:
        self.model = model
        self.block = 0
        self.text_is_open = False
        self.called = False

    def begin(self) -> Iterator[Event]:
        yield "message_start", {"type": "message_start", "message": self._message([], None)}

    def text(self, text: str) -> Iterator[Event]:
        if not self.text_is_open:
            self.text_is_open = True
            yield self._event("content_block_start", content_block={"type": "text", "text": ""})
        yield self._event("content_block_delta", delta={"type": "text_delta", "text": text})

    def call(self, call: Call) -> Iterator[Event]:
        yield from self._close_text()
        self.called = True
        block = self._block(call) | {"input": {}}
        yield self._event("content_block_start", content_block=block)
        given = json.dumps(call.arguments)
        yield self._event("content_block_delta", delta={"type": "input_json_delta", "partial_json": given})
        yield self._event("content_block_stop")
        self.block += 1

    def end(self) -> Iterator[Event]:
        yield from self._close_text()
        delta = {"stop_reason": "tool_use" if self.called else "end_turn", "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}}
        yield "message_stop", {"type": "message_stop"}

    def whole(self, text: str, calls: tuple[Call, ...]) -> Mapping[str, Any]:
        content: list[Mapping[str, Any]] = [{"type": "text", "text": text}] if text else []
        return self._message([*content, *map(self._block, calls)], "tool_use" if calls else "end_turn")

    @staticmethod
    def refusal(status: int, text: str) -> Refusal:
        kinds = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}
        kind = "overloaded_error" if status == 529 else kinds.get(status, "api_error")
        return Refusal(status, {"type": "error", "error": {"type": kind, "message": text}}, {})

    @staticmethod
    def limit(text: str) -> Refusal:
        headers = {
            "x-should-retry": "false",
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-reset": str(int(time.time()) + RESETS_IN_S),
            "anthropic-ratelimit-unified-representative-claim": "five_hour",
            "anthropic-ratelimit-unified-overage-status": "rejected",
        }
        return Refusal(429, Anthropic.refusal(429, text).body, headers)

    def _event(self, name: str, **more: Any) -> Event:
        return name, {"type": name, "index": self.block, **more}

    def _close_text(self) -> Iterator[Event]:
        if self.text_is_open:
            self.text_is_open = False
            yield self._event("content_block_stop")
            self.block += 1

    def _message(self, content: list[Mapping[str, Any]], why: str | None) -> Mapping[str, Any]:
        return {
            "id": f"msg_{uuid4().hex}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": why,
            "stop_sequence": None,
            "usage": self.USAGE,
        }

    @staticmethod
    def _block(call: Call) -> dict[str, Any]:
        return {"type": "tool_use", "id": f"toolu_{uuid4().hex[:24]}", "name": call.tool, "input": call.arguments}


class Responses:
    USAGE: Mapping[str, Any] = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 120,
    }

    def __init__(self, model: str) -> None:
        self.model = model
        self.id = f"resp_{uuid4().hex}"
        self.number = -1
        self.output: list[Mapping[str, Any]] = []
        self.message = ""
        self.said = ""

    def begin(self) -> Iterator[Event]:
        yield self._event("response.created", response=self._response("in_progress"))

    def text(self, text: str) -> Iterator[Event]:
        if not self.message:
            self.message = f"msg_{uuid4().hex}"
            item = {"id": self.message, "type": "message", "role": "assistant", "status": "in_progress", "content": []}
            yield self._event("response.output_item.added", output_index=len(self.output), item=item)
            yield self._part("response.content_part.added", part=self._text_part(""))
        self.said += text
        yield self._part("response.output_text.delta", delta=text)

    def call(self, call: Call) -> Iterator[Event]:
        yield from self._close_text()
        item = self._call_item(call)
        place = {"output_index": len(self.output), "item_id": item["id"]}
        begun = {**item, "arguments": "", "status": "in_progress"}
        yield self._event("response.output_item.added", output_index=len(self.output), item=begun)
        yield self._event("response.function_call_arguments.delta", **place, delta=item["arguments"])
        yield self._event("response.function_call_arguments.done", **place, arguments=item["arguments"])
        yield self._event("response.output_item.done", output_index=len(self.output), item=item)
        self.output.append(item)

    def end(self) -> Iterator[Event]:
        yield from self._close_text()
        yield self._event("response.completed", response=self._response("completed"))

    def whole(self, text: str, calls: tuple[Call, ...]) -> Mapping[str, Any]:
        for _ in self.text(text) if text else ():
            pass
        for _ in self._close_text():
            pass
        self.output.extend(map(self._call_item, calls))
        return self._response("completed")

    @staticmethod
    def refusal(status: int, text: str) -> Refusal:
        kind = "invalid_request_error" if status < 500 else "server_error"
        return Refusal(status, {"error": {"type": kind, "code": None, "param": None, "message": text}}, {})

    @staticmethod
    def limit(text: str) -> Refusal:
        error = {
            "type": "usage_limit_reached",
            "message": text,
            "plan_type": "plus",
            "resets_at": int(time.time()) + RESETS_IN_S,
            "resets_in_seconds": RESETS_IN_S,
        }
        return Refusal(429, {"error": error}, {})

    def _event(self, name: str, **more: Any) -> Event:
        self.number += 1
        return name, {"type": name, "sequence_number": self.number, **more}

    def _part(self, name: str, **more: Any) -> Event:
        return self._event(name, item_id=self.message, output_index=len(self.output), content_index=0, **more)

    def _close_text(self) -> Iterator[Event]:
        if not self.message:
            return
        part = self._text_part(self.said)
        item = {"id": self.message, "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        yield self._part("response.output_text.done", text=self.said)
        yield self._part("response.content_part.done", part=part)
        yield self._event("response.output_item.done", output_index=len(self.output), item=item)
        self.output.append(item)
        self.message = self.said = ""

    def _response(self, status: str) -> Mapping[str, Any]:
        return {
            "id": self.id,
            "object": "response",
            "created_at": int(time.time()),
            "status": status,
            "model": self.model,
            "output": list(self.output),
            "usage": self.USAGE if status == "completed" else None,
            "error": None,
            "incomplete_details": None,
        }

    @staticmethod
    def _text_part(text: str) -> Mapping[str, Any]:
        return {"type": "output_text", "text": text, "annotations": []}

    @staticmethod
    def _call_item(call: Call) -> dict[str, Any]:
        namespace, _, name = call.tool.rpartition("/")
        return {
            "id": f"fc_{uuid4().hex}",
            "type": "function_call",
            "status": "completed",
            "call_id": f"call_{uuid4().hex[:24]}",
            "name": name,
            "arguments": json.dumps(call.arguments),
            **({"namespace": namespace} if namespace else {}),
        }


class Chat:
    USAGE: Mapping[str, int] = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}

    def __init__(self, model: str) -> None:
        self.model = model
        self.id = f"chatcmpl-{uuid4().hex}"
        self.called = 0

    def begin(self) -> Iterator[Event]:
        yield self._chunk({"role": "assistant", "content": ""})

    def text(self, text: str) -> Iterator[Event]:
        yield self._chunk({"content": text})

    def call(self, call: Call) -> Iterator[Event]:
        self.called += 1
        yield self._chunk({"tool_calls": [{"index": self.called - 1, **self._function(call)}]})

    def end(self) -> Iterator[Event]:
        yield self._chunk({}, "tool_calls" if self.called else "stop", usage=self.USAGE)
        yield "", "[DONE]"

    def whole(self, text: str, calls: tuple[Call, ...]) -> Mapping[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = [self._function(call) for call in calls]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self.USAGE}

    @staticmethod
    def refusal(status: int, text: str) -> Refusal:
        return Responses.refusal(status, text)

    @staticmethod
    def limit(text: str) -> Refusal:
        error = {"type": "insufficient_quota", "code": "insufficient_quota", "param": None, "message": text}
        wait = re.search(r"again in (\d+) s", text)
        return Refusal(429, {"error": error}, {"retry-after": wait[1]} if wait else {"x-should-retry": "false"})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": int(time.time()), "model": self.model}

    def _chunk(self, delta: Mapping[str, Any], why: str | None = None, **more: Any) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": why}
        return "", {**self._head("chat.completion.chunk"), "choices": [choice], **more}

    @staticmethod
    def _function(call: Call) -> dict[str, Any]:
        function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
        return {"id": f"call_{uuid4().hex[:24]}", "type": "function", "function": function}


class Gemini:
    USAGE: Mapping[str, int] = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}

    def __init__(self, model: str) -> None:
        self.model = model

    def begin(self) -> Iterator[Event]:
        yield from ()

    def text(self, text: str) -> Iterator[Event]:
        yield "", self._answer([{"text": text}])

    def call(self, call: Call) -> Iterator[Event]:
        yield "", self._answer([self._part(call)])

    def end(self) -> Iterator[Event]:
        yield "", self._answer([{"text": ""}], "STOP")

    def whole(self, text: str, calls: tuple[Call, ...]) -> Mapping[str, Any]:
        spoken: list[Mapping[str, Any]] = [{"text": text}] if text else []
        return self._answer([*spoken, *map(self._part, calls)], "STOP")

    @staticmethod
    def refusal(status: int, text: str) -> Refusal:
        names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED"}
        name = names.get(status, "UNAVAILABLE" if status >= 500 else "FAILED_PRECONDITION")
        return Refusal(status, {"error": {"code": status, "message": text, "status": name}}, {})

    @staticmethod
    def limit(text: str) -> Refusal:
        quota = {
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaId": "GenerateRequestsPerHourPerProjectPerModel", "quotaMetric": "requests"}],
        }
        retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{RESETS_IN_S}s"}
        error = {"code": 429, "message": text, "status": "RESOURCE_EXHAUSTED", "details": [quota, retry]}
        return Refusal(429, {"error": error}, {})

    def _answer(self, own: list[Mapping[str, Any]], why: str | None = None) -> Mapping[str, Any]:
        candidate = {"index": 0, "content": {"role": "model", "parts": own}, **({"finishReason": why} if why else {})}
        return {"candidates": [candidate], "usageMetadata": self.USAGE, "modelVersion": self.model}

    @staticmethod
    def _part(call: Call) -> Mapping[str, Any]:
        return {"functionCall": {"name": call.tool, "args": call.arguments}}


@dataclass(frozen=True, slots=True)
class Dialect:
    name: str
    read: Callable[[reading.Body], Conversation]
    writer: type[Writer]


DIALECTS = {
    "/messages": Dialect("anthropic", reading.anthropic, Anthropic),
    "/responses": Dialect("responses", reading.responses, Responses),
    "/chat/completions": Dialect("chat", reading.chat, Chat),
    ":generateContent": Dialect("gemini", reading.gemini, Gemini),
    ":streamGenerateContent": Dialect("gemini", reading.gemini, Gemini),
}
"""By how the path of a request ends."""
