"""A hub that does not watch a session, and at which nobody looks at it, gets a flood slowly and loses nothing of it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from hitchpost import wire
from hitchpost.errors import DatabaseAway
from hitchpost.fleet import frames, shipped
from hitchpost.fleet.cluster import Cluster
from hitchpost.fleet.link import PodLink
from hitchpost.fleet.pod_copy import Copy
from hitchpost.fleet.profiles import FleetOptions
from hitchpost.model import pods
from hitchpost.model.facts import Pod
from hitchpost.ops.sessions.stop import stop
from hitchpost.runtimes import pod as runtime
from hitchpost.runtimes.link import Link
from hitchpost.runtimes.pod_file import read_pod, write_pod
from hitchpost.terminal import output
from hitchpost.values import replace
from tests.fleet.processes import Fleet
from tests.fleet.test_life import shows as shows_in
from tests.fleet.test_pods import HubLike, Two, shows, third, two  # noqa: F401 - a fixture
from tests.ground import Truth
from tests.support import eventually

SIZE = 20_000_000
END = b"done\r\n"
FLOOD = f"stty -echo; echo ready; read line; head -c {SIZE} /dev/zero | tr '\\0' x; echo done"
LASTING = f"{FLOOD}; exec sleep 1000"
WHOLE = b"ready\r\n" + b"x" * SIZE + END


def has(hub: HubLike, session: str) -> int:
    """How much of the output is in its copy."""
    return output.bounds(str(hub.truth(session).run() / wire.OUTPUT))[1]


def brought(hub: HubLike, session: str) -> int:
    """How far PostgreSQL has it."""
    found = hub.made.mirror.output.shipped(session, 1)
    return max(((wire.segment_offset(name) or 0) + end for name, end in found.items()), default=0)


def flood(two: Two, script: str = LASTING) -> str:  # noqa: F811 - the fixture's name
    """Everything is at the hub that watches, and not at the other one."""
    session = two.begin(script)
    shows(two.second, session, b"ready")
    eventually(lambda: not two.second.pods.watches(session), what="the other one to watch it")
    with Link.connect(str(two.first.truth(session).run())) as link:
        link.send(wire.INPUT, b"\r")
    began = time.monotonic()
    eventually(lambda: has(two.first, session) == len(WHOLE), what="the flood")
    assert has(two.second, session) < (time.monotonic() - began + 2) * frames.SLOW_BYTES_S, "it came as fast"
    assert has(two.second, session) < len(WHOLE)
    return session


def test_who_begins_to_look_has_all_of_it(two: Two) -> None:  # noqa: F811
    session = flood(two)
    two.second.do(two.second.pods.caught_up(two.second.made.folder(session)))
    assert two.second.truth(session).output() == WHOLE


def test_who_looks_while_somebody_looks_already_has_all_of_it_too(two: Two) -> None:  # noqa: F811
    session = flood(two)
    link = two.second.pods.links.by_folder[two.second.made.folder(session)]

    async def look() -> None:
        link.looked_at()
        await link.caught_up(10)

    two.second.do(look())
    assert two.second.truth(session).output() == WHOLE


def test_a_reader_that_asks_for_more_gets_it_as_fast_as_it_comes(two: Two) -> None:  # noqa: F811
    session = flood(two)
    with Link.connect(str(two.second.truth(session).run())) as link:
        link.follow(has(two.second, session))
        eventually(lambda: has(two.second, session) == len(WHOLE), 10, "the rest of it")
    assert two.second.truth(session).output() == WHOLE


def test_while_it_is_behind_the_time_of_its_output_is_right_and_its_end_is_not_told(two: Two) -> None:  # noqa: F811
    session = flood(two)
    folder = str(two.second.truth(session).run() / wire.OUTPUT)
    assert output.told_end(folder) < len(WHOLE)
    now = output.last_written(str(two.first.truth(session).run() / wire.OUTPUT))
    assert now is not None
    eventually(lambda: abs((output.last_written(folder) or 0) - now) < 0.01, what="the time of the last output")


def test_the_end_of_a_run_comes_behind_all_of_its_output(two: Two) -> None:  # noqa: F811
    session = flood(two, f"{FLOOD}; read line")
    with Link.connect(str(two.first.truth(session).run())) as link:
        link.send(wire.INPUT, b"\r")
    eventually(lambda: (two.second.truth(session).run() / "exit.json").exists(), 20, "its end")
    eventually(lambda: 1 in two.second.pods.links.by_folder[two.second.made.folder(session)].over, 20, "its end")
    assert two.second.truth(session).output() == WHOLE


def test_who_watches_next_brings_what_the_other_one_did_not(two: Two) -> None:  # noqa: F811
    two.first.pods.bringing.output_of = lambda *_, **__: None
    session = flood(two)
    runtime.connect(two.second.pods)
    two.first.close()
    eventually(lambda: brought(two.second, session) == len(WHOLE), what="its output to be brought")
    assert two.second.truth(session).output() == WHOLE


def test_a_pod_that_is_stopped_while_nobody_watches_has_told_all_of_it(two: Two, database: str) -> None:  # noqa: F811
    two.first.pods.bringing.output_of = lambda *_, **__: None
    session = flood(two)
    runtime.connect(two.second.pods)
    two.second.tasks[1].cancel()
    two.first.close()
    eventually((two.second.truth(session).run() / wire.SOCKET).exists, what="somebody to stand in")
    two.second.pods.tear_down(two.second.made.folder(session))
    eventually(lambda: brought(two.second, session) == len(WHOLE), what="all to be brought")
    two.second.close()
    with third(two, database) as other:
        other.made.mirror.fetch_output(session, 1)
        assert other.truth(session).output() == WHOLE


class Ending(Cluster):
    """The cluster's side of a hub: it says that a pod has ended."""

    def __init__(self, hub: HubLike) -> None:
        links, fetch = hub.pods.links, lambda session, run: hub.made.mirror.fetch_output(session, run)
        unused: Any = Mock()
        super().__init__(unused, FleetOptions(), links=links, leases=unused, identities=unused, fetch_rest=fetch)
        self.view = Mock(is_listed=True)

    def _now(self, stored: Pod | None, session_folder: str) -> Pod | None:
        return None if stored is None or stored.ended else replace(stored, ended=True)


def away(session: str, run: int) -> None:
    raise DatabaseAway("db.example/fleet", "it is away")


def test_what_another_hub_has_brought_is_not_taken_for_lost_with_the_pod(two: Two) -> None:  # noqa: F811
    session = flood(two)
    eventually(lambda: brought(two.first, session) == len(WHOLE), what="all to be brought")
    two.second.tasks[0].cancel()
    two.first.place.pods[session].kill()
    two.first.close()
    folder = two.second.made.folder(session)
    write_pod(folder, Pod("uid", "name", phase=pods.FAILED, run=1))
    cluster = Ending(two.second)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(two.second.made.mirror, "fetch_output", away)
        with pytest.raises(DatabaseAway):
            cluster.refresh(folder)
    found = read_pod(folder)
    assert found is not None
    assert not found.ended, "whoever sees that ends the log"
    two.second.place.refresh = cluster.refresh  # type: ignore[method-assign]
    two.second.made.mirror.claims.turn([session])
    two.second.pods._refresh(session)
    where = str(Path(folder, "runs", "1", wire.OUTPUT))
    assert two.second.truth(session).output() == WHOLE
    assert output.told_end(where) == len(WHOLE) + wire.UNCOUNTED


def test_a_pod_that_knows_no_slow_links_is_not_told_of_them(fleet: Fleet) -> None:
    session = fleet.sh(LASTING)
    shows_in(session, b"ready")
    link = fleet.link(session)
    link._paces = False
    fleet.do(link.want(frames.OUTPUT))
    fleet.do(link.caught_up(10))
    with Link.connect(str(session.run())) as client:
        client.send(wire.INPUT, b"\r")
    shows_in(session, END)
    assert session.output() == WHOLE
    assert link.reconnects == 0
    stop(fleet.home, session.id, actor="test")


def welcomed(fleet: Fleet, session: Truth, meanwhile: Callable[[PodLink], Awaitable[None]]) -> PodLink:
    """The link is made again as a slow one, and something comes up while the pod is being greeted."""
    link = fleet.link(session)
    fleet.do(link.want(frames.OUTPUT))
    told = link._on_frame

    async def on_frame(kind: bytes, payload: bytes) -> None:
        if kind == frames.WELCOME:
            link._on_frame = told  # type: ignore[method-assign]
            await meanwhile(link)
        await told(kind, payload)

    link._on_frame = on_frame  # type: ignore[method-assign]
    fleet.cut(session)
    eventually(lambda: link.reconnects == 1, what="another connection")
    return link


def test_who_begins_to_watch_while_the_pod_is_greeted_hears_all(fleet: Fleet) -> None:
    session = fleet.sh("echo ready; read line")
    shows_in(session, b"ready")
    welcomed(fleet, session, lambda link: link.want(frames.ALL))
    with Link.connect(str(session.run())) as client:
        client.send(wire.INPUT, b"\r")
    assert fleet.ended(session) == "completed"
    story = session.folder / "story.jsonl"
    eventually(lambda: '"to": "completed"' in story.read_text(), 10, "the line of its end")


def test_who_begins_to_look_while_the_pod_is_greeted_has_all_of_it(fleet: Fleet) -> None:
    session = fleet.sh(LASTING)
    shows_in(session, b"ready")

    async def look(link: PodLink) -> None:
        link.looked_at()

    link = welcomed(fleet, session, look)
    with Link.connect(str(session.run())) as client:
        client.send(wire.INPUT, b"\r")

    def is_here() -> bool:
        fleet.do(look(link))
        return session.output() == WHOLE

    eventually(is_here, 20, "the flood")
    stop(fleet.home, session.id, actor="test")


def test_output_that_is_brought_while_the_pod_sends_it_is_there_once(fleet: Fleet) -> None:
    session = fleet.sh("exec sleep 1000")
    log, copy = session.run() / wire.OUTPUT / wire.segment_name(0), Copy(str(session.folder))

    def comes(at: int, data: bytes) -> None:
        head = frames.name_bytes(1, shipped.segment(0))
        copy.apply(frames.PART, head + frames.offset(at) + frames.offset(0) + data)

    comes(0, b"one ")
    with open(log, "ab") as file:  # as far as another hub has brought it into PostgreSQL
        file.write(b"two ")
    comes(4, b"two three")
    copy.close()
    assert log.read_bytes() == b"one two three"
    stop(fleet.home, session.id, actor="test")
