"""HTTP for the scripted model: reads a request, plays the round that is due, in the dialect of the request."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import urlsplit

from tests.agents.directives import BadDirective, Conversation, Round, play
from tests.agents.writing import DIALECTS, Dialect, Event, Refusal, Writer

MODELS = ("scripted", "claude-sonnet-4-5", "gpt-5", "gemini-2.5-pro")
TRICKLE_PAUSE_S = 0.1
SESSION_HEADERS = ("x-claude-code-session-id", "thread-id", "x-session-id", "agent-session-id")


class Gone(Exception):
    """Raised when the agent has hung up, or the server closes."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request of an agent, with all that came before in its conversation."""

    at: float
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    conversation: Conversation
    is_retry: bool = False
    """Whether the agent says that it asks again, or asks the same again after an error."""

    @property
    def session(self) -> str:
        """The agent's own id of the conversation; nothing when it does not tell."""
        return next((self.headers[name] for name in SESSION_HEADERS if name in self.headers), "")

    @property
    def question(self) -> object:
        """What two requests have in common when the second repeats the first."""
        return self.session, self.conversation.prompts, self.conversation.results


class Stage(Protocol):
    """What the answers need of the model server."""

    def saw(self, request: Request) -> None: ...
    def refused(self, request: Request) -> None: ...
    def saw_other(self, line: str) -> None: ...
    def failed(self, text: str) -> None: ...
    def wait_at(self, name: str, agent: socket.socket) -> None: ...
    def pause(self, seconds: float) -> None: ...


class HttpServer(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 64

    def __init__(self, model: Stage) -> None:
        self.model = model
        self._connections: set[socket.socket] = set()
        self._connections_lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._connections_lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._connections_lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        with self._connections_lock:
            for connection in self._connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # the agent was first

    def handle_error(self, request: Any, client_address: Any) -> None:
        self.model.failed(traceback.format_exc())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HttpServer

    def log_message(self, *_: object) -> None:
        pass

    def handle(self) -> None:
        try:
            super().handle()
        except (Gone, ConnectionError):
            self.close_connection = True

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.server.model.saw_other(f"{self.command} {path}")
        if path.rstrip("/").endswith("/models"):
            rows = [{"id": name, "object": "model", "type": "model", "display_name": name} for name in MODELS]
            names = [{"name": f"models/{name}"} for name in MODELS]
            self._send(200, {"object": "list", "data": rows, "models": names, "has_more": False})
        else:
            self._send(404, {"error": {"type": "not_found_error", "message": f"nothing at {path}"}})

    def do_POST(self) -> None:
        raw = self._body()
        path = urlsplit(self.path).path
        dialect = next((dialect for end, dialect in DIALECTS.items() if path.endswith(end)), None)
        if dialect is not None:
            self._answer(dialect, path, json.loads(raw))
            return
        self.server.model.saw_other(f"POST {path}")
        if path.endswith(("/count_tokens", ":countTokens")):
            tokens = max(1, len(raw) // 4)
            self._send(200, {"input_tokens": tokens, "totalTokens": tokens})
        else:
            self._send(404, {"error": {"type": "not_found_error", "message": f"nothing at {path}"}})

    def _answer(self, dialect: Dialect, path: str, body: Mapping[str, Any]) -> None:
        model = self.server.model
        conversation = dialect.read(body)
        headers = {name.lower(): value for name, value in self.headers.items()}
        retry = headers.get("x-stainless-retry-count", "0") != "0"
        request = Request(time.time(), path, headers, body, conversation, retry)
        model.saw(request)
        writer = dialect.writer(str(body.get("model") or path.rpartition("models/")[2].partition(":")[0]))
        if conversation.problem:
            self._refuse(request, writer.refusal(400, conversation.problem))
            return
        try:
            due = play(conversation)
        except BadDirective as wrong:
            model.failed(f"{wrong} (prompt: {conversation.prompts[-1]!r})")
            self._refuse(request, writer.refusal(400, str(wrong)))
            return
        for step in due.steps:
            if step.kind in ("error", "usage-limit"):
                for hold in due.steps[: due.steps.index(step)]:
                    if hold.kind == "hold":
                        model.wait_at(hold.text, self.connection)
                if step.kind == "usage-limit":
                    self._refuse(request, writer.limit(step.text))
                else:
                    status, _, text = step.text.partition(" ")
                    self._refuse(request, writer.refusal(int(status), text or f"scripted error {status}"))
                return
        if body.get("stream") or path.endswith(":streamGenerateContent"):
            self._stream(writer, due)
        else:
            self._send(200, writer.whole(self._text(conversation, body, due), due.calls))

    def _stream(self, writer: Writer, due: Round) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in self._play(writer, due):
            name, data = event
            text = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write((f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode())

    def _play(self, writer: Writer, due: Round) -> Iterator[Event]:
        yield from writer.begin()
        for step in due.steps:
            if step.kind == "hold":
                self.server.model.wait_at(step.text, self.connection)
            elif step.kind == "trickle":
                for number in range(round(float(step.text) / TRICKLE_PAUSE_S)):
                    yield from writer.text(f"word{number} ")
                    self.server.model.pause(TRICKLE_PAUSE_S)
            else:
                yield from writer.text(step.text)
        for call in due.calls:
            yield from writer.call(call)
        yield from writer.end()

    def _text(self, conversation: Conversation, body: Mapping[str, Any], due: Round) -> str:
        """All that the model says, once it has waited for what it should."""
        if conversation.side and "json" in str((body.get("generationConfig") or {}).get("responseMimeType")):
            # Gemini CLI asks which model to take, who speaks next, and whether it goes in circles.
            return json.dumps(
                {
                    "reasoning": "scripted",
                    "model_choice": "flash",
                    "next_speaker": "user",
                    "complexity_score": 1,
                    "complexity_reasoning": "scripted",
                    "unproductive_state_confidence": 0,
                    "unproductive_state_analysis": "scripted",
                }
            )
        for step in due.steps:
            if step.kind == "hold":
                self.server.model.wait_at(step.text, self.connection)
        return " ".join(step.text for step in due.steps if step.kind == "say")

    def _refuse(self, request: Request, refusal: Refusal) -> None:
        self.server.model.refused(request)
        self._send(refusal.status, refusal.body, refusal.headers)

    def _send(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            raw = b"".join(iter(self._chunk, b""))
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(raw) if self.headers.get("Content-Encoding") == "gzip" else raw

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline().split(b";")[0], 16)
        data = self.rfile.read(size)
        self.rfile.readline()
        return data
