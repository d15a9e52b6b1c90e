"""A scripted model on loopback, for real agents: each prompt says in directives what the model does.

It speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini. Like the real ones it refuses a
history with a tool call that has no result. Requests that an agent makes for purposes of its own (a title, which model
to take) are answered harmlessly and kept apart. ``tests.agents.directives`` has the directives.

    with ModelServer() as model:
        ... start an agent with model.url, give it the prompt "[[hold here]] [[say hello]]" ...
        eventually(lambda: model.waiting("here"))
        model.release("here")
        assert model.history() == ["[[hold here]] [[say hello]]"]
"""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from tests.agents.answering import Gone, HttpServer, Request
from tests.agents.directives import Schema


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as it reached the model, and when (seconds since the epoch)."""

    text: str
    at: float


@dataclass(slots=True)
class _Hold:
    """Where answers wait. Each waiting answer listens at a socket of its own."""

    released: bool
    wakers: set[socket.socket]


class ModelServer:
    """Runs from ``with`` to its end, in threads of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._others: list[str] = []
        self._refused: set[object] = set()
        self._holds: dict[str, _Hold] = {}
        self._errors: list[str] = []
        self._closed = threading.Event()
        self._http = HttpServer(self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self._errors:
            raise AssertionError("the model server failed:\n" + "\n".join(self._errors))

    def close(self) -> None:
        """Ends all answers and threads. An agent that is still there finds nobody."""
        self._closed.set()
        with self._lock:
            names = list(self._holds)
        for name in names:
            self.release(name)
        self._http.shutdown()
        self._http.hang_up()
        self._http.server_close()
        self._thread.join()

    # What the test asks.

    def requests(self, side: bool = False) -> list[Request]:
        """The requests of the conversations, or those on the side."""
        with self._lock:
            return [request for request in self._requests if request.conversation.side == side]

    def prompts(self) -> list[Prompt]:
        """The newest prompt of each request that brought one: not of those that bring a tool's result or try again."""
        return [
            Prompt(request.conversation.prompts[-1], request.at)
            for request in self.requests()
            if request.conversation.prompts and not request.conversation.results and not request.is_retry
        ]

    def history(self, last: bool = True) -> list[str]:
        """The prompts of the newest request, or of the first one, oldest first; nothing when there was none."""
        requests = self.requests()
        return list(requests[-1 if last else 0].conversation.prompts) if requests else []

    def tools(self) -> Mapping[str, Schema]:
        """What the newest request offered, with the schemas of the arguments."""
        requests = self.requests()
        return requests[-1].conversation.tools if requests else {}

    def others(self) -> list[str]:
        """Method and path of requests for anything but an answer: models, telemetry."""
        with self._lock:
            return list(self._others)

    def waiting(self, name: str) -> int:
        """How many answers wait at ``[[hold NAME]]`` now, with an agent that still listens."""
        with self._lock:
            return len(self._holds[name].wakers) if name in self._holds else 0

    def release(self, name: str) -> None:
        """Lets all go on that wait at ``[[hold NAME]]``, now and later: use each name for one place."""
        with self._lock:
            hold = self._holds.setdefault(name, _Hold(False, set()))
            hold.released = True
            for waker in hold.wakers:
                waker.send(b"!")

    # What the threads of the answers use.

    def saw(self, request: Request) -> None:
        with self._lock:
            if request.question in self._refused:
                request = replace(request, is_retry=True)
            self._refused.discard(request.question)
            self._requests.append(request)

    def refused(self, request: Request) -> None:
        with self._lock:
            self._refused.add(request.question)

    def saw_other(self, line: str) -> None:
        with self._lock:
            self._others.append(line)

    def failed(self, text: str) -> None:
        with self._lock:
            self._errors.append(text)

    def wait_at(self, name: str, agent: socket.socket) -> None:
        """Raises ``Gone`` when the agent hangs up before the release."""
        listener, waker = socket.socketpair()
        with listener, waker:
            with self._lock:
                hold = self._holds.setdefault(name, _Hold(False, set()))
                if hold.released:
                    return
                hold.wakers.add(waker)
            try:
                ready, _, _ = select.select([listener, agent], [], [])
            finally:
                with self._lock:
                    hold.wakers.discard(waker)
        if agent in ready or self._closed.is_set():
            raise Gone

    def pause(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise Gone
