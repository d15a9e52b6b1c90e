"""The hub killed, stopped, doubled, starved and crowded: nothing is lost, nothing is doubled, no word is false."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import websockets

from hitchpost.hub import client as hub_client
from tests.ground import Ground, Truth
from tests.hubs import OUTPUT, Frame, HubProcess
from tests.support import Process, eventually, halt

ECHO = 'stty -echo; while read line; do echo "<$line>"; done'
LONG = "LONG" in os.environ
"""Set by ``script/faults --long``."""

KILLS, STANDING = (200, 100) if LONG else (10, 3)
TALK = "n=0; while :; do n=$((n+1)); echo line $n; sleep 0.01; done"
LONGEST_BLOCK_S = 0.25


def try_ask(hub: HubProcess, method: str, path: str, body: object = None) -> Any:
    """The answer; None when the hub was killed meanwhile, or refused."""
    try:
        return hub.ask(method, path, body)
    except (hub_client.NoHub, hub_client.HubRefused, ValueError):
        return None


def sessions(ground: Ground) -> list[Truth]:
    return [Truth(ground.home, folder.name) for folder in (ground.home / "sessions").iterdir() if folder.name[0] != "."]


def agents(ground: Ground, mark: str) -> list[Process]:
    """Without the copies of a shell that are about to become another program."""
    found = [process for process in ground.processes() if mark in process.argv and not process.is_keeper]
    return [process for process in found if process.parent not in {other.pid for other in found}]


def hub_pid(hub: HubProcess) -> int:
    assert hub.process is not None
    return hub.process.pid


def cpu_s(hub: HubProcess) -> float:
    with open(f"/proc/{hub_pid(hub)}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def loop_s(hub: HubProcess) -> float:
    """How long the event loop's thread has worked: however busy the machine is, a wait for its turn is not in it."""
    with open(f"/proc/{hub_pid(hub)}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9


class Load:
    """Clients that create, stop, resume and remove without pause.

    ``made`` are the sessions that the hub acknowledged; of ``removed`` ones it may be killed before they are.
    """

    def __init__(self, hub: HubProcess, ground: Ground) -> None:
        self.hub, self.ground = hub, ground
        self.over = threading.Event()
        self.made: dict[str, str] = {}
        self.removed: set[str] = set()

    def one(self, number: int) -> None:
        dice = random.Random(number)
        count = 0
        mine: list[str] = []
        while not self.over.is_set():
            deed = dice.choice(["create", "stop", "resume"]) if len(mine) >= 2 else "create"
            if deed == "create" and len(mine) < 4:
                count += 1
                name = f"n{number}-{count}"
                wish = {"command": ["sh", "-c", ECHO, name], "folder": str(self.ground.place), "name": name}
                answer = try_ask(self.hub, "POST", "/api/sessions", wish)
                if answer is not None:
                    self.made[answer["session"]["id"]] = name
                    mine.append(answer["session"]["id"])
            elif deed == "create":
                gone = mine.pop(0)
                self.removed.add(gone)
                try_ask(self.hub, "DELETE", f"/api/sessions/{gone}?force=true")
            else:
                try_ask(self.hub, "POST", f"/api/sessions/{dice.choice(mine)}/{deed}")

    @contextmanager
    def running(self, threads: int) -> Iterator[None]:
        with ThreadPoolExecutor(threads) as pool:
            work = [pool.submit(self.one, number) for number in range(threads)]
            try:
                yield
            finally:
                self.over.set()
            for each in work:
                each.result()


class Follower:
    """A client that follows one session for ever: cut off, it comes back and goes on where it was."""

    def __init__(self, hub: HubProcess, session: str) -> None:
        self.hub, self.session = hub, session
        self.seen = bytearray()
        self.over = False

    def run(self) -> None:
        asyncio.run(self._follow())

    async def _follow(self) -> None:
        while not self.over:
            try:
                await self._listen()
            except (OSError, websockets.WebSocketException):
                await asyncio.sleep(0.01)  # the hub is not back yet

    async def _listen(self) -> None:
        async with self.hub.ws() as client:
            await client.say("session.attach", sessionId=self.session, readOnly=True, **{"from": len(self.seen)})
            while not self.over:
                got = await client.read()
                if isinstance(got, Frame):
                    assert (got.kind, got.offset) == (OUTPUT, len(self.seen)), f"{got.kind} at {got.offset}"
                    self.seen += got.data

    @contextmanager
    def following(self) -> Iterator[None]:
        with ThreadPoolExecutor(1) as pool:
            work = pool.submit(self.run)
            try:
                yield
            finally:
                self.over = True
            work.result()


@pytest.mark.ids("F30")
@pytest.mark.timeout(3600 if LONG else 240)
def test_a_hub_killed_again_and_again_under_load_loses_and_doubles_nothing(ground: Ground, hub: HubProcess) -> None:
    standing = [ground.begin_sh(ECHO, name, name=name) for name in (f"standing{n}" for n in range(STANDING))]
    talking = ground.begin_sh(TALK, "talking", name="talking")
    load, follower = Load(hub, ground), Follower(hub, talking.id)
    dice = random.Random(30)
    worked: list[float] = []
    away: list[float] = []
    with load.running(2), follower.following():
        for number in range(KILLS):
            enough = len(load.made) + 1
            if number % 2:
                eventually(lambda wanted=enough: len(load.made) >= wanted, 60, "a session more")  # type: ignore[misc]
            threading.Event().wait(dice.uniform(0, 0.25))
            hub.kill()
            began = time.monotonic()
            hub.start(warm=not LONG)
            away.append(time.monotonic() - began)
            worked.append(cpu_s(hub))
        reached = len(talking.output())
        eventually(lambda: len(follower.seen) >= reached, 60, "every byte at the client")
    print(f"{KILLS} kills, {len(load.made)} sessions made: back after {median(away):.2f} s, at most {max(away):.2f} s")
    assert max(worked) < 2
    assert follower.seen == talking.output()[: len(follower.seen)]
    found = sessions(ground)
    assert set(load.made) - load.removed <= {session.id for session in found}
    rows = {row["id"]: row for row in hub.ask("GET", "/api/sessions?all=true")}
    names = [row["name"] for row in rows.values()]
    assert len(names) == len(set(names))

    def settled() -> bool:
        states = {row["state"] for row in hub.ask("GET", "/api/sessions?all=true")}
        return states.isdisjoint({"starting", "stopping"})

    eventually(settled, 10, "an end of starting and stopping")
    rows = {row["id"]: row for row in hub.ask("GET", "/api/sessions?all=true")}
    assert set(rows) == {session.id for session in found}
    assert {rows[session.id]["state"] for session in (*standing, talking)} == {"running"}
    for session in found:
        row = rows[session.id]
        lives = agents(ground, row["name"])
        assert len(lives) == (row["state"] == "running"), f"{row['label']}: {[str(one) for one in lives]}"
        assert session.state == row["state"]
        for run in range(1, row["run"] + 1):
            # the story is written first: a change that a kill cut off is told again when it is made
            told = [state for state, _ in groupby(session.states(run))]
            assert len(told) == len(set(told)), f"run {run} of {session.id} went through {told}"
        if row["state"] == "failed":  # only a start that was killed half-way: there was no keeper yet
            assert set(session.states(row["run"])) == {"starting", "failed"}, session.story()
    for session in found:
        if session.state == "running":
            ground.end(session)


@pytest.mark.ids("F31")
def test_a_hub_that_stood_still_tells_of_no_false_death(ground: Ground, hub: HubProcess) -> None:
    live = [ground.begin_sh(ECHO, name=f"live{number}") for number in range(3)]
    flood = ground.begin_sh("while :; do echo x; done", name="flood")
    dying = ground.begin_sh("read line; exit 7", name="dying")

    async def scene() -> list[dict[str, Any]]:
        async with hub.ws() as client:
            for session in (*live, flood):
                await client.attach(session.id)
            halt(hub_pid(hub))
            ground.hitch("send", "dying", "x")
            dying.ended()
            with pytest.raises(hub_client.NoHub):
                await asyncio.to_thread(hub_client.ask, hub.home, "GET", "/api/health", timeout_s=1)
            os.kill(hub_pid(hub), signal.SIGCONT)
            told = await client.until("terminal.exit", dying.id)
            assert told["exitCode"] == 7
            for session in live:
                await client.say("terminal.input", sessionId=session.id, data="here\r")
                eventually(lambda one=session: b"<here>" in one.output())  # type: ignore[misc]
            return client.events

    events = asyncio.run(scene())
    names = {row["name"]: row["status"] for row in hub.ask("GET", "/api/sessions")}
    assert names == {"live0": "running", "live1": "running", "live2": "running", "flood": "running", "dying": "failed"}
    assert not [event for event in events if event["type"] == "terminal.exit"]
    for session in (*live, flood):
        ground.end(session)


@pytest.mark.ids("F32", "F33")
def test_of_many_hubs_one_serves_and_after_its_kill_the_next_may(ground: Ground, hub: HubProcess) -> None:
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: ground.hitch("up", "--foreground", "--port", "0", check=4), range(2)))
    assert all("another hub serves this home" in answer.err for answer in answers)
    assert hub.ask("GET", "/api/health")["pid"] == hub_pid(hub)
    hub.kill()
    hub.start()
    assert hub.ask("GET", "/api/health")["ok"] is True


def past(ground: Ground, source: Truth, count: int) -> None:
    """Copies of a session that has ended, under ids of their own."""
    alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
    dice = random.Random(35)
    for number in range(count):
        name = "".join(dice.choices(alphabet, k=len(source.id)))
        folder = source.folder.parent / name
        shutil.copytree(source.folder, folder, ignore=shutil.ignore_patterns("*.sock"))
        for file, fields in (("session.json", {"id": name, "name": f"past{number}", "index": number + 100}),):
            value = json.loads((folder / file).read_bytes())
            (folder / file).write_text(json.dumps({**value, **fields}))
        state = json.loads((folder / "state.json").read_bytes())
        (folder / "state.json").write_text(json.dumps({**state, "session_id": name}))


@contextmanager
def loop_traced(hub: HubProcess, log: Path) -> Iterator[None]:
    """Lists what the event loop's own thread asks of the disk; what other threads ask is their business."""
    watched = "trace=%file,getdents64,fsync,fdatasync,flock,ftruncate,read,pread64"
    words = ["strace", "-y", "-qq", "-p", str(hub_pid(hub)), "-o", str(log), "-e", watched]
    tracer = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    eventually(lambda: f"TracerPid:\t{tracer.pid}\n" in Path(f"/proc/{hub_pid(hub)}/status").read_text(), what="strace")
    try:
        yield
    finally:
        tracer.terminate()
        tracer.wait()


@pytest.mark.ids("F35")
def test_whatever_the_disk_does_the_event_loop_does_not_wait_for_it(ground: Ground, hub: HubProcess) -> None:
    old = ground.begin_sh(ECHO, name="old")
    log = ground.place / "trace"

    async def scene() -> None:
        async with hub.ws() as client:
            channel = (await client.attach(old.id))["channel"]
            await client.say("terminal.input", sessionId=old.id, data="one\r")
            await client.until_shown(channel, b"<one>")
            new = await asyncio.to_thread(lambda: ground.begin_sh("read line; exit 3", name="new"))
            await client.until("session.created", new.id)
            await client.attach(new.id)
            await client.say("terminal.input", sessionId=new.id, data="\r")
            await client.until("terminal.exit", new.id, exitCode=3)
            await client.say("session.resume", sessionId=new.id)
            await client.until("session.attached", new.id, run=2)
            await asyncio.to_thread(ask_everything, new.id)
            await client.until("session.removed", new.id)

    def ask_everything(session: str) -> None:
        here = f"/api/sessions/{session}"
        for path in ("/api/health", "/api/sessions?all=true", here, f"{here}/explain", f"{here}/story", "/api/status"):
            hub.ask("GET", path)
        ground.hitch("ps", "--all")
        hub.ask("POST", f"{here}/prompt", {"text": "done"})
        hub.ask("POST", f"{here}/stop")
        hub.ask("POST", f"{here}/resume")
        hub.ask("DELETE", f"{here}?force=true")

    with loop_traced(hub, log):
        asyncio.run(scene())
    calls = log.read_text().splitlines()
    assert [call for call in calls if str(ground.home) in call and not call.startswith("connect(")] == []
    ground.end(old)


@pytest.mark.ids("F41")
def test_the_hub_answers_at_once_while_it_has_much_to_look_at(ground: Ground, hub: HubProcess) -> None:
    source = ground.begin_sh("exit 0", name="source")
    source.ended()
    live = [ground.begin_sh(ECHO, name=f"live{number}") for number in range(5)]
    over = threading.Event()
    past(ground, source, 200)
    eventually(lambda: hub.ask("GET", "/api/health")["sessions"] == 206, 60)
    hub.kill()
    hub.start()
    assert hub.ask("GET", "/api/health")["sessions"] == 206

    def churn() -> None:
        names = [session.folder / "session.json" for session in sessions(ground)]
        while not over.is_set():
            for path in names:
                new = ground.home / "again.json"
                new.write_bytes(path.read_bytes())
                new.rename(path)

    took = []
    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(churn)
        try:
            until = time.monotonic() + 2
            while time.monotonic() < until:
                began = loop_s(hub)
                hub.ask("GET", "/api/health")
                took.append(loop_s(hub) - began)
        finally:
            over.set()
        busy.result()
    assert max(took) < LONGEST_BLOCK_S
    for session in live:
        ground.end(session)


def _first_free(pid: int) -> int:
    held = set(map(int, os.listdir(f"/proc/{pid}/fd")))
    return min(set(range(len(held) + 1)) - held)


@contextmanager
def starved(hub: HubProcess, spare: int) -> Iterator[None]:
    """Leave the hub only ``spare`` descriptors more than it has open for good: what a look opens is closed again."""
    pid = hub_pid(hub)
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    first_free = min(_first_free(pid) for _ in range(500))  # there may be gaps below the highest
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE, (first_free + spare, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@contextmanager
def kept_open(hub: HubProcess) -> Iterator[http.client.HTTPConnection]:
    """One connection to the Unix socket for many requests."""
    connection = http.client.HTTPConnection("hub")
    connection.sock = hub_client.connect(hub.home, 30)
    try:
        yield connection
    finally:
        connection.close()


def post(connection: http.client.HTTPConnection, path: str, body: object) -> tuple[int, str]:
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@pytest.mark.ids("F74")
def test_a_hub_without_descriptors_refuses_new_work_and_recovers(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh(ECHO, name="dev")
    dying = ground.begin_sh("read line; exit 5", name="dying")
    other = ground.begin_sh(ECHO, name="other")
    wish = {"command": ["sleep", "1000"], "folder": str(ground.place), "name": "new"}
    eventually(lambda: hub.ask("GET", "/api/health")["live"] == 3)

    def ps_is_right() -> bool:
        rows = {row["name"]: row["status"] for row in ground.hitch("ps", "--json").json()}
        return rows == {"dev": "running", "dying": "failed", "other": "running"}

    async def scene() -> None:
        async with hub.ws() as client:
            channel = (await client.attach(dev.id))["channel"]
            await client.attach(dying.id)
            await client.say("terminal.input", sessionId=dev.id, data="hello\r")
            await client.until_shown(channel, b"<hello>")
            with kept_open(hub) as local:
                assert post(local, "/api/sessions", {})[0] == 422
                with starved(hub, 0):
                    status, answer = await asyncio.to_thread(post, local, "/api/sessions", wish)
                    assert (status, "Too many open files" in answer) == (503, True), answer
                    await client.say("terminal.input", sessionId=dev.id, data="still here\r")
                    await client.until_shown(channel, b"<still here>")
                    await client.say("session.attach", sessionId=other.id)
                    assert "Too many open files" in (await client.until("error", other.id))["message"]
                    await client.say("terminal.input", sessionId=dying.id, data="x\r")
                    assert await asyncio.to_thread(dying.ended) == "failed"
                    await asyncio.to_thread(eventually, ps_is_right, 2, "the truth in hitch ps")
            told = await client.until("terminal.exit", dying.id)
            assert told["exitCode"] == 5
            await client.attach(other.id)

    asyncio.run(scene())
    assert [row["name"] for row in hub.ask("GET", "/api/sessions")] == ["dev", "dying", "other"]
    made = hub.ask("POST", "/api/sessions", wish)["session"]
    assert made["state"] == "running"
    for session in (dev, other, Truth(ground.home, made["id"])):
        ground.end(session)


@pytest.mark.ids("F17", "F73")
def test_a_view_of_a_keeper_that_cannot_be_reached_goes_on_when_it_can(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh(ECHO, name="dev")
    hub.kill()
    halt(dev.keeper_pid())
    socket, away = dev.run() / "ctl.sock", dev.run() / "away"
    socket.rename(away)
    hub.start()
    assert hub.ask("GET", "/api/sessions/dev")["status"] == "running"

    async def scene() -> None:
        async with hub.ws() as client:
            channel = (await client.attach(dev.id))["channel"]
            while not client.frames:
                await client.read()
            await client.say("terminal.input", sessionId=dev.id, data="x")
            told = await client.until("error", dev.id)
            assert told["message"] == "the session's keeper cannot be reached yet; try again in a moment"
            before = cpu_s(hub)
            await asyncio.sleep(0.5)
            assert cpu_s(hub) - before < 0.25
            away.rename(socket)
            os.kill(dev.keeper_pid(), signal.SIGCONT)
            ground.hitch("send", "dev", "found")
            await client.until_shown(channel, b"<found>")
            await client.say("terminal.input", sessionId=dev.id, data="typed\r")
            await client.until_shown(channel, b"<typed>")
            await asyncio.to_thread(ground.end, dev)
            await client.until("terminal.exit", dev.id)
            await client.say("terminal.input", sessionId=dev.id, data="x")
            told = await client.until("error", dev.id)
            assert told["message"] == "the session has ended and takes no input"

    asyncio.run(scene())
