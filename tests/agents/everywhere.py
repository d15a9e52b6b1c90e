"""What an agent does is told alike, and soon, by all who tell it: ``hitch ps``, the API, the WebSocket and the story.

    with everywhere(ground, agent_home("claude")) as told:
        told.becomes("waiting")
        told.send("[[bash make]]")
        told.becomes("blocked", "permission", message="make")
        told.signals(signal.SIGTERM)
        told.ends("failed", code=143)

A client of the hub listens all the time, so waiting costs next to nothing. It must hear what is awaited within
``SOON_S`` of the moment at which the keeper has learned it, and within ``SOON_S`` of that the others must say the same.
"""

from __future__ import annotations

import json
import os
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, unix_connect

from hitchpost.hub import client as hub_client
from hitchpost.system.shortpath import ShortPath
from tests.agents.driving import LONG_S, Driven
from tests.agents.homes import AgentHome
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.support import eventually

SOON_S = 1.0
"""Not counting the time for which somebody waited for a processor: others may use this machine, too."""
SAID = ("state", "status", "attention", "headline", "detail", "report", "refusal", "takes_prompt", "conversation")
ENDED = ("state", "status", "label", "headline", "exit", "survivors")
PRESSURE = Path("/proc/pressure/cpu")
SAMPLE_S = 0.1

Shape = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Heard:
    """An event, and when it came (seconds since the epoch)."""

    event: dict[str, Any]
    at: float

    @property
    def shape(self) -> Shape:
        return self.event.get("session") or {}


class Listener:
    """A WebSocket client in a thread of its own, which remembers all that it hears."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._heard: list[Heard] = []
        self._waits: list[tuple[float, float]] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            self._waits.append((time.time(), _waited_for_processors()))
            try:
                message = self._connection.recv(timeout=SAMPLE_S)
            except TimeoutError:
                continue
            except ConnectionClosed:
                return
            event = json.loads(message) if isinstance(message, str) else {}
            self._heard.append(Heard(event, time.time()))

    def newest(self, session: str) -> Heard | None:
        """The last event that had the session as it was then."""
        told = (heard for heard in reversed(self._heard) if heard.shape and heard.event["sessionId"] == session)
        return next(told, None)

    def first(self, session: str, fits: Callable[[Shape], bool]) -> Heard:
        """The oldest event that had the session so."""
        told = (heard for heard in self._heard if heard.shape and heard.event["sessionId"] == session)
        return next(heard for heard in told if fits(heard.shape))

    def exit_of(self, session: str, run: int) -> dict[str, Any] | None:
        """What was told of the end of a run."""
        wanted = ("terminal.exit", session, run)
        events = [heard.event for heard in list(self._heard)]
        return next(
            (event for event in events if (event.get("type"), event.get("sessionId"), event.get("run")) == wanted), None
        )

    def soon_s(self, since: float) -> float:
        """How long something may take that began at ``since``."""
        at = bisect_right([moment for moment, _ in self._waits], since) - 1
        return SOON_S + _waited_for_processors() - self._waits[max(at, 0)][1]

    def close(self) -> None:
        self._connection.close()
        self._thread.join()


@dataclass(slots=True)
class Everywhere:
    driven: Driven
    hub: HubProcess
    listener: Listener
    since: float = 0.0
    """What was told before this moment is not waited for."""

    # what a person does: what is awaited next comes after it ----------------------------------------------------------

    def send(self, text: str, *options: str) -> dict[str, Any]:
        self.since = time.time()
        return self.driven.send(text, *options)

    def keys(self, *pressed: bytes, apart_s: float = 0.0) -> None:
        self.since = time.time()
        self.driven.keys(*pressed, apart_s=apart_s)

    def leaves(self, attention: str, key: bytes) -> None:
        """See ``Driven.leaves``."""
        self.since = time.time()
        self.driven.leaves(attention, key)

    def answer(self, choice: str, **fields: str) -> dict[str, Any]:
        """Through the API."""
        self.since = time.time()
        body = {"choice": choice, **fields}
        answered: dict[str, Any] = self.hub.ask("POST", f"/api/sessions/{self.driven.truth.id}/answer", body)
        return answered

    def signals(self, number: int) -> None:
        """To the agent's own process."""
        self.since = time.time()
        os.kill(self.driven.truth.agent_pid(self.driven.run_number), number)

    # what is told -------------------------------------------------------------------------------------------------

    def becomes(self, attention: str, kind: str | None = None, *, message: str = "", **fields: Any) -> dict[str, Any]:
        """Wait until the agent is so, and everybody says it. ``fields`` are those of the report, which is returned."""

        def fits(shape: Shape) -> bool:
            report = shape.get("report") or {}
            return (
                shape.get("attention") == attention
                and (kind is None or (report.get("kind") or "") == kind)
                and message in (report.get("message") or "")
                and all(report.get(name) == item for name, item in fields.items())
                and _seconds(report.get("at")) >= self.since - 0.001  # it is written with milliseconds
            )

        what = f"{self.driven.home.name} to be {attention} {kind or ''} {message} {fields or ''}"
        shape = self._alike(fits, SAID, what, lambda shape: _seconds(shape["report"]["at"]))
        report: dict[str, Any] = shape["report"]
        eventually(lambda: self._is_in_story(report), SOON_S, what=f"the story to have {report}")
        assert report["source"]
        return report

    def ends(self, state: str, *, code: int | None = None, signal: str | None = None) -> Shape:
        """Wait until the run has ended, and everybody says how. Nothing of the agent may be left."""
        run = self.driven.run_number

        def fits(shape: Shape) -> bool:
            end = shape.get("exit") or {}
            return shape.get("run") == run and shape.get("state") == state and (end["code"], end["signal"]) == expected

        expected = (code, signal)
        what = f"{self.driven.home.name} to end: {state}, {code if signal is None else signal}"
        shape = self._alike(fits, ENDED, what, lambda shape: _seconds(shape["state_changed_at"]))
        exit_event = self.listener.exit_of(self.driven.truth.id, run)
        assert exit_event is not None
        assert exit_event.get("signal") == signal
        (line,) = (line for line in self.driven.truth.story() if line.get("to") == state and line["run"] == run)
        assert (line["evidence"].get("code"), line["evidence"].get("signal")) == expected, line
        self.driven.truth.ended(run)
        assert shape["survivors"] == 0
        return shape

    def _alike(
        self, fits: Callable[[Shape], bool], names: tuple[str, ...], what: str, told: Callable[[Shape], float]
    ) -> Shape:
        """The session as the WebSocket has it, as soon as it fits, and ``hitch ps`` and the API have the same."""

        def heard() -> Heard | None:
            newest = self.listener.newest(self.driven.truth.id)
            return newest if newest is not None and fits(newest.shape) else None

        try:
            last = eventually(heard, LONG_S)
        except AssertionError:
            raise AssertionError(f"waited in vain for {what}; {self._others()}") from None
        at = told(last.shape)
        first = self.listener.first(self.driven.truth.id, lambda shape: fits(shape) and told(shape) == at)
        late_s = first.at - at
        assert late_s <= self.listener.soon_s(at), f"{what}: a client was told {late_s:.1f} s late"
        while True:
            others = {"ps": self.driven.shown(), "API": self.hub.ask("GET", f"/api/sessions/{self.driven.truth.id}")}
            newest = self.listener.newest(self.driven.truth.id)
            assert newest is not None
            wanted = {name: newest.shape[name] for name in names}
            differ = {
                who: {name: (shape[name], wanted[name]) for name in names if shape[name] != wanted[name]}
                for who, shape in others.items()
            }
            if fits(newest.shape) and not any(differ.values()):
                return newest.shape
            assert time.time() - last.at <= self.listener.soon_s(last.at), f"{what}: not told alike: {differ}"

    def _is_in_story(self, report: dict[str, Any]) -> bool:
        """With its evidence: who said it, and what. What was said before, and again at once, is in it once."""
        wanted = {name: item for name, item in report.items() if item and name not in ("at", "ends_at")}
        lines = [line for line in self.driven.truth.story() if line["event"] == "attention"]
        return any(
            all(line.get(name) == item for name, item in wanted.items())
            and (line is lines[-1] or _seconds(line["at"]) >= _seconds(report["at"]) - 0.001)
            for line in lines[-5:]
        )

    def _others(self) -> str:
        newest = self.listener.newest(self.driven.truth.id)
        names = ("state", "label", "attention", "report", "exit")
        heard = None if newest is None else {name: newest.shape.get(name) for name in names}
        seen = self.driven.shown()
        return f"the client has {heard}, ps has { {name: seen[name] for name in names} }"


@contextmanager
def everywhere(ground: Ground, home: AgentHome, *options: str, extra: tuple[str, ...] = ()) -> Iterator[Everywhere]:
    """``hitch run AGENT`` with a hub beside it, and a client that has listened before there was a session."""
    with hub_with(ground, home) as hub, listening(hub) as listener:
        yield Everywhere(Driven.begin(ground, home, *options, extra=extra), hub, listener)


@contextmanager
def listening(hub: HubProcess) -> Iterator[Listener]:
    with (
        ShortPath(hub.home, hub_client.SOCKET) as path,
        unix_connect(path, "ws://hub/ws", max_size=None, compression=None) as connection,
    ):
        listener = Listener(connection)
        try:
            yield listener
        finally:
            listener.close()


@contextmanager
def hub_with(ground: Ground, home: AgentHome) -> Iterator[HubProcess]:
    """A hub whose sessions find the agent and its home."""
    hub = HubProcess(ground)
    start_with(hub, home)
    try:
        yield hub
    finally:
        hub.stop()


def start_with(hub: HubProcess, home: AgentHome) -> None:
    hub.start("env", *(f"{name}={text}" for name, text in home.env.items()))


def _seconds(text: str | None) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _waited_for_processors() -> float:
    """Seconds since boot in which some process was ready to run and had no processor; 0 where that is not told."""
    try:
        some = PRESSURE.read_text().split("\n")[0]
    except OSError:
        return 0.0
    return int(some.rpartition("total=")[2]) / 1e6
