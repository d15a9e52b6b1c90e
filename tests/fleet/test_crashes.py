"""Two replicas do this and that, and die between any two steps. Nothing acknowledged is lost, nothing is doubled."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hitchpost import wire
from hitchpost.fleet.copied import is_copied
from hitchpost.model import run as runs
from hitchpost.store import records, story
from hitchpost.store.home import new_id, run_folder
from hitchpost.store.session import read_state
from tests.fleet.replica_process import ReplicaProcess
from tests.fleet.replicas import Replica, replica
from tests.postgres import the_server

OPS = ("make", "next", "next", "rename", "note", "mention", "remove", "ship", "catch_up")
OUTPUT = "".join(f"{number:04d} " for number in range(200))


@dataclass(slots=True)
class Deed:
    """What a replica is to do. ``crash`` is the step before which it dies; 0 for never."""

    op: str
    target: int
    crash: int


deeds = st.builds(
    Deed,
    op=st.sampled_from(OPS),
    target=st.integers(0, 2),
    crash=st.one_of(st.just(0), st.integers(1, 700)),
)
turns = st.lists(st.tuples(st.one_of(st.none(), deeds), st.one_of(st.none(), deeds)), min_size=1, max_size=8)


@dataclass(slots=True)
class Wanted:
    """What is known of a session: texts that were acknowledged, and those of which nobody knows."""

    made: bool = False
    names: list[tuple[str, bool]] = field(default_factory=list)
    told: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    removed: bool = False
    maybe_removed: bool = False
    shipped: int = 0


class World:
    def __init__(self, replicas: list[ReplicaProcess]) -> None:
        self.replicas = replicas
        self.sessions: dict[str, Wanted] = {}
        self.count = 0

    def turn(self, pair: tuple[Deed | None, Deed | None]) -> None:
        """Both at once."""
        orders = [self._order(deed) for deed in pair]
        for made, deed, order in zip(self.replicas, pair, orders, strict=True):
            if deed is not None and order is not None:
                made.say(crash=deed.crash, **order)
        for made, order in zip(self.replicas, orders, strict=True):
            if order is not None:
                self._heard(order, made.answer())

    def _order(self, deed: Deed | None) -> dict[str, Any] | None:
        if deed is None:
            return None
        self.count += 1
        op, text = deed.op, f"text-{self.count}"
        known = list(self.sessions)
        if op == "make" or not known:
            session = new_id()
            self.sessions[session] = Wanted(unknown={text}, names=[(text, False)])
            return {"op": "make", "session": session, "text": text}
        session = known[deed.target % len(known)]
        if op == "ship":
            offset = self.sessions[session].shipped
            return {"op": op, "session": session, "offset": offset, "text": OUTPUT[offset : offset + 25]}
        if op != "catch_up":
            self.sessions[session].unknown.add(text)
        return {"op": op, "session": session, "text": text}

    def _heard(self, order: dict[str, Any], answer: dict[str, Any] | None) -> None:
        op, session, text = order["op"], order.get("session", ""), order.get("text", "")
        wanted = self.sessions[session]
        is_refused = answer is not None and not answer["ok"]
        is_done = answer is not None and answer["ok"]
        if is_refused:
            wanted.unknown.discard(text)
            return
        if op == "make":
            wanted.made = is_done
        elif op == "rename":
            wanted.names.append((text, is_done))
        elif op == "remove":
            wanted.removed |= is_done
            wanted.maybe_removed = True
        elif op == "ship" and is_done:
            wanted.shipped = order["offset"] + len(text)
        if is_done and op in ("next", "note", "mention", "rename"):
            wanted.told.add(text)
            wanted.unknown.discard(text)


def check(world: World, made: Replica) -> None:
    ids = set(records.ids(made.home))
    assert ids <= set(world.sessions)
    found = [records.read(made.folder(session)) for session in ids]
    assert len({record.name for record in found}) == len({record.index for record in found}) == len(found)
    for session, wanted in world.sessions.items():
        if session not in ids:
            assert wanted.maybe_removed or not wanted.made, f"{session} is lost"
            continue
        assert not wanted.removed, f"{session} is back"
        check_session(wanted, made, session)


def check_session(wanted: Wanted, made: Replica, session: str) -> None:
    folder = made.folder(session)
    lines = story.read(folder)
    texts = Counter(str(line.get("reason") or line.get("name") or "") for line in lines if line["event"] != "created")
    del texts[""]
    assert max(texts.values(), default=1) == 1, "something was told twice"
    assert wanted.told <= set(texts), "something that was acknowledged is lost"
    assert set(texts) <= wanted.told | wanted.unknown, "something came from nowhere"
    names = [line["name"] for line in lines if line["event"] == "edited"]
    assert records.read(folder).name == (names[-1] if names else wanted.names[0][0])
    told = story.rebuilt_state(folder, session, "")
    state = read_state(folder)
    assert told is not None
    assert (told["run"], told["state"]) == (state.run, state.state)
    check_path(lines)
    made.mirror.fetch_output(session, 1)
    path = os.path.join(run_folder(folder, 1), wire.OUTPUT, wire.segment_name(0))
    output = Path(path).read_text() if os.path.exists(path) else ""
    assert OUTPUT.startswith(output)
    assert len(output) >= wanted.shipped


def check_path(lines: list[dict[str, object]]) -> None:
    """No run has left a state twice, and none has begun twice."""
    run, state = 1, runs.CREATED
    for line in lines:
        if line["event"] == "state":
            assert (line["run"], line["from"]) == (run, state)
            state = str(line["to"])
        elif line["event"] == "run":
            assert line["run"] == run + 1
            run, state = run + 1, runs.CREATED


def contents(made: Replica) -> dict[str, bytes]:
    found = {}
    for session in records.ids(made.home):
        for folder, _, names in os.walk(made.folder(session)):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), made.folder(session))
                if is_copied(path):
                    found[f"{session}/{path}"] = made.read(session, path)
    return found


# not made smaller where it fails: each try takes a second
@settings(
    max_examples=400 if "LONG" in os.environ else 15,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.reuse, Phase.generate],
)
@given(turns=turns)
def test_nothing_acknowledged_is_lost_and_nothing_is_doubled(turns: list[tuple[Deed | None, Deed | None]]):
    server = the_server()
    with server.fresh() as name, tempfile.TemporaryDirectory() as folder:
        address = server.address(name)
        homes = [os.path.join(folder, which) for which in ("first", "second", "third")]
        world = World([ReplicaProcess(address, home) for home in homes[:2]])
        try:
            for turn in turns:
                world.turn(turn)
        finally:
            for running in world.replicas:
                running.close()
        copies = []
        for home in homes:
            with replica(address, home) as copy:
                for session in records.ids(home):
                    copy.mirror.tell(session)
                copy.mirror.catch_up()
                check(world, copy)
                copies.append(contents(copy))
        assert copies[0] == copies[1] == copies[2]
