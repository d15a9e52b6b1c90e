"""Hubs of the real cluster are killed again and again while people watch, type and edit: nobody misses anything."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import threading
from collections import Counter
from collections.abc import Callable

import pytest
import websockets

from hitchpost.errors import HitchpostError
from tests.fleet.cluster_hubs import Hubs, output, shown
from tests.hubs import OUTPUT, Frame, HubProcess
from tests.support import eventually

LONG = "LONG" in os.environ
KILLS = 50 if LONG else 3
BUSY = """stty -echo
(n=0; while :; do n=$((n+1)); echo "tick $n"; sleep 0.02; done) &
while read line; do echo "<$line>"; done"""


class Watching:
    """Somebody who watches a session, at whichever hub answers, and goes on there where the last one left off."""

    def __init__(self, hubs: tuple[HubProcess, HubProcess], session: str) -> None:
        self.hubs, self.session = hubs, session
        self.seen = bytearray()
        self.hops = 0
        self.faults: list[str] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._watch()))
        self._thread.start()

    async def _watch(self) -> None:
        for hub in itertools.cycle(self.hubs):
            try:
                async with asyncio.timeout(60), hub.ws() as client:
                    await client.attach(self.session, **{"from": len(self.seen)}, readOnly=True)
                    self.hops += 1
                    while not self._is_over.is_set():
                        await client.read()
                        self._take(client.frames)
            except (OSError, websockets.WebSocketException, TimeoutError):
                await asyncio.sleep(0.05)
            if self._is_over.is_set():
                return

    def _take(self, frames: list[Frame]) -> None:
        for frame in frames:
            if frame.kind != OUTPUT or frame.offset != len(self.seen):
                self.faults.append(f"at {len(self.seen)}: kind {frame.kind} at {frame.offset}")
            self.seen += frame.data
        frames.clear()

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()


class Doing:
    """Somebody who does the same thing again and again, each time with another text, at one of the hubs."""

    def __init__(self, hub: HubProcess, which: str, do: Callable[[HubProcess, str], object]) -> None:
        self.hub, self.which, self.do = hub, which, do
        self.tried: list[str] = []
        self.done: list[str] = []
        self.is_over = threading.Event()
        self._thread = threading.Thread(target=self._do)
        self._thread.start()

    def _do(self) -> None:
        for number in itertools.count():
            if self.is_over.wait(0.02):
                return
            self.tried.append(text := f"{self.which}-{number}")
            try:
                self.do(self.hub, text)
                self.done.append(text)
            except HitchpostError:
                continue

    def close(self) -> None:
        self.is_over.set()
        self._thread.join()


@pytest.mark.timeout(3600 if LONG else 600)
def test_hubs_are_killed_under_load_and_nothing_is_lost_doubled_or_shown_wrongly(
    hubs: Hubs, two: tuple[HubProcess, HubProcess]
) -> None:
    session = hubs.run(two[0], BUSY, name="dev")
    pod = hubs.cluster.kubectl("get", "pod", "-n", hubs.namespace, "-o", "name")
    path = f"/api/sessions/{session}"

    def edit(hub: HubProcess, text: str) -> None:
        hub.ask("PATCH", path, {"description": text}, timeout_s=20)

    def type_in(hub: HubProcess, text: str) -> None:
        answer = hub.ask("POST", f"{path}/prompt", {"text": text}, timeout_s=20)
        assert answer["delivered"]

    people = [Doing(hub, f"{word}{n}", do) for n, hub in enumerate(two) for word, do in (("e", edit), ("t", type_in))]
    watching = Watching(two, session)
    try:
        for number in range(KILLS):
            counts = [len(each.done) for each in people]
            seen = len(watching.seen)

            def all_go_on(counts: list[int] = counts, seen: int = seen) -> bool:
                return all(len(a.done) > b for a, b in zip(people, counts, strict=True)) and len(watching.seen) > seen

            eventually(all_go_on, what="everybody to get on")
            two[number % 2].kill()
            hubs.start(two[number % 2])
    finally:
        for each in people:
            each.close()
    two[1].ask("POST", f"{path}/stop", timeout_s=120)
    for hub in two:
        eventually(lambda hub=hub: shown(hub, session)["label"] == "stopped", what="its end")  # type: ignore[misc]
    whole = output(two[1], session)
    eventually(lambda: len(watching.seen) >= len(whole), what="the rest of the stream")
    watching.close()
    assert watching.faults == []
    assert bytes(watching.seen) == whole
    assert watching.hops > KILLS / 2

    def is_same() -> bool:
        """Its last part may be brought by the other hub a moment later."""
        two[0].ask("GET", f"{path}/screen")
        found = output(two[0], session)
        assert found == whole, f"{len(found)} of {len(whole)} bytes, {len(output(two[1], session))} at the other hub"
        return True

    eventually(is_same, what="the same output at both hubs")
    ticks = [int(n) for n in re.findall(rb"tick (\d+)\r\n", whole)]
    assert ticks == list(range(1, len(ticks) + 1))
    stories = [hub.ask("GET", f"{path}/story") for hub in two]
    assert stories[0] == stories[1]
    edited = Counter(line["description"] for line in stories[0] if line["event"] == "edited")
    typed = Counter(text.decode() for text in re.findall(rb"<([^>]*)>", whole))
    for found, word in ((edited, "e"), (typed, "t")):
        who = [each for each in people if each.which.startswith(word)]
        assert max(found.values()) == 1
        assert {text for each in who for text in each.done} <= set(found)
        assert set(found) <= {text for each in who for text in each.tried}
    states = [line["to"] for line in stories[0] if line["event"] == "state"]
    assert states == ["starting", "running", "stopping", "stopped"]
    assert pod.split() == [f"pod/hitch-{session}"], "there was one pod, and no other"
