"""The whole life of a run in a pod, through its link: real keepers, PTYs and programs."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import socket
import threading
from pathlib import Path

import pytest

from hitchpost import wire
from hitchpost.errors import Refused, StartFailed
from hitchpost.fleet.news import OUTPUT
from hitchpost.fleet.standin import StandIn
from hitchpost.ops.sessions.send import send
from hitchpost.ops.views.diff import changed
from hitchpost.ops.views.observe import observe
from hitchpost.runtimes.base import Started
from hitchpost.runtimes.link import Link, NoKeeper
from hitchpost.runtimes.pod import Order, RefusedThere
from hitchpost.store.home import make_run_folder
from hitchpost.system import process
from tests.fleet.processes import Fleet
from tests.ground import Truth, died_of, left_with
from tests.repos import Repo
from tests.support import Process, eventually

ECHO = 'stty -echo; echo ready; while read line; do echo "<$line>"; done'
ASLEEP = "echo ready; exec sleep 1000"


def shows(session: Truth, text: bytes, run: int = 1) -> bytes:
    """Wait until the copy has it in its log."""

    def found() -> bytes:
        log = session.output(run)
        return log if text in log else b""

    return eventually(found, what=repr(text))


def test_a_run_in_a_pod_starts_prints_and_ends_as_on_one_machine(fleet: Fleet):
    session = fleet.sh("echo hello; exit 3")
    assert fleet.ended(session) == "failed"
    assert session.output() == b"hello\r\n"
    assert session.exit() == left_with(3)
    assert session.states() == ["starting", "running", "failed"]
    assert session.exit_status() == "3\n"
    pod = fleet.pod(session).truth
    assert (pod.state, pod.exit()) == ("failed", left_with(3))


def test_who_starts_a_run_stands_in_for_its_keeper_although_the_hub_was_just_trying_to(fleet: Fleet):
    """Its turn may come in the moment of the start, and has not the lock that the start holds."""
    session = fleet.create("sleep", "1000")
    folder, run_folder = str(session.folder), make_run_folder(str(session.folder), 1)
    fd = os.open(os.path.join(run_folder, wire.KEEPER_LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)

    async def at_once() -> list[object]:
        link = fleet.links.open(folder, fleet.cluster.pod(folder).open_stream)
        both = fleet.links.stand_in(link, 1), fleet.links.stand_in(link, 1, fd)
        return list(await asyncio.gather(*both, return_exceptions=True))

    async def nowhere() -> socket.socket:
        raise ConnectionRefusedError

    fleet.cluster.pod(folder).open_stream = nowhere  # type: ignore[method-assign]
    try:
        turn, start = fleet.do(at_once())
        assert isinstance(turn, Refused)
        assert isinstance(start, StandIn)
        assert fleet.links.stands_in(folder, 1)
        assert os.path.exists(os.path.join(run_folder, wire.SOCKET))
    finally:
        os.close(fd)


def test_a_death_by_signal_is_told_as_it_was(fleet: Fleet):
    session = fleet.sh(ASLEEP)
    shows(session, b"ready")
    os.kill(session.agent_pid(), signal.SIGSEGV)
    assert fleet.ended(session) == "failed"
    assert session.exit() == died_of(signal.SIGSEGV, core=session.exit()["core_dumped"])


def test_keys_reach_the_program_and_the_terminal_has_the_size_of_who_typed_last(fleet: Fleet):
    session = fleet.sh('echo ready; while read line; do stty size; echo "<$line>"; done')
    folder = str(session.run())
    shows(session, b"ready")
    with (
        Link.connect(folder, role="attach", cols=100, rows=30) as first,
        Link.connect(folder, role="attach", cols=90, rows=20) as second,
    ):
        first.send(wire.INPUT, b"one\r")
        assert b"30 100\r\n<one>" in shows(session, b"<one>")
        second.send(wire.INPUT, b"two\r")
        assert b"20 90\r\n<two>" in shows(session, b"<two>")
        first.resize(70, 10)
        second.resize(120, 40)
        second.send(wire.INPUT, b"three\r")
        assert b"40 120\r\n<three>" in shows(session, b"<three>")
    with Link.connect(folder, role="attach", cols=10, rows=10, read_only=True) as reader:
        reader.send(wire.INPUT, b"never\r")
        assert reader.request("stop", by="user", reason="")["why"] == "this client is read-only"
    fleet.stop(session)
    assert b"never" not in session.output()


def test_a_text_is_sent_with_a_receipt(fleet: Fleet):
    session = fleet.sh(ECHO)
    shows(session, b"ready")
    receipt = send(observe(fleet.home, session.id), "a prompt")
    assert receipt.offset == len(b"ready\r\n")
    assert b"<a prompt>" in shows(session, b"<a prompt>")
    fleet.stop(session)


def test_a_run_is_stopped_with_its_grace_and_the_pod_goes_on_with_the_next(fleet: Fleet):
    session = fleet.sh("trap 'echo bye; exit 0' TERM; echo begun; while :; do sleep 0.05; done")
    shows(session, b"begun")
    program = fleet.pod(session).process
    assert program is not None
    fleet.stop(session, reason="enough", by="restart")
    assert (session.state, session.exit()["intent"]) == ("stopped", "restart")
    assert session.output().endswith(b"bye\r\n")
    with pytest.raises(NoKeeper):
        Link.connect(str(session.run()))
    fleet.start(session, argv=("sh", "-c", "echo second; sleep 1000"))
    shows(session, b"second", run=2)
    assert fleet.pod(session).process is program
    assert (session.state, session.states(2)) == ("running", ["starting", "running"])
    assert session.run_file(2)["argv"][:2] == ["sh", "-c"]
    fleet.stop(session)
    assert fleet.ended(session, run=2) == "stopped"
    assert session.output(1).startswith(b"begun")
    events = [(line["event"], line.get("to"), line["run"]) for line in session.story()]
    assert len(events) == len(set(events)), events


def test_a_program_that_is_not_there_is_told_as_on_one_machine(fleet: Fleet):
    local = fleet.ground.begin("sleep", "0")
    with pytest.raises(StartFailed) as here:
        fleet.ground.begin("no-such-program")
    with pytest.raises(StartFailed) as there:
        fleet.begin("no-such-program")
    assert here.value.why == there.value.why
    assert local.ended() == "completed"


def test_a_folder_that_nobody_can_work_in_is_told(fleet: Fleet):
    place = fleet.ground.place / "gone"
    place.mkdir()
    session = fleet.create("sleep", "1000", place=place)
    place.rmdir()
    place.touch()
    with pytest.raises(StartFailed, match="gone"):
        fleet.start(session)
    assert session.state == "failed"


def test_variables_go_through_the_link_and_nowhere_else(fleet: Fleet):
    secret = os.urandom(12).hex()
    session = fleet.sh('echo "<$TOKEN>"; echo "<$SESSION_OF_HUB>"; exec sleep 1000', extra_env={"TOKEN": secret})
    shows(session, f"<{secret}>".encode())
    pod = fleet.pod(session)
    assert pod.process is not None
    agent = pod.truth.agent_pid()
    others = [pod.process.pid, *process.below(pod.process.pid)]
    others.remove(agent)
    for pid in others:
        found = Process.read(pid)
        if found is not None and found.parent != agent:
            assert secret.encode() not in process.read(f"/proc/{pid}/environ") + process.read(f"/proc/{pid}/cmdline")
    written = [path for path in pod.folder.rglob("*") if path.is_file() and path.parent.name != "output"]
    assert written
    assert not [path for path in written if secret.encode() in path.read_bytes()]
    fleet.stop(session)


def test_what_the_story_tells_is_there_once(fleet: Fleet):
    session = fleet.sh("exit 0")
    fleet.ended(session)
    told = [(line["event"], line["actor"], line.get("to", "")) for line in session.story()]
    assert told == [
        ("created", "test", ""),
        ("state", "test", "starting"),
        ("state", "keeper", "running"),
        ("state", "keeper", "completed"),
    ]


def test_what_has_changed_is_looked_at_in_the_pod_and_its_refusals_are_told_as_they_are(fleet: Fleet, repo: Repo):
    session = fleet.begin("sh", "-c", "echo new > made; echo done; exec sleep 1000", place=repo.path)
    shows(session, b"done")
    record = observe(fleet.home, session.id).record
    found = changed(fleet.home, record)
    assert [(file.path, file.added, file.untracked) for file in found.files] == [("made", 1, True)]
    assert b"+new" in found.patch
    assert found.counts == (1, 1, 0) == changed(fleet.home, record, stat=True).counts
    plain = fleet.sh(ASLEEP)
    shows(plain, b"ready")
    with pytest.raises(RefusedThere, match="nothing to compare with") as refused:
        changed(fleet.home, observe(fleet.home, plain.id).record)
    assert refused.value.http_status == Refused.http_status


def test_the_time_index_is_told_as_output_and_not_as_a_file_that_everybody_looks_at(fleet: Fleet):
    session = fleet.sh(ASLEEP)
    shows(session, b"ready")
    eventually(lambda: (session.run() / "output" / "times.bin").exists(), what="the time index")
    kinds = {news.kind for _, news in fleet.news if news.name == "runs/1/output/times.bin"}
    assert kinds == {OUTPUT}
    fleet.stop(session)


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def test_the_keeper_of_the_first_run_is_started_before_the_run_is_ordered(fleet: Fleet):
    session = fleet.create("sh", "-c", ASLEEP)
    pod = fleet.cluster.pod(str(session.folder))
    pod.begin()
    pod.address()

    def keepers() -> list[int]:
        assert pod.process is not None
        first = pod.process.pid
        found = [pid for pid in process.below(first) if b"keeper/__main__.py" in command_of(pid)]
        return [pid for pid in found if parent_of(pid) == first]  # nobody's child: it has detached itself

    waiting = eventually(keepers, what="a keeper that waits")
    fleet.start(session)
    shows(session, b"ready")
    assert pod.truth.keeper_pid() in waiting
    assert keepers() == [pod.truth.keeper_pid()]
    fleet.stop(session)


def test_a_pod_that_no_run_was_ordered_in_ends_with_the_keeper_that_waits(fleet: Fleet):
    session = fleet.create("sh", "-c", ASLEEP)
    pod = fleet.cluster.pod(str(session.folder))
    pod.begin()
    pod.address()
    assert pod.end(10) == 0


def test_why_a_pod_has_ended_is_told_although_its_link_was_closed_first(fleet: Fleet, monkeypatch: pytest.MonkeyPatch):
    session = fleet.create("sh", "-c", ASLEEP)
    folder = str(session.folder)

    async def nobody() -> socket.socket:
        raise ConnectionRefusedError("nobody is there")

    def start(order: Order) -> Started:
        closing = threading.Timer(0.2, fleet.links.forget, [folder])
        closing.start()
        has_link = [False]

        def given_up() -> str:
            has_link[0] = has_link[0] or folder in fleet.links.by_folder
            return "out of memory" if has_link[0] and folder not in fleet.links.by_folder else ""

        try:
            return fleet.links.start(order.spec, nobody, 10, given_up)
        finally:
            closing.join()

    monkeypatch.setattr(fleet.cluster, "start", start)
    with pytest.raises(StartFailed, match="out of memory"):
        fleet.start(session)
