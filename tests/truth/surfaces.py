"""Every place where a person or a program reads words about sessions, and when two of them contradict each other."""

from __future__ import annotations

import glob
import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import unix_connect

from hitchpost.cli import ps
from hitchpost.hub import client as hub_client
from hitchpost.model.record import ALL
from hitchpost.ops.views.listing import listing
from hitchpost.ops.views.services import NOBODY_KNOWS
from hitchpost.ops.views.table import HEADER
from hitchpost.store.index import agent_state_of
from hitchpost.system.shortpath import ShortPath
from tests.support import Hitch

Words = dict[str, Any]
"""What one surface says of one session, by field. Surfaces need not say all; what two of them say can be compared."""

GONE: Words = {"there": False}
FIELDS = ("status", "state", "record", "run", "session_alive", "sandbox_alive")
COUNTS = "how many"
RUNNING_CLOCK = re.compile(r" \((idle|blocked) [^)]*\)")
PUSH_WINDOW_S = 4.0
"""How long after an event the newest message of a WebSocket may be older than the truth.

What a keeper or the kernel tells is there within milliseconds; what nobody tells, like a process that a signal has
stopped, is found by the hub's own look at the living, which comes every two seconds. The rest is for a machine on which
every process waits for its turn.
"""


def words_of(shape: Mapping[str, Any]) -> Words:
    return {"there": True, "label": label_of(shape["label"]), **{field: shape[field] for field in FIELDS}}


def label_of(text: str) -> str:
    """Without the seconds that run on while one looks."""
    return RUNNING_CLOCK.sub("", text)


def view_words(view: dict[str, Any]) -> Words:
    """CR-070's view."""
    alive = {field: view[field] for field in ("session_alive", "sandbox_alive")}
    return {"there": True, "agent_state": view["state"], **alive}


@dataclass(frozen=True, slots=True)
class Surfaces:
    """The surfaces of one home. Each is asked for all of its sessions at once, or for each of ``known``."""

    home: str
    known: dict[str, str]
    """Id and name of every session that there ever was."""

    def all(self) -> dict[str, Callable[[], dict[str, Words]]]:
        return {
            "ps --json": self.ps_json,
            "GET /api/sessions": self.api_sessions,
            "the files": self.files,
            "ps": self.ps_table,
            "status": self.status,
            "GET /api/agents": self.api_agents,
            "explain": self.explain,
            "GET /api/sessions/ID": self.api_session,
            "GET /api/status": self.api_status,
            "services": self.services,
            "GET /api/sessions/ID/explain": self.api_explain,
            "GET /api/agents/ID": self.api_agent,
        }

    def written(self) -> dict[str, list[int]]:
        """When something was last written about each session."""
        found: dict[str, list[int]] = {}
        for session in self.known:
            folder = f"{self.home}/sessions/{session}"
            for path in (folder, *sorted(glob.glob(f"{folder}/runs/*")), *sorted(glob.glob(f"{folder}/runs/*/*.lock"))):
                with suppress(OSError):
                    found.setdefault(session, []).append(os.stat(path).st_mtime_ns)
        return found

    def _complete(self, said: dict[str, Words]) -> dict[str, Words]:
        return {session: said.get(session, GONE) for session in self.known} | said

    def _ask(self, path: str) -> Any:
        return hub_client.ask(self.home, "GET", path, timeout_s=60)

    # the command, with a hub and without -------------------------------------------------------------------------

    def ps_json(self) -> dict[str, Words]:
        text = ps.from_hub(self.home, "/api/sessions?all=True") or ps.shapes_from_files(self.home, ALL)
        return self._complete({row["id"]: words_of(row) for row in json.loads(text)})

    def ps_table(self) -> dict[str, Words]:
        text = ps.table_from_hub(self.home, ALL, colour=False)
        text = text or ps.table_from_files(self.home, ALL, colour=False)  # type: ignore[assignment]
        assert text is not None
        head, *lines = bytes(text).decode().splitlines()
        columns = [word for word in HEADER if word in head]
        starts = [head.index(word) for word in columns] + [len(head) + 1000]
        rows = [[line[a:b].strip() for a, b in pairwise(starts)] for line in lines]
        labels = {row[columns.index("NAME")]: row[columns.index("STATUS")] for row in rows}
        said = {
            session: {"there": True, "label": label_of(labels[name])}
            for session, name in self.known.items()
            if name in labels
        }
        return self._complete(said)

    def files(self) -> dict[str, Words]:
        rows = listing(self.home, records=ALL, shapes=True)
        said = {row.id: words_of(cast(Mapping[str, Any], row.shape)) for row in rows}
        for row in rows:
            said[row.id]["agent_state"] = agent_state_of(row.line)
        return self._complete(said)

    def status(self) -> dict[str, Words]:
        told = Hitch().here("status", "--json").json()
        said = {row["id"]: words_of(row) for row in told["sessions"]}
        return said | {COUNTS: {"counts": Counter(told["counts"])}}

    def services(self) -> dict[str, Words]:
        """Without a hub it need not claim to know what became of the agent (CR-070)."""
        rows = Hitch().here("services", "--json").json()["containers"]
        claims = {row["session"]: {} if row["note"] == NOBODY_KNOWS else {"agent_state": row["state"]} for row in rows}
        return {session: {**claim, "sandbox_alive": True} for session, claim in claims.items()}

    def explain(self) -> dict[str, Words]:
        return {session: self._explained(session) for session in self.known}

    def _explained(self, session: str) -> Words:
        answer = Hitch().here("explain", "--json", session, check=False)
        return GONE if answer.code == 3 else words_of(answer.checked(True).json()["session"])

    # the hub ----------------------------------------------------------------------------------------------------

    def api_sessions(self) -> dict[str, Words]:
        return self._complete({row["id"]: words_of(row) for row in self._ask("/api/sessions?all=true")})

    def api_session(self) -> dict[str, Words]:
        return {session: self._asked(f"/api/sessions/{session}", words_of) for session in self.known}

    def api_explain(self) -> dict[str, Words]:
        def words(told: dict[str, Any]) -> Words:
            return words_of(told["session"])

        return {session: self._asked(f"/api/sessions/{session}/explain", words) for session in self.known}

    def api_agents(self) -> dict[str, Words]:
        return {view["id"]: view_words(view) for view in self._ask("/api/agents")}

    def api_agent(self) -> dict[str, Words]:
        return {session: self._asked(f"/api/agents/{session}", view_words) for session in self.known}

    def api_status(self) -> dict[str, Words]:
        told = self._ask("/api/status")
        said = {row["id"]: words_of(row) for row in told["sessions"]}
        for view in told["agents"]:
            said[view["id"]] = {**said[view["id"]], **view_words(view)}
        return said | {COUNTS: {"counts": Counter(told["counts"])}}

    def _asked(self, path: str, words: Callable[[dict[str, Any]], Words]) -> Words:
        try:
            return words(self._ask(path))
        except hub_client.HubRefused as refused:
            if refused.status != 404:
                raise
            return GONE


# Comparing ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What a surface said when it was asked. A hub that is not there says nothing."""

    surface: str
    said: dict[str, Words]
    written: dict[str, list[int]]
    """When something was last written about each session."""


def looks(surfaces: Surfaces, rounds: int = 2) -> list[Look]:
    """Ask every surface, one after the other, ``rounds`` times."""
    found = []
    for _ in range(rounds):
        for name, ask in surfaces.all().items():
            try:
                found.append(Look(name, ask(), surfaces.written()))
            except hub_client.NoHub:
                continue
    return found


def contradictions(found: list[Look], *, busy: bool = False) -> list[str]:
    """Where a surface said the same before and after another one, which said something else in between.

    While somebody is ``busy``, a session may run, be stopped and run again between two looks: then only a surface that
    tells the number of the run has proved by saying the same that nothing has changed. Nor does a surface prove it
    of a session about which something was written meanwhile: its keeper may have been lost and replaced.
    """
    said = []
    for number, before in enumerate(found):
        rest = range(number + 1, len(found))
        after = next((found[at] for at in rest if found[at].surface == before.surface), None)
        if after is None:
            continue
        for between in found[number + 1 : found.index(after)]:
            for session in before.said.keys() & between.said.keys() & after.said.keys():
                words = before.said[session]
                steady = words == after.said[session] and (not busy or "run" in words)
                steady = steady and before.written.get(session) == after.written.get(session)
                if steady and (told := differ(words, between.said[session])):
                    said.append(f"{session}: {before.surface} and {between.surface} differ: {told}")
    return said


def differ(words: Words, others: Words) -> str:
    both = [field for field in words if field in others]
    return ", ".join(
        f"{field} is {words[field]!r}, not {others[field]!r}" for field in both if words[field] != others[field]
    )


# What is pushed ---------------------------------------------------------------------------------------------------


class Heard:
    """A page without a window: it asks for the list once, and then knows what the WebSocket tells."""

    def __init__(self, home: str) -> None:
        self.said: dict[str, Words] = {}
        with ShortPath(home, hub_client.SOCKET) as path:
            self._socket = unix_connect(path, "ws://hub/ws", max_size=None, compression=None)
        rows = hub_client.ask(home, "GET", "/api/sessions?all=true", timeout_s=60)
        self.said = {row["id"]: words_of(row) for row in rows}
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        try:
            with self._socket as messages:
                for text in messages:
                    event = json.loads(text)
                    if event["type"] == "session.removed":
                        self.said[event["sessionId"]] = GONE
                    elif "session" in event:
                        self.said[event["sessionId"]] = words_of(event["session"])
        except ConnectionClosed:
            return

    def differs_from(self, truth: Callable[[], dict[str, Words]]) -> Iterator[str]:
        """A line for each session of which it has not heard the truth in time."""
        deadline = time.monotonic() + PUSH_WINDOW_S
        while True:
            wrong = {session: differ(words, self.said.get(session, GONE)) for session, words in truth().items()}
            if not any(wrong.values()) or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        yield from (f"{session}: the WebSocket told otherwise: {told}" for session, told in wrong.items() if told)

    def close(self) -> None:
        self._socket.close()
        self._thread.join(10)
