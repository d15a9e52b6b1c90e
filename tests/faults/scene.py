"""A state folder of its own for one shot of the campaign, and the truth about it, found without the help of hitch."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hitchpost.cli.main import main
from tests.faults.tracing import Done, process
from tests.support import TEMP_PREFIX, end_home

MEMORY = Path("/dev/shm")
NAME = "dev"
AGENT = 'exec 9>>"$1"; flock -n 9 || { echo "$$" >>"$1.double"; exit 66; }; read line <"$1.fifo"; echo bye; exit 3'
"""Takes a lock for its whole life, so that two agents of one session cannot be alive at once without a trace."""

SOON_S = 2.0
SETTLED_S = 10.0
PATIENCE_S = 30.0
"""For what says nothing about hitch: how fast a shell starts on a busy machine."""


class Violation(Exception):
    """Raised when a promise was broken. The text says which."""


class Scene:
    """One home with one workspace. ``close`` ends and removes all of it."""

    def __init__(self) -> None:
        place = MEMORY if os.access(MEMORY, os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(prefix=TEMP_PREFIX, dir=place))
        self.home, self.workspace = self.folder / "home", self.folder / "work"
        self.home.mkdir(mode=0o700)
        (self.home / "sessions").mkdir(mode=0o700)
        self.workspace.mkdir()
        (self.workspace / "precious").write_text("do not touch")
        self.log = self.folder / "strace"
        self.lock = self.folder / "agent"
        self.fifo = Path(f"{self.lock}.fifo")
        os.mkfifo(self.fifo)
        self.known_ids: set[str] = set()
        os.environ |= {"HITCHPOST_HOME": str(self.home), "XDG_CONFIG_HOME": str(self.folder)}
        self._before = self.workspace_now()

    def close(self) -> None:
        end_home(self.home)
        shutil.rmtree(self.folder)

    @property
    def agent(self) -> tuple[str, ...]:
        return ("sh", "-c", AGENT, "agent", str(self.lock))

    def hitch(self, *words: str, log: Path | None = None, fault: str | None = None) -> Done:
        """``hitch WORDS`` in a process of its own."""

        def deed() -> None:
            sys.argv = ["hitch", *words]
            main()

        return process(deed, log, fault)

    def must(self, *words: str) -> Done:
        done = self.hitch(*words)
        if done.code != 0:
            raise Violation(f"hitch {' '.join(words)} left with {done.code}: {done.err.strip()}")
        return done

    def run(self, name: str = NAME) -> str:
        """Start a session, and return its id."""
        done = self.must("run", "--name", name, "--workspace", str(self.workspace), "--json", "--", *self.agent)
        return str(json.loads(done.out)["id"])

    def let_go(self) -> None:
        """Tell the agent to leave."""
        within(PATIENCE_S, self._write_to_agent)

    def _write_to_agent(self) -> None:
        try:
            descriptor = os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            raise Violation("the agent does not wait for a word") from None
        os.write(descriptor, b"go\n")
        os.close(descriptor)

    def rows(self) -> dict[str, dict[str, Any]]:
        """What ``hitch ps`` tells, by name."""
        rows = json.loads(self.must("ps", "--all", "--json").out)
        return {row["name"]: row for row in rows}

    # the truth --------------------------------------------------------------------------------------------------

    def workspace_now(self) -> dict[str, tuple[bytes, int]]:
        found = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in self.workspace.iterdir()}
        return found | {".": (b"", self.workspace.stat().st_mtime_ns)}

    def state_file(self, session: str) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.home / "sessions" / session / "state.json").read_text())
        return value

    def agents(self, session: str) -> dict[int, int]:
        """The live processes that carry the session's marks, each with the number of its run."""
        found = {}
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                marks = Path("/proc", name, "environ").read_bytes().split(b"\0")
                state = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()[0]
            except OSError:
                continue
            if f"HITCHPOST_SESSION={session}".encode() in marks and state not in (b"Z", b"X"):
                run = next(mark for mark in marks if mark.startswith(b"HITCHPOST_RUN="))
                found[int(name)] = int(run.partition(b"=")[2])
        return found

    def keeper_lives(self) -> bool:
        for name in os.listdir("/proc"):
            try:
                words = Path("/proc", name, "cmdline").read_bytes().split(b"\0") if name.isdigit() else []
            except OSError:
                continue
            if any(word.startswith(bytes(self.home)) for word in words) and any(b"keeper" in word for word in words):
                return True
        return False

    def groups(self) -> Iterator[Path]:
        ids = {path.name.removeprefix(".removed-") for path in (self.home / "sessions").iterdir()}
        for place, folders, _ in os.walk("/sys/fs/cgroup"):
            for name in folders:
                if name.startswith("hitchpost.") and name.split(".")[1] in ids | self.known_ids:
                    yield Path(place, name)

    # promises ---------------------------------------------------------------------------------------------------

    def check_files(self) -> None:
        """No file is broken. What was being written has another name, and nothing had to be put away."""
        for path in self.home.rglob("*.json"):
            if path.name.startswith(".") or ".new-" in str(path) or ".removed-" in str(path):
                continue
            try:
                data = path.read_bytes()
            except FileNotFoundError:  # a keeper that goes on has just removed it
                continue
            if not _is_json(data):
                raise Violation(f"{path} is not whole: {data!r}")
        for path in self.home.glob("sessions/*/story.jsonl"):
            for line in path.read_bytes().splitlines(keepends=True):
                if line.endswith(b"\n") and line.strip() and not _is_json(line) and not _is_torn(line):
                    raise Violation(f"{path} has a broken line: {line!r}")
        kept = list((self.home / "quarantine").glob("*"))
        if kept:
            raise Violation(f"a file had to be put away: {kept}")

    def check_settles(self) -> dict[str, dict[str, Any]]:
        """F30: nothing stays in starting or stopping. Returns what ``hitch ps`` tells then."""
        return within(SETTLED_S, self._settled)

    def _settled(self) -> dict[str, dict[str, Any]]:
        rows = self.rows()
        for row in rows.values():
            if row["state"] in ("starting", "stopping"):
                raise Violation(f"F30: {row['name']} is still {row['state']}")
        return rows

    def check_truth(self) -> dict[str, dict[str, Any]]:
        """What is said to run runs, and nothing else does."""
        return within(SOON_S, self._true)

    def _true(self) -> dict[str, dict[str, Any]]:
        rows = self.rows()
        for row in rows.values():
            alive = self.agents(row["id"])
            if row["state"] == "running":
                run = json.loads(
                    (self.home / "sessions" / row["id"] / "runs" / str(row["run"]) / "run.json").read_text()
                )
                if alive.get(run["agent"]["pid"]) != row["run"]:
                    raise Violation(f"false running: {row['label']} of run {row['run']}, but alive are {alive}")
                if set(alive.values()) != {row["run"]}:
                    raise Violation(f"processes of another run than {row['run']} are alive: {alive}")
            elif alive:
                raise Violation(f"{row['label']} of run {row['run']}, but alive are {alive}")
        return rows

    def check_one_at_a_time(self) -> None:
        if (double := Path(f"{self.lock}.double")).exists():
            raise Violation(f"two agents of one session at once: {double.read_text().split()}")

    def check_workspace(self) -> None:
        if self.workspace_now() != self._before:
            raise Violation(f"the workspace was touched: {self.workspace_now()}")

    def check_swept(self) -> None:
        """A writing command has just ended: nothing half-made or half-removed is left."""
        left = [
            str(path.relative_to(self.home))
            for path in self.home.rglob("*")
            if path.name.startswith((".new-", ".removed-")) or path.name.endswith(".tmp")
        ]
        if left:
            raise Violation(f"left over: {left}")

    def check_empty(self) -> None:
        """The last session was removed: nothing of it is left anywhere."""
        left = sorted(path.name for path in (self.home / "sessions").iterdir() if path.name != ".lock")
        if left:
            raise Violation(f"left over: {left}")
        within(SOON_S, self._no_groups)

    def _no_groups(self) -> bool:
        if groups := list(map(str, self.groups())):
            raise Violation(f"control groups left over: {groups}")
        return True


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _is_torn(line: bytes) -> bool:
    """The beginning of a line, closed by the next one to write."""
    return line.startswith(b'{"at": "')


def within(limit_s: float, look: Callable[[], Any]) -> Any:
    """Look until no promise is broken any more. Raises the last ``Violation`` when time is up."""
    deadline = time.monotonic() + limit_s
    while True:
        try:
            return look()
        except Violation:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.01)
