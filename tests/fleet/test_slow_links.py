"""A hub that does not watch a session, and at which nobody looks at it, gets a flood slowly and loses nothing of it."""

from __future__ import annotations

import time
from pathlib import Path

from hitchpost import wire
from hitchpost.fleet import frames
from hitchpost.model import pods
from hitchpost.model.facts import Pod
from hitchpost.ops.sessions.stop import stop
from hitchpost.runtimes import pod as runtime
from hitchpost.runtimes.link import Link
from hitchpost.runtimes.pod_file import write_pod
from hitchpost.terminal import output
from tests.fleet.processes import Fleet
from tests.fleet.test_life import shows as shows_in
from tests.fleet.test_pods import HubLike, Two, shows, third, two  # noqa: F401 - a fixture
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


def test_what_another_hub_has_brought_is_not_taken_for_lost_with_the_pod(two: Two) -> None:  # noqa: F811
    session = flood(two)
    eventually(lambda: brought(two.first, session) == len(WHOLE), what="all to be brought")
    two.second.tasks[0].cancel()
    two.first.place.pods[session].kill()
    two.first.close()
    folder = two.second.made.folder(session)
    write_pod(folder, Pod("uid", "name", phase=pods.FAILED, run=1, ended=True))
    two.second.place.refresh = lambda session_folder: True  # type: ignore[method-assign]
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
