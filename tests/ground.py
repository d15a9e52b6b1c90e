"""Ground truth about sessions: files and the process table, read without the readers that are under test."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hitchpost.errors import EndedAtOnce
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.sessions.start import start
from hitchpost.ops.sessions.stop import stop
from hitchpost.settings import Settings
from tests.support import Answer, Hitch, LeakWatch, Process, eventually, halt

ENDED = ("stopped", "failed", "completed")
NEVER_RAN: dict[str, Any] = {
    "schema": 1,
    "code": None,
    "signal": None,
    "signal_number": None,
    "core_dumped": False,
    "wait_status": None,
    "out_of_memory": False,
    "intent": None,
    "error": None,
    "attention": None,
    "survivors": 0,
    "lost_output_bytes": 0,
}


@dataclass(frozen=True, slots=True)
class Truth:
    """One session on disk and in the process table."""

    home: Path
    id: str

    @property
    def folder(self) -> Path:
        return self.home / "sessions" / self.id

    def run(self, number: int = 1) -> Path:
        return self.folder / "runs" / str(number)

    def state_file(self) -> dict[str, Any]:
        return json.loads((self.folder / "state.json").read_bytes())

    @property
    def state(self) -> str:
        return self.state_file()["state"]

    def exit(self, run: int = 1) -> dict[str, Any]:
        """All of ``exit.json`` but what differs each time: when it was, and what it used."""
        value = json.loads((self.run(run) / "exit.json").read_bytes())
        assert set(value) >= {"rusage", "ended_at"}
        return {key: item for key, item in value.items() if key not in ("rusage", "ended_at", "ended_at_known")}

    def exit_status(self, run: int = 1) -> str:
        return (self.run(run) / "exit_status").read_text()

    def run_file(self, run: int = 1) -> dict[str, Any]:
        return json.loads((self.run(run) / "run.json").read_bytes())

    def story(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "story.jsonl").read_text().splitlines()]

    def states(self, run: int = 1) -> list[str]:
        """The states that the run went through, as the story has them."""
        return [line["to"] for line in self.story() if line["event"] == "state" and line["run"] == run]

    def output(self, run: int = 1) -> bytes:
        return b"".join(map(present, sorted((self.run(run) / "output").glob("*.log"))))

    def keeper_pid(self, run: int = 1) -> int:
        return int((self.run(run) / "keeper.lock").read_text().split()[0])

    def agent_pid(self, run: int = 1) -> int:
        return self.run_file(run)["agent"]["pid"]

    def kill_keeper(self, number: int = signal.SIGKILL, run: int = 1) -> None:
        pid = self.keeper_pid(run)
        process = Process.read(pid)
        assert process is not None
        assert process.is_keeper
        if number == signal.SIGSTOP:
            halt(pid)
            return
        os.kill(pid, number)
        if number == signal.SIGKILL:
            eventually(lambda: not alive(pid), what="the end of the keeper")

    def ended(self, run: int = 1, timeout_s: float = 60) -> str:
        """Wait until the run has ended, its keeper included; the final state."""
        lock = self.run(run) / "keeper.lock"

        def final() -> str:
            value = self.state_file()
            assert value["run"] == run
            return value["state"] if value["state"] in ENDED and not alive(int(lock.read_text().split()[0])) else ""

        return eventually(final, timeout_s, what=f"the end of run {run}")


@dataclass(slots=True)
class Ground:
    """Where sessions of a test are started: ``place`` is the folder that they work in."""

    home: Path
    place: Path
    watch: LeakWatch
    hitch: Hitch

    def configure(self, text: str) -> None:
        """Write ``config.toml``."""
        folder = Path(os.environ["XDG_CONFIG_HOME"]) / "hitchpost"
        folder.mkdir(exist_ok=True)
        (folder / "config.toml").write_text(text)

    def add_agent(self, name: str, text: str) -> None:
        """A person's own file in the catalog of agents."""
        folder = Path(os.environ["XDG_CONFIG_HOME"]) / "hitchpost" / "agents"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.toml").write_text(text)

    def run(
        self, *argv: str, name: str | None = None, place: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Truth:
        """Start a session with the command."""
        named = ("--name", name) if name is not None else ()
        words = ("run", "--json", "--workspace", str(place or self.place), *named, "--", *argv)
        return self.made(*words, env=env)

    def made(self, *words: str, env: Mapping[str, str] | None = None, timeout_s: float = 60) -> Truth:
        """The session that ``hitch run --json …`` made. One whose program has ended at once is a session, too."""
        before = set(self.ids())
        answer = self.hitch(*words, env=env, check=False, timeout_s=timeout_s)
        if answer.code == 1 and "ended at once" in answer.err:
            (made,) = set(self.ids()) - before
            return Truth(self.home, made)
        return Truth(self.home, answer.checked(True).json()["id"])

    def ids(self) -> list[str]:
        folder = self.home / "sessions"
        return [name for name in os.listdir(folder) if not name.startswith(".")] if folder.exists() else []

    def sh(self, script: str, *argv: str, **options: Any) -> Truth:
        return self.run("sh", "-c", script, "agent", *argv, **options)

    def begin(
        self,
        *argv: str,
        name: str | None = None,
        place: Path | None = None,
        settings: Settings | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Truth:
        """Start a session without the command: the same operations, in this process."""
        settings = settings or Settings()
        spec = SessionSpec(str(place or self.place), command=argv, name=name)
        record = create(str(self.home), spec, settings, actor="test")
        with suppress(EndedAtOnce):
            start(str(self.home), record.id, settings, caller={**Hitch.environment(), **(env or {})}, actor="test")
        return Truth(self.home, record.id)

    def begin_sh(self, script: str, *argv: str, **options: Any) -> Truth:
        return self.begin("sh", "-c", script, "agent", *argv, **options)

    def ps(self, session: Truth) -> dict[str, Any]:
        rows = self.hitch("ps", "--json", "--all").json()
        return next(row for row in rows if row["id"] == session.id)

    def stop(self, session: Truth, *words: str, check: bool | int = True) -> Answer:
        return self.hitch("stop", session.id, *words, check=check)

    def end(self, session: Truth, grace_s: float | None = None) -> None:
        """Stop a session without the command."""
        stop(str(self.home), session.id, grace_s=grace_s, actor="test")

    def processes(self) -> list[Process]:
        """Every live process of the test, whatever it did to its parent, session or environment."""
        return [process for process in self.watch.processes() if not process.is_zombie]

    def said(self, name: str) -> str:
        """What an agent wrote to a file in its folder, once it is whole (ends with a newline)."""
        path = self.place / name
        return eventually(lambda: whole(path), what=f"the file {name}")


def present(path: Path) -> bytes:
    """A file's bytes; none when it has gone meanwhile, as the oldest segment of a log may."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def whole(path: Path) -> str:
    text = path.read_text() if path.exists() else ""
    return text if text.endswith("\n") else ""


def alive(pid: int) -> bool:
    process = Process.read(pid)
    return process is not None and not process.is_zombie


def waiting_for(folder: Path, starter: int = 0) -> list[int]:
    """The keepers that wait for the run in ``folder``, or have it. What detaches one is its starter's own child."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"HITCHPOST_KEEPER={folder}".encode() in environment.read_bytes().split(b"\0"):
                found.append(int(environment.parent.name))
        except OSError:
            continue
    return [pid for pid in found if (seen := Process.read(pid)) is not None and seen.parent != (starter or os.getpid())]


def descendants(pid: int) -> Iterator[Process]:
    everyone = list(Process.all())
    todo = [pid]
    while todo:
        parent = todo.pop()
        for process in everyone:
            if process.parent == parent and not process.is_zombie:
                todo.append(process.pid)
                yield process


def died_of(number: int, *, core: bool = False, **more: Any) -> dict[str, Any]:
    """What ``exit.json`` says of a death by signal."""
    return {
        **NEVER_RAN,
        "signal": signal.Signals(number).name,
        "signal_number": int(number),
        "core_dumped": core,
        "wait_status": int(number) | (0x80 if core else 0),
        **more,
    }


def left_with(code: int, **more: Any) -> dict[str, Any]:
    """What ``exit.json`` says of an exit with a code."""
    return {**NEVER_RAN, "code": code, "wait_status": code << 8, **more}
