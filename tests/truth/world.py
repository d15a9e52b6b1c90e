"""Sessions beside a hub, and everything that can happen to them, by chance but from a seed."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from typing import Any

from hitchpost.errors import HitchpostError
from hitchpost.hub import client as hub_client
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.send import send
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.sessions.start import start
from hitchpost.ops.views.observe import observe
from hitchpost.runtimes.tmux import server_pid
from hitchpost.settings import Settings
from tests.boxes import Boxed
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.support import Hitch, Process
from tests.truth.surfaces import Heard, Surfaces, contradictions, looks

AGENT = """
stty -echo
echo ready
while read -r line; do
    case $line in
    "leave something") trap "" HUP; sleep 1000 & exit 0 ;;
    "leave "*) exit "${line#leave }" ;;
    *) echo "<$line>" ;;
    esac
done
"""
MOST_SESSIONS = 4
HASTY = Settings(grace_s=1.0)
DEEDS = ("stop", "restart", "resume", "archive", "cancel", "rm", "rm --force")
EXIT_CODES = range(6)


@dataclass(slots=True)
class Session:
    truth: Truth
    name: str
    runtime: str
    place: Path
    stopped: set[int] = field(default_factory=set)
    """Processes that a signal has stopped."""

    @property
    def there(self) -> bool:
        return self.truth.folder.exists()

    def run_file(self) -> dict[str, Any]:
        try:
            return self.truth.run_file(self.truth.state_file()["run"])
        except (OSError, ValueError):
            return {}

    def pid(self, whose: str) -> int | None:
        """The agent's or the keeper's process, when it lives. A pid of a container's inside is none of ours."""
        named = self.run_file().get(whose) or {}
        pid = named.get("pid")
        if not isinstance(pid, int) or (whose == "agent" and self.runtime == "docker"):
            return None
        process = Process.read(pid)
        same = process is not None and not process.is_zombie and process.start_ticks == named["start"]
        return pid if same else None


class World:
    def __init__(self, ground: Ground, seed: int, runtimes: tuple[str, ...], boxed: Boxed | None = None) -> None:
        self.ground, self.boxed, self.runtimes = ground, boxed, runtimes
        self.random = random.Random(seed)
        self.hub = HubProcess(ground)
        self.hub.start()
        self.sessions: list[Session] = []
        self.surfaces = Surfaces(str(ground.home), {})
        self.story: list[str] = []
        self.heard: Heard | None = Heard(str(ground.home))
        self.engine_lives = boxed is not None
        self._deeds = ThreadPoolExecutor(4, "deed")
        for runtime in runtimes:
            self.new(runtime)

    # events -----------------------------------------------------------------------------------------------------

    def event(self) -> list[str]:
        """Let something happen, and return the contradictions that there were from that moment on."""
        happening = self._happening()
        found: list[str] = []
        pushed_first = self.random.random() < 0.5
        if pushed_first:
            found += self._pushed()
        while happening is not None and not happening.done():
            found += contradictions(looks(self.surfaces), busy=True)
        if happening is not None:
            happening.result()
        found += contradictions(looks(self.surfaces, 3))
        if not pushed_first:
            found += self._pushed()
        return found

    def _pushed(self) -> list[str]:
        return [] if self.heard is None else list(self.heard.differs_from(self.surfaces.files))

    def _happening(self) -> Future[None] | None:
        """One event. What takes its time is still going on when this returns."""
        there = [one for one in self.sessions if one.there]
        if not there and self.boxed is not None and not self.engine_lives:
            self._engine_comes()
        one = self.random.choice(there) if there else self.new(self.random.choice(self.runtimes))
        able: list[Callable[[], Future[None] | None]] = [lambda: self._hub_dies() if self.heard else self._hub_comes()]
        able += self._of_processes(one) * 2
        if len(there) < MOST_SESSIONS and (one.runtime != "docker" or self.engine_lives):
            able.append(lambda: self._told(f"new {one.runtime}", self.new, one.runtime))
        if not one.stopped:
            able += [lambda: self._deed(one, self.random.choice(DEEDS))] * 4
        if one.runtime == "tmux" and (server := server_pid(str(one.truth.folder))) is not None:
            able.append(lambda: self._told(f"kill -9 of the tmux server of {one.name}", kill, server, SIGKILL))
        if self.boxed is not None:
            able += [self._engine_dies] if self.engine_lives else [self._engine_comes] * 4
        if one.runtime == "docker" and self.engine_lives:
            able += self._of_container(one) * 2
        if one.place.exists():
            able.append(lambda: self._told(f"the folder of {one.name} is deleted", shutil.rmtree, one.place))
        return self.random.choice(able)()

    def _told(self, what: str, deed: Callable[..., object], *args: object) -> None:
        self.story.append(what)
        deed(*args)

    def _of_processes(self, one: Session) -> list[Callable[[], None]]:
        found: list[Callable[[], None]] = []
        agent, keeper = one.pid("agent"), one.pid("keeper")

        def hit(what: str, pid: int, number: signal.Signals) -> Callable[[], None]:
            def deed() -> None:
                self.story.append(f"{number.name} to the {what} of {one.name}")
                kill(pid, number)
                (one.stopped.add if number == signal.SIGSTOP else one.stopped.discard)(pid)

            return deed

        for pid in one.stopped:
            what = "agent" if pid == agent else "keeper"
            found.append(hit(what, pid, signal.SIGCONT))
        for what, living in (("agent", agent), ("keeper", keeper)):
            if living is not None and not one.stopped:
                found += [hit(what, living, signal.SIGKILL), hit(what, living, signal.SIGSTOP)]
        if agent is not None and not one.stopped:
            found += [hit("agent", agent, signal.SIGSEGV)]
        if keeper is not None and not one.stopped:
            for text in ("hello", "leave 0", "leave 3", "leave something"):
                found.append(lambda text=text: self._told(f"{one.name} reads {text!r}", self._say, one, text))  # type: ignore[misc]
        return found

    def _of_container(self, one: Session) -> list[Callable[[], None]]:
        assert self.boxed is not None
        engine = self.boxed.engine
        try:
            container = self.boxed.container(one.truth)
            paused = engine.inspect(container)["State"]["Paused"]
        except (OSError, KeyError, AssertionError):
            return []  # there is none, or not any more
        deeds = [("unpause",)] if paused else [("rm", "-f"), ("pause",), ("kill",), ("stop", "-t", "0")]

        def hit(words: tuple[str, ...]) -> Callable[[], None]:
            what = f"docker {' '.join(words)} of the container of {one.name}"
            return lambda: self._told(what, lambda: engine.docker(*words, container, check=False))

        return [hit(words) for words in deeds]

    def _say(self, one: Session, text: str) -> None:
        try:
            send(observe(str(self.ground.home), one.truth.id), text, force=True)
        except (HitchpostError, FileNotFoundError):
            return  # it has just ended

    # the engine and the hub -------------------------------------------------------------------------------------

    def _engine_dies(self) -> None:
        self.story.append("kill -9 of the engine")
        assert self.boxed is not None
        self.boxed.engine.kill()
        self.engine_lives = False

    def _engine_comes(self) -> None:
        self.story.append("the engine is back")
        assert self.boxed is not None
        self.boxed.engine.start()
        self.engine_lives = True

    def _hub_dies(self) -> None:
        self.story.append("kill -9 of the hub")
        self.hub.kill()
        assert self.heard is not None
        self.heard.close()
        self.heard = None

    def _hub_comes(self) -> None:
        self.story.append("a new hub")
        self.hub.start()
        self.heard = Heard(str(self.ground.home))

    # deeds of people --------------------------------------------------------------------------------------------

    def new(self, runtime: str) -> Session:
        number = len(self.sessions)
        name, place = f"s{number}", self.ground.watch.scratch / f"place{number}"
        place.mkdir()
        argv = ("sh", "-c", AGENT)
        if runtime == "docker":
            assert self.boxed is not None
            truth = self.boxed.run(*argv, name=name, place=place)
        else:
            home = str(self.ground.home)
            spec = SessionSpec(str(place), command=argv, name=name, runtime=runtime)
            truth = Truth(self.ground.home, create(home, spec, HASTY, actor="test").id)
            env = {**Hitch.environment(), "SHELL": "/bin/sh"}
            start(home, truth.id, HASTY, caller=env, actor="test")
        made = Session(truth, name, runtime, place)
        self.sessions.append(made)
        self.surfaces.known[truth.id] = name
        return made

    def _deed(self, one: Session, deed: str) -> Future[None]:
        """By the command or by the hub, while everybody looks. It may be refused; it may not break."""
        door = self.random.choice(("hub", "command")) if self.heard else "command"
        self.story.append(f"{deed} {one.name} by the {door}")
        return self._deeds.submit(self._by_hub if door == "hub" else self._by_command, one, deed)

    def _by_command(self, one: Session, deed: str) -> None:
        answer = self.ground.hitch(*deed.split(), one.truth.id, check=False)
        assert answer.code in EXIT_CODES, answer
        assert "Traceback" not in answer.err, answer

    def _by_hub(self, one: Session, deed: str) -> None:
        path = f"/api/sessions/{one.truth.id}"
        method, path = ("DELETE", path) if deed.startswith("rm") else ("POST", f"{path}/{deed}")
        path += "?force=true" if deed.endswith("--force") else ""
        try:
            self.hub.ask(method, path)
        except hub_client.HubRefused as refused:
            if refused.status not in (404, 409, *([] if self.engine_lives else [422, 502, 503])):
                raise

    # the end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        for one in self.sessions:
            for pid in one.stopped:
                kill(pid, signal.SIGCONT)
        self._deeds.shutdown()
        if self.boxed is not None and not self.engine_lives:
            self._engine_comes()
        if self.heard is not None:
            self.heard.close()
            self.hub.stop()
        for one in self.sessions:
            self.ground.hitch("rm", "--force", one.truth.id, check=False)
            shutil.rmtree(one.place, ignore_errors=True)


def kill(pid: int, number: int) -> None:
    """It may have ended since it was chosen."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
