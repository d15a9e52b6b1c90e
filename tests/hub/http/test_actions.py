"""Whatever a session's ``actions`` offer is accepted: each of them is carried out on a real session in that state."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from hitchpost.model import actions
from hitchpost.model.attention import BLOCKED, ERROR
from hitchpost.model.facts import ADOPTED
from hitchpost.ops.sessions.recover import RECOVERY, recover
from hitchpost.store.session import Session
from hitchpost.values import replace
from tests.boxes import ECHO, Boxed
from tests.cli.own_agents import ASKING, ASKS, own_agent
from tests.cli.places import new_session
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.support import eventually, halt
from tests.watched import say

LEAVES = "[ -e leave ] && exit {}; exec cat"
ONCE = "[ -e {0} ] && exec cat; touch {0}; exit {1}"
"""Ends the first time, and runs the next."""


@dataclass
class Stage:
    request: pytest.FixtureRequest
    ground: Ground
    hub: HubProcess
    after: ExitStack = field(default_factory=ExitStack)
    count: int = 0

    def __getattr__(self, name: str) -> Any:
        return self.request.getfixturevalue(name)

    def run(self, script: str, **wish: object) -> Truth:
        """A session by the hub. One that has ended at once is one, too."""
        before = set(self.ground.ids())
        folder = str(self.ground.place)
        answer = {"command": ["sh", "-c", script], "folder": folder, **wish}
        try:
            return Truth(self.ground.home, self.hub.ask("POST", "/api/sessions", answer)["session"]["id"])
        except Exception:
            (made,) = set(self.ground.ids()) - before
            return Truth(self.ground.home, made)

    def once(self, code: int, **wish: object) -> Truth:
        """A session that has ended with ``code``, and runs when it is started again."""
        self.count += 1
        session = self.run(ONCE.format(self.ground.home / f"once{self.count}", code), **wish)
        session.ended()
        return session

    def branch(self) -> dict[str, object]:
        self.count += 1
        return {"folder": str(self.repo.path), "branch": f"b{self.count}"}

    def shown(self, session: Truth) -> dict[str, Any]:
        return self.hub.ask("GET", f"/api/sessions/{session.id}")

    def until(self, session: Truth, **wanted: object) -> Truth:
        eventually(lambda: wanted.items() <= self.shown(session).items(), 30, what=str(wanted))
        return session


Scene = Callable[[Stage], Truth]


def of_record(word: str) -> Scene:
    def scene(stage: Stage) -> Truth:
        session = stage.once(3)
        stored = Session(str(session.folder), actor="test")
        with stored.lock():
            stored.change_record(word, run=1)
        return stage.until(session, record=word)

    return scene


def reports(state: str, *, in_worktree: bool = False) -> Scene:
    def scene(stage: Stage) -> Truth:
        where = stage.branch() if in_worktree else {}
        session = stage.run(f"{say(state)}exec cat", **where)
        return stage.until(session, attention={"idle": "waiting"}.get(state, state))

    return scene


def asks(stage: Stage) -> Truth:
    own_agent(stage.ground.place, "asker", ASKS, ASKING)
    stage.count += 1
    wish = {"agent": "asker", "folder": str(stage.ground.place), "name": f"asks{stage.count}"}
    made = stage.hub.ask("POST", "/api/sessions", wish)["session"]
    return stage.until(Truth(stage.ground.home, made["id"]), attention="blocked")


def created(stage: Stage) -> Truth:
    name = new_session(stage.ground.home, stage.ground.place, name=f"new{stage.count}")
    stage.count += 1
    return Truth(stage.ground.home, name)


def stopped(stage: Stage) -> Truth:
    session = stage.run("exec cat")
    stage.hub.ask("POST", f"/api/sessions/{session.id}/stop")
    return session


def resumable(stage: Stage) -> Truth:
    session = stopped(stage)
    stored = Session(str(session.folder), actor="test")
    with stored.lock():
        stored.save(replace(stored.record(), supports_resume=True))
    return stage.until(session, supports_resume=True)


def folder_gone(stage: Stage) -> Truth:
    stage.count += 1
    place = stage.ground.place / f"gone{stage.count}"
    place.mkdir()
    session = stage.run("exec cat", folder=str(place))
    shutil.rmtree(place)
    stage.until(session, state="orphaned")
    return session


def leased_folder_gone(stage: Stage) -> Truth:
    stage.count += 1
    place = stage.ground.place / f"leased{stage.count}"
    place.mkdir()
    session = stage.run("exec cat", folder=str(place), exclusive=True)
    shutil.rmtree(place)
    return stage.until(session, state="orphaned")


def worktree_gone(stage: Stage) -> Truth:
    session = stage.run("exec cat", **stage.branch())
    shutil.rmtree(stage.shown(session)["workspace"]["path"])
    return stage.until(session, state="orphaned")


def worktree_gone_and_agent(stage: Stage) -> Truth:
    session = worktree_gone(stage)
    os.kill(session.agent_pid(), signal.SIGKILL)
    eventually(lambda: "archive" in stage.shown(session)["actions"], 30)
    return session


def worktree_back(stage: Stage) -> Truth:
    session = worktree_gone_and_agent(stage)
    stage.hub.ask("POST", f"/api/sessions/{session.id}/restore")
    return session


def in_folder_with_lease(stage: Stage) -> Truth:
    stage.count += 1
    place = stage.ground.place / f"lease{stage.count}"
    place.mkdir()
    return stage.run("exec cat", folder=str(place), exclusive=True)


def process_stopped(stage: Stage) -> Truth:
    session = stage.run("exec cat")
    pid = session.agent_pid()
    halt(pid)
    stage.hub.ask("GET", "/api/sessions")
    return stage.until(session, headline="Paused")


def keeper_lost(stage: Stage) -> Truth:
    session = stage.run("exec cat")
    session.kill_keeper()
    return stage.until(session, state="failed")


def rebooted(stage: Stage) -> Truth:
    session = keeper_lost(stage)
    recover(str(stage.ground.home), session.id, actor=RECOVERY)
    stored = Session(str(session.folder), actor="test")
    with stored.lock():
        stored.change_record("suspended", run=1)
    return stage.until(session, record="suspended")


def stale(stage: Stage) -> Truth:
    boxed: Boxed = stage.boxed
    stage.count += 1
    session = boxed.run("sh", "-c", ECHO, name=f"boxed{stage.count}")
    boxed.ground.hitch("send", session.id, "leave")
    return stage.until(session, status="stale")


def in_container(stage: Stage) -> Truth:
    boxed: Boxed = stage.boxed
    stage.count += 1
    return stage.until(boxed.run("sh", "-c", ECHO, name=f"boxed{stage.count}"), state="running")


def adopted(stage: Stage) -> Truth:
    stage.count += 1
    work = f"work{stage.count}"
    subprocess.run(["tmux", "-f", "/dev/null", "new-session", "-d", "-s", work, "cat"], check=True)
    if stage.count == 1:
        stage.after.callback(subprocess.run, ["tmux", "kill-server"], check=False)
    made = stage.ground.hitch("adopt", "--tmux", work, "--name", work, "--json").json()
    return stage.until(Truth(stage.ground.home, made["id"]), state="running")


def adopted_and_ended(stage: Stage) -> Truth:
    session = adopted(stage)
    stage.hub.ask("POST", f"/api/sessions/{session.id}/stop")
    return session


SCENES: dict[str, Scene] = {
    "running": lambda stage: stage.run("exec cat"),
    "running in a worktree": lambda stage: stage.run("exec cat", **stage.branch()),
    "running in a leased folder": in_folder_with_lease,
    "working": reports("working"),
    "at its prompt": reports("idle"),
    "finished its turn": reports("done", in_worktree=True),
    "has an error": reports("error"),
    "asks": asks,
    "asks in its own way": reports("blocked"),
    "paused": process_stopped,
    "completed": lambda stage: stage.once(0),
    "completed in a worktree": lambda stage: stage.once(0, **stage.branch()),
    "failed": lambda stage: stage.once(3),
    "failed in a worktree": lambda stage: stage.once(3, **stage.branch()),
    "stopped": stopped,
    "stopped, with a conversation": resumable,
    "keeper lost": keeper_lost,
    "interrupted by a reboot": rebooted,
    "suspended": of_record("suspended"),
    "archived": of_record("archived"),
    "broken record": of_record("error"),
    "folder gone": folder_gone,
    "leased folder gone": leased_folder_gone,
    "worktree gone": worktree_gone,
    "worktree gone, agent ended": worktree_gone_and_agent,
    "worktree back": worktree_back,
    "created": created,
    "adopted": adopted,
    "adopted, ended": adopted_and_ended,
    "in a container": in_container,
    "stale": stale,
}
REQUESTS: dict[str, tuple[str, str, object]] = {
    "answer": ("POST", "/answer", {"choice": "yes"}),
    "look": ("GET", "/screen", None),
    "reply": ("POST", "/prompt", {"text": "go on"}),
    "review": ("GET", "/diff", None),
    "resume": ("POST", "/resume", None),
    "restart": ("POST", "/restart", None),
    "restart-in-container": ("POST", "/restart", None),
    "restore": ("POST", "/restore", None),
    "stop": ("POST", "/stop", None),
    "archive": ("POST", "/archive", None),
    "unarchive": ("POST", "/unarchive", None),
    "delete": ("DELETE", "", None),
    "explain": ("GET", "/explain", None),
}


@pytest.fixture
def stage(request: pytest.FixtureRequest, ground: Ground, hub: HubProcess) -> Iterator[Stage]:
    made = Stage(request, ground, hub)
    with made.after:
        yield made


@pytest.mark.parametrize("scene", SCENES)
def test_every_action_that_is_offered_works(stage: Stage, scene: str) -> None:
    make = SCENES[scene]
    first = stage.shown(make(stage))
    assert first["actions"], first
    for action in first["actions"]:
        session = make(stage)
        assert stage.shown(session)["actions"] == first["actions"]
        method, path, body = REQUESTS[action]
        try:
            stage.hub.ask(method, f"/api/sessions/{session.id}{path}", body)
        except Exception as refused:
            raise AssertionError(f"{scene}: {action} was refused: {refused}") from refused
    for name in stage.ground.ids():
        stage.ground.hitch("rm", "--force", name, check=False)


def test_the_requests_cover_every_action_there_is() -> None:
    known = {value for name, value in vars(actions).items() if name.isupper() and isinstance(value, str)}
    assert known - {ADOPTED, BLOCKED, ERROR} == set(REQUESTS)
