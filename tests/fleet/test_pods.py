"""Pods under two hubs and one PostgreSQL: who watches, what the other sees, what is left when one of them is gone."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from hitchpost import wire
from hitchpost.errors import EndedAtOnce
from hitchpost.fleet.identity import Authority
from hitchpost.fleet.link import OpenStream
from hitchpost.fleet.pods import Pods
from hitchpost.fleet.tls import Identity
from hitchpost.fleet.view import utc_now
from hitchpost.model import run as runs
from hitchpost.model.facts import Pod
from hitchpost.ops.sessions.start import start
from hitchpost.ops.sessions.stop import stop
from hitchpost.ops.views.observe import observe
from hitchpost.runtimes import pod as runtime
from hitchpost.runtimes.base import Started
from hitchpost.runtimes.link import Link
from hitchpost.runtimes.pod_file import read_pod, write_pod
from hitchpost.settings import Settings
from hitchpost.store import story
from hitchpost.store.home import new_id
from hitchpost.values import replace
from tests.fleet.processes import Processes
from tests.fleet.replicas import Replica, record_of, replica, write_new
from tests.ground import Ground, Truth
from tests.support import Hitch, eventually

ECHO = 'stty -echo; echo ready; while read line; do echo "<$line>"; done'


class Place(Processes):
    """Pods as plain processes; two hubs share them."""

    def stream(self, session: str) -> OpenStream:
        return self.pods[session].open_stream

    def refresh(self, session_folder: str) -> bool:
        return False

    def note_link(self, session_folder: str, *, up: bool) -> bool:
        return False


class HubLike:
    """What a hub does for its pods, and nothing else, in a thread of its own."""

    def __init__(self, made: Replica, authority: Authority, folder: Path) -> None:
        self.made, self.sessions = made, set[str]()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.changed: list[str] = []
        authority.for_hub().write(os.path.join(made.home, "identity"))
        self.pods = self.do(self._made())
        self.place = self.pods.place = Place(folder, self.pods.links, authority)
        self.tasks = [asyncio.run_coroutine_threadsafe(work, self.loop) for work in (self.pods.run(), self._take())]

    async def _made(self) -> Pods:
        identity = Identity(os.path.join(self.made.home, "identity"), is_pod=False)
        return Pods(self.made.mirror, identity, lambda: self.sessions, self.changed.append)

    async def _take(self) -> None:
        while True:
            await asyncio.to_thread(self.made.mirror.claims.turn, list(self.sessions))
            await asyncio.sleep(1)

    def do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def truth(self, session: str) -> Truth:
        return Truth(Path(self.made.home), session)

    def close(self) -> None:
        """As one that dies: what it has not brought it does not bring."""
        if self.loop.is_closed():
            return
        for task in self.tasks:
            task.cancel()
        self.do(self.pods.close())
        self.made.mirror.claims.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Two:
    def __init__(self, ground: Ground, first: Replica, second: Replica) -> None:
        authority = Authority.make()
        folder = ground.watch.scratch / "pods"
        self.ground = ground
        self.first, self.second = (HubLike(made, authority, folder) for made in (first, second))
        self.second.place.pods = self.first.place.pods
        runtime.connect(self.first.pods)

    def begin(self, script: str, *, known: bool = True) -> str:
        """``known``: the hub has looked at the session before it is started."""
        made, session = self.first.made, new_id()
        with made.mirror.making(session) as claim:
            name, number = claim(["dev"])
            argv = ("sh", "-c", script, "agent")
            record = replace(record_of(session, name, number), runtime="pod", argv=argv, folder=str(self.ground.place))
            write_new(made.home, record)
        if known:
            self.first.sessions.add(session)
        with suppress(EndedAtOnce):
            start(made.home, session, Settings(), caller=Hitch.environment(), actor="test")
        self.first.sessions.add(session)
        self.second.made.mirror.catch_up()
        self.second.sessions.add(session)
        return session

    def close(self) -> None:
        runtime.connect(None)
        self.first.close()
        self.second.close()
        self.first.place.close()


@pytest.fixture
def two(ground: Ground, database: str) -> Iterator[Two]:
    with replica(database) as first, replica(database) as second:
        made = Two(ground, first, second)
        try:
            yield made
        finally:
            made.close()


@contextmanager
def third(two: Two, database: str) -> Iterator[HubLike]:
    """A hub that has never heard of anything."""
    with replica(database, tempfile.mkdtemp(prefix="home-")) as made:
        hub = HubLike(made, Authority.make(), two.ground.watch.scratch / "none")
        try:
            yield hub
        finally:
            hub.close()


def test_a_session_that_is_just_being_started_keeps_its_link_although_the_hub_does_not_know_it_yet(two: Two):
    hub, turns = two.first, list[int]()

    def live() -> set[str]:
        turns.append(len(turns))
        return hub.sessions

    hub.pods.live = live

    def start_late(order: runtime.Order) -> Started:
        pod = hub.place.pod(order.spec.session_folder)
        before = len(turns)

        def begin() -> None:
            eventually(lambda: len(turns) >= before + 3, what="turns without a pod")
            pod.begin()

        beginning = threading.Thread(target=begin)
        beginning.start()
        try:
            return hub.pods.links.start(order.spec, pod.open_stream)
        finally:
            beginning.join()

    hub.place.start = start_late  # type: ignore[method-assign]
    session = two.begin("exec sleep 1000", known=False)
    assert state(hub, session) == runs.RUNNING


def test_a_session_that_was_just_started_keeps_its_link_until_the_hub_has_looked_at_it(two: Two):
    hub, turns, known = two.first, list[int](), set[str]()

    def live() -> set[str]:
        turns.append(len(turns))
        return set(known)

    def wait_for_turns() -> None:
        before = len(turns)
        eventually(lambda: len(turns) >= before + 3, what="turns")

    hub.pods.live = live
    session = two.begin("exec sleep 1000", known=False)
    folder = hub.made.folder(session)
    wait_for_turns()
    assert hub.pods.links.stands_in(folder, 1)
    known.add(session)
    wait_for_turns()
    assert hub.pods.links.stands_in(folder, 1)
    known.clear()  # it has ended, or was removed
    eventually(lambda: not hub.pods.links.stands_in(folder, 1), what="the end of its link")


def test_a_pod_that_is_written_down_as_unreached_is_put_right_where_its_link_is_up(two: Two):
    """Its end may be written down after it was made again, or by a hub that is gone."""
    hub = two.first
    session = two.begin("exec sleep 1000")
    folder = hub.made.folder(session)
    eventually(lambda: hub.pods.links.is_up(folder), what="its link")

    def note_link(session_folder: str, *, up: bool) -> bool:
        pod = read_pod(session_folder)
        assert pod is not None
        write_pod(session_folder, replace(pod, unreachable_since=None if up else utc_now()))
        return True

    hub.place.note_link = note_link  # type: ignore[method-assign]
    write_pod(folder, Pod("pod", "uid", run=1, phase="Running", unreachable_since=utc_now()))
    eventually(
        lambda: (pod := read_pod(folder)) is not None and pod.unreachable_since is None, what="its link to count"
    )
    assert state(hub, session) == runs.RUNNING


def state(hub: HubLike, session: str) -> str:
    return observe(hub.made.home, session).facts.state


def told(hub: HubLike, session: str) -> list[str]:
    return [str(line["to"]) for line in story.read(hub.made.folder(session)) if line["event"] == "state"]


def shows(hub: HubLike, session: str, text: bytes) -> bytes:
    return eventually(lambda: found if text in (found := hub.truth(session).output()) else b"", what=repr(text))


def test_both_hubs_see_a_pod_and_type_into_it_and_one_watches(two: Two) -> None:
    session = two.begin(ECHO)
    assert two.first.pods.watches(session)
    shows(two.first, session, b"ready")
    shows(two.second, session, b"ready")
    assert not two.second.pods.watches(session)
    for number, hub in enumerate((two.first, two.second)):
        eventually((hub.truth(session).run() / wire.SOCKET).exists, what="somebody to stand in")
        with Link.connect(str(hub.truth(session).run())) as link:
            link.send(wire.INPUT, b"%d\r" % number)
        for seeing in (two.first, two.second):
            shows(seeing, session, b"<%d>" % number)


def test_what_a_pod_prints_is_in_the_database_within_five_seconds_and_outlives_it(two: Two, database: str) -> None:
    session = two.begin("seq 20000; echo done; exec sleep 1000")
    whole = shows(two.first, session, b"done\r\n")
    eventually(lambda: two.first.pods.bringing.waiting == 0, 5, "all to be brought")
    two.first.place.pods[session].kill()
    two.first.close()
    two.second.close()
    with third(two, database) as other:
        other.made.mirror.fetch_output(session, 1)
        assert other.truth(session).output() == b"".join(b"%d\r\n" % n for n in range(1, 20001)) + b"done\r\n" == whole
        assert state(other, session) == "running", "nobody has confirmed its end"


def test_another_hub_watches_within_three_seconds_and_nothing_is_lost_or_told_twice(two: Two) -> None:
    session = two.begin(ECHO)
    shows(two.second, session, b"ready")
    runtime.connect(two.second.pods)
    two.first.close()
    eventually(lambda: two.second.pods.watches(session), 3, "the other one to watch")
    run = str(two.second.truth(session).run())
    eventually(lambda: os.path.exists(os.path.join(run, wire.SOCKET)), what="somebody to stand in")
    with Link.connect(run) as link:
        link.send(wire.INPUT, b"after\r")
    shows(two.second, session, b"<after>")
    stop(two.second.made.home, session, actor="test")
    assert state(two.second, session) == "stopped"
    wanted = ["starting", "running", "stopping", "stopped"]
    eventually(lambda: told(two.second, session) == wanted, what="the whole story")


def test_what_came_while_nobody_watched_is_brought_by_who_watches_next(two: Two) -> None:
    """Also where no more of it comes."""
    session = two.begin(ECHO)
    shows(two.second, session, b"ready")
    runtime.connect(two.second.pods)
    two.second.tasks[1].cancel()  # it takes nothing by itself
    two.first.close()
    eventually((two.second.truth(session).run() / wire.SOCKET).exists, what="somebody to stand in")
    with Link.connect(str(two.second.truth(session).run())) as link:
        link.send(wire.INPUT, b"unwatched\r")
    whole = shows(two.second, session, b"<unwatched>\r\n")
    made = two.second.made
    assert made.mirror.output.shipped(session, 1).get(wire.segment_name(0), 0) < len(whole)
    made.mirror.claims.turn([session])

    def is_brought() -> bool:
        return made.mirror.output.shipped(session, 1).get(wire.segment_name(0)) == len(whole)

    eventually(is_brought, 5, "its output to be brought")


def test_a_pod_that_is_stopped_while_nobody_watches_has_told_everything(two: Two, database: str) -> None:
    session = two.begin(ECHO)
    shows(two.second, session, b"ready")
    runtime.connect(two.second.pods)
    two.second.tasks[1].cancel()
    two.first.close()
    eventually((two.second.truth(session).run() / wire.SOCKET).exists, what="somebody to stand in")
    stop(two.second.made.home, session, actor="test")
    two.second.pods.tear_down(two.second.made.folder(session))
    two.second.made.mirror.tell(session)
    two.second.close()
    with third(two, database) as other:
        assert told(other, session) == ["starting", "running", "stopping", "stopped"]


def test_a_pod_that_is_not_reached_is_not_dead(two: Two) -> None:
    session = two.begin(ECHO)
    shows(two.first, session, b"ready")
    two.first.place.pods[session].kill()
    folder = two.first.made.folder(session)
    eventually(lambda: two.first.pods.links.by_folder[folder].down_since is not None, what="the link to be down")
    for _ in range(3):
        two.first.do(two.first.pods.turn())
    assert state(two.first, session) in runs.LIVE
    assert observe(two.first.made.home, session).facts.keeper_alive is not False
