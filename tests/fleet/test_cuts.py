"""Links that are cut, pods that stand still or die, hubs that are killed: nothing is lost, doubled, or told dead."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import signal
import time
from collections.abc import Iterator
from functools import partial

import pytest

from hitchpost import wire
from hitchpost.errors import KeeperSilent, Refused
from hitchpost.fleet.news import DOWN, OVER, UP
from hitchpost.hub.streams import OUTPUT, Viewer
from hitchpost.hub.watching import Watch
from hitchpost.ops.sessions.send import send
from hitchpost.ops.views.observe import observe
from hitchpost.runtimes.kept import is_kept
from hitchpost.runtimes.link import Link, Silent
from hitchpost.terminal import output
from tests.fleet.processes import Fleet, Pod
from tests.fleet.proxy import Proxy
from tests.fleet.test_life import ASLEEP, ECHO, shows
from tests.fleet.test_readers import screens, truth, until
from tests.ground import Truth
from tests.support import Hitch, eventually, halt
from tests.warm import Process, spawn

LONG = "LONG" in os.environ
CUTS, PARTS = (50, 400) if LONG else (12, 100)
DRIP = f"stty raw -echo; for i in $(seq {PARTS}); do head -c 20000 /dev/urandom; sleep 0.02; done; read line"
DRIPPED = PARTS * 20000
MOST_KEPT_KIB = 16 * 1024
"""Of an output of 30 MB. A pod also loads modules in that time."""


@pytest.fixture
def proxies() -> Iterator[list[Proxy]]:
    made: list[Proxy] = []
    yield made
    for proxy in made:
        proxy.close()


def through(fleet: Fleet, session: Truth, proxies: list[Proxy]) -> Proxy:
    """From now on, the session's pod is reached through a network that can fail."""
    pod = fleet.pod(session)
    proxy = Proxy(pod.address())
    proxies.append(proxy)
    pod.through = proxy.address
    fleet.cut(session)
    eventually(lambda: bool(proxy._pairs) and is_up(fleet, session), what="the link to go through the proxy")
    return proxy


def ups(fleet: Fleet) -> int:
    return sum(news.kind == UP for _, news in fleet.news)


def is_up(fleet: Fleet, session: Truth) -> bool:
    return fleet.link(session).up_since is not None


def test_every_byte_arrives_once_through_many_cuts_of_the_link(fleet: Fleet, proxies: list[Proxy]):
    session = fleet.sh(DRIP)
    proxy = through(fleet, session, proxies)
    shown = bytearray()

    async def look() -> None:
        watch = Watch(str(session.run()), 1, lambda event: None)

        async def take(kind: int, offset: int, data: bytes) -> None:
            assert kind == OUTPUT
            assert offset == len(shown), "a byte is missing, or came twice"
            shown.extend(data)

        def is_shown_again(links: int, before: int) -> bool:
            return ups(fleet) > links and (len(shown) > before or len(shown) == DRIPPED)

        async with screens() as made:
            viewer = asyncio.create_task(Viewer(watch, str(session.run()), made, 80, 24).show(take, 0))
            chance = random.Random(16)
            while proxy.cuts < CUTS:
                links, before = ups(fleet), len(shown)
                proxy.cut()
                await until(partial(is_shown_again, links, before))
                await asyncio.sleep(chance.random() * 0.05)
            await until(lambda: len(shown) == DRIPPED)
            viewer.cancel()
            watch.close()

    asyncio.run(look())
    whole = truth(session, fleet)
    assert len(whole) == DRIPPED
    assert hashlib.sha256(shown).digest() == hashlib.sha256(whole).digest()
    assert session.output() == whole
    assert proxy.cuts >= CUTS
    assert ups(fleet) > CUTS
    fleet.stop(session, grace_s=0)
    lines = session.story()
    assert len(lines) == len({str(line) for line in lines})


def test_many_hubs_are_killed_one_after_the_other_while_they_write_and_the_copy_is_whole(fleet: Fleet):
    """Each is a process of its own, killed with -9 in the middle of whatever it does."""
    session = fleet.sh(DRIP)
    fleet.do(fleet.links.let_go(str(session.folder)))
    words = [str(session.folder), "1", str(fleet.identity), str(fleet.pod(session).address())]
    chance = random.Random(17)
    folder = str(session.run() / "output")
    for _ in range(CUTS):
        before = output.bounds(folder)[1]
        hub = linker(fleet, words)
        has_more = partial(grew, folder, before)
        eventually(has_more, what="more of the output")
        time.sleep(chance.random() * 0.05)
        hub.kill()
        hub.wait(60)
        copied = session.output()
        assert copied == truth(session, fleet)[: len(copied)]
    last = linker(fleet, words)
    eventually(lambda: output.bounds(folder)[1] == DRIPPED, what="the rest of the output")
    assert session.output() == truth(session, fleet)
    fleet.stop(session, grace_s=0)
    assert session.state == "stopped"
    last.send_signal(signal.SIGTERM)
    last.wait(60)
    lines = session.story()
    assert len(lines) == len({str(line) for line in lines})
    told = [line["to"] for line in lines if line["event"] == "state"]
    assert told == ["starting", "running", "stopping", "stopped"]


def grew(folder: str, before: int) -> bool:
    return output.bounds(folder)[1] > before or before == DRIPPED


def is_another(pod: Pod, server: int) -> bool:
    return pod.server != server


def linker(fleet: Fleet, words: list[str]) -> Process:
    """A hub that does nothing but keep the link and stand in for the keeper."""
    with open(os.devnull, "r+b") as nothing:
        return spawn("tests.fleet.linker", words, Hitch.environment(), (nothing.fileno(),) * 3, session=True)


def test_a_pod_that_stands_still_is_silent_within_three_seconds_and_goes_on(fleet: Fleet):
    session = fleet.sh(ECHO)
    shows(session, b"ready")
    link = fleet.link(session)
    server = fleet.pod(session).server
    began = time.time()
    halt(server)
    try:
        eventually(lambda: link.down_since is not None, 10, what="the cut to be seen")
        assert time.time() - began < 3.5
        assert link.down_since is not None
        assert abs(link.down_since - began) < 1.5
        assert is_kept(str(session.run())) is True
        with pytest.raises(Silent):
            Link.connect(str(session.run()), timeout_s=0.5)
        with pytest.raises(KeeperSilent):
            send(observe(fleet.home, session.id), "lost")
        assert session.state == "running"
    finally:
        os.kill(server, signal.SIGCONT)
    eventually(lambda: is_up(fleet, session), what="the link again")
    assert send(observe(fleet.home, session.id), "again").offset == 7
    assert b"<again>" in shows(session, b"<again>")
    assert b"lost" not in session.output()
    fleet.stop(session)


def test_a_network_that_swallows_everything_is_seen_and_what_was_typed_goes_on_when_it_is_back(
    fleet: Fleet, proxies: list[Proxy]
):
    session = fleet.sh(ECHO)
    shows(session, b"ready")
    proxy = through(fleet, session, proxies)
    link = fleet.link(session)
    with Link.connect(str(session.run()), role="attach", cols=80, rows=24) as client:
        proxy.swallow = True
        eventually(lambda: link.down_since is not None, 10, what="the cut to be seen")
        client.send(wire.INPUT, b"typed while it was cut\r")
        with pytest.raises(Silent):
            client.request("ping", timeout_s=0.3)
        assert not client.closed
        proxy.swallow = False
        shows(session, b"<typed while it was cut>")
        assert client.request("ping")["ok"] is True
        assert not client.closed
    assert [news.kind for _, news in fleet.news if news.kind in (DOWN, OVER)][-1] == DOWN
    fleet.stop(session)


def test_who_looks_just_after_a_cut_has_what_came_meanwhile(fleet: Fleet, proxies: list[Proxy]):
    go = fleet.ground.place / "go"
    os.mkfifo(go)
    session = fleet.sh("stty raw -echo; echo ready; read line < go; head -c 20000000 /dev/zero; exec sleep 1000")
    shows(session, b"ready")
    proxy, link = through(fleet, session, proxies), fleet.link(session)
    fleet.do(link.caught_up(10))
    proxy.swallow = True
    eventually(lambda: link.down_since is not None, 10, what="the cut to be seen")
    go.write_text("now\n")
    eventually(lambda: len(truth(session, fleet)) > 20_000_000, what="the flood in the pod")
    proxy.swallow = False
    eventually(lambda: is_up(fleet, session), what="the link again")
    fleet.do(link.caught_up(10))
    assert len(session.output()) == len(truth(session, fleet))
    fleet.stop(session)


def test_a_pod_that_is_killed_is_not_told_dead_until_its_end_is_known(fleet: Fleet):
    session = fleet.sh(ASLEEP)
    shows(session, b"ready")
    pod = fleet.pod(session)
    pod.kill()
    eventually(lambda: not is_up(fleet, session), what="the cut")
    assert is_kept(str(session.run())) is True
    assert session.state == "running"
    with pytest.raises(Silent):
        Link.connect(str(session.run()), timeout_s=0.5)
    # the same volume in another pod: its files tell how the run ended
    pod.begin()
    assert fleet.ended(session) == "failed"
    assert session.story()[-1]["reason"] == "keeper lost"
    assert session.story()[-1]["actor"] == "recovery"
    fleet.start(session, argv=("sh", "-c", "echo second; sleep 1000"))
    shows(session, b"second", run=2)
    fleet.stop(session)


def test_a_server_that_is_killed_is_started_again_and_the_run_goes_on(fleet: Fleet):
    session = fleet.sh(ECHO)
    shows(session, b"ready")
    pod, agent = fleet.pod(session), session.agent_pid()
    for number in range(3):
        server = pod.server
        os.kill(server, signal.SIGKILL)
        eventually(partial(is_another, pod, server), what="another server")
        with Link.connect(str(session.run()), role="attach", cols=80, rows=24, timeout_s=30) as client:
            client.send(wire.INPUT, b"number %d\r" % number)
        shows(session, b"<number %d>" % number)
    assert session.agent_pid() == agent
    assert [line for line in session.story() if line["event"] == "state"][-1]["to"] == "running"
    fleet.stop(session)


def test_a_keeper_that_is_killed_in_its_pod_is_told_as_on_one_machine(fleet: Fleet):
    local = fleet.ground.begin_sh(ASLEEP)
    local.kill_keeper()
    session = fleet.sh(ASLEEP)
    shows(session, b"ready")
    fleet.pod(session).truth.kill_keeper()
    assert fleet.ended(session) == "failed"
    here, there = observe(fleet.home, local.id).facts, observe(fleet.home, session.id).facts
    assert session.story()[-1]["reason"] == "keeper lost"
    assert here.exit is None or here.exit.error == there.exit.error if there.exit is not None else False


def test_two_hubs_have_links_to_one_pod_and_one_that_does_not_read_slows_nobody(fleet: Fleet, proxies: list[Proxy]):
    """The second hub is one that says hello and takes nothing."""
    from hitchpost.fleet import frames
    from hitchpost.fleet.link import tcp
    from hitchpost.fleet.pipe import Pipe
    from hitchpost.fleet.tls import Identity, name_of_session

    session = fleet.sh("stty raw -echo; read line; head -c 30000000 /dev/zero; exec sleep 1000")
    pod = fleet.pod(session)

    async def deaf() -> Pipe:
        context = Identity(str(fleet.identity), is_pod=False).context()
        pipe = Pipe(context, name_of_session(session.id), beat_s=1, cut_s=60)
        await asyncio.get_running_loop().create_connection(lambda: pipe, sock=await tcp("127.0.0.1", pod.address()))
        await pipe.ready()
        pipe.send(frames.json_frame(frames.HELLO, {"v": 1, "session": session.id, "runs": {"1": {"end": 0}}}))
        pipe._transport.pause_reading()
        return pipe

    pipe = fleet.do(deaf())
    try:
        before = resident_kib(pod.server)
        with Link.connect(str(session.run()), role="attach", cols=80, rows=24) as client:
            client.send(wire.INPUT, b"\n")
        eventually(lambda: fleet.link(session).copy.ends.get(1) == 30_000_000, what="all of the output")
        assert resident_kib(pod.server) - before < MOST_KEPT_KIB
    finally:
        fleet.loop.call_soon_threadsafe(pipe.abort)
    fleet.stop(session)


def resident_kib(pid: int) -> int:
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def test_an_order_for_a_run_that_the_pod_has_begun_finds_it_and_an_older_one_is_refused(fleet: Fleet):
    session = fleet.sh(ASLEEP)
    shows(session, b"ready")
    from hitchpost.fleet.links import _order
    from hitchpost.runspec import RunSpec

    spec = RunSpec(session.id, str(session.folder), 1, (b"sleep", b"1000"), {}, str(fleet.ground.place), 0, 0, -1)
    again = fleet.links.ask(str(session.folder), _order(spec))
    assert (again["ok"], again["pid"]) == (True, session.agent_pid())
    fleet.stop(session, by="restart")
    assert fleet.links.ask(str(session.folder), _order(spec)) == again
    fleet.start(session, argv=("sh", "-c", ASLEEP))
    older = fleet.links.ask(str(session.folder), _order(spec))
    assert (older["ok"], older["code"]) == (False, Refused.code)
    assert older["error"] == "run 1 was ordered, but run 2 has begun here already"
    fleet.stop(session)
