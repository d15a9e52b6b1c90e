"""One session in each state that there is. Those that have ended are made once, and copied as often as needed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hitchpost.model import record as recs
from hitchpost.model import run as runs
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.settings import Settings
from hitchpost.store.home import new_id
from hitchpost.store.locks import SessionLock
from hitchpost.store.session import Session
from tests.ground import Ground, Truth
from tests.support import eventually

ECHO = 'stty -echo; while read line; do echo "<$line>"; done'
STUBBORN = "trap '' TERM HUP; echo ready; while :; do sleep 1; done"
RUNNING, STOPPING, LOST_FOLDER, LOST_KEEPER = "running", "stopping", "orphaned", "keeper-lost"
LIVING = (RUNNING, STOPPING, LOST_FOLDER, LOST_KEEPER)
ENDED = (
    *("created", "starting", "never-ran", "stopped", "failed", "completed", "suspended", "archived", "error"),
    *("unreadable-state", "unreadable-record", "no-state", "no-runs", "newer-state", "newer-record", "folder-gone"),
    *("empty-exit", "wrong-exit", "state-of-no-run"),
)
HASTY = Settings(grace_s=1.0)


@dataclass(slots=True)
class States:
    """Sessions of one home, each named after its state. What is in ``kept`` serves the next test, too."""

    ground: Ground
    kept: Path
    template: Path = field(init=False)

    def __post_init__(self) -> None:
        self.template = self.kept / "states"
        if self.template.exists():
            return
        made = self.kept / "made"
        made.mkdir()
        for name in ENDED:
            shutil.move(self._ended(name).folder, made / name)
        made.rename(self.template)

    def copies(self, number: int = 0, every: int = 1) -> dict[str, str]:
        """A session in each state that has ended: its id, by the name of the state. They are there all at once.

        With ``every`` only some of the states, others for each ``number``.
        """
        return {name: self.copy(name, number) for name in ENDED[number % every :: every]}

    def copy(self, state: str, number: int = 0) -> str:
        session, name = new_id(), state if number == 0 else f"{state}{number}"
        new = self.ground.home / "sessions" / f".new-{session}"
        shutil.copytree(self.template / state, new)
        index = 1 + ENDED.index(state) + 100 * number
        changed: dict[str, dict[str, Any]] = {
            "session.json": {"id": session, "name": name, "index": index},
            "state.json": {"session_id": session},
        }
        for file, values in changed.items():
            try:
                _change(new / file, **values)
            except (OSError, ValueError, TypeError):
                continue  # that is the state
        new.rename(new.with_name(session))
        return session

    def live(self, state: str, name: str = "") -> Truth:
        """A session whose agent runs, or did until a moment ago."""
        name = name or state
        place = self.ground.watch.scratch / f"place-{new_id()}"
        place.mkdir()
        script = STUBBORN if state == STOPPING else ECHO
        settings = Settings(grace_s=2.0) if state == STOPPING else HASTY
        made = self.ground.begin_sh(script, name=name, place=place, settings=settings)
        if state == STOPPING:
            eventually(lambda: b"ready" in made.output())
            self._begin_to_stop(made)
        elif state == LOST_FOLDER:
            shutil.rmtree(place)
            eventually(lambda: made.state == "orphaned", what="orphaned")
        elif state == LOST_KEEPER:
            made.kill_keeper()
        return made

    def _begin_to_stop(self, made: Truth) -> None:
        from hitchpost.runtimes.link import Link

        with Link.connect(str(made.run())) as link:
            assert link.request("stop", by=runs.USER, reason="")["ok"] is True
        eventually(lambda: made.state == "stopping", what="stopping")

    def _ended(self, name: str) -> Truth:
        place = self.kept / f"place-{name}"
        place.mkdir()
        argv = ("sh", "-c", "exit 3" if name == "failed" else f"{ECHO}" if name == "stopped" else "echo done")
        spec = SessionSpec(str(place), command=argv, name=name)
        if name in ("created", "starting"):
            made = Truth(self.ground.home, create(str(self.ground.home), spec, HASTY, actor="test").id)
            if name == "starting":
                Session(str(made.folder), actor="test").transition(runs.STARTING, run=1)
            return made
        if name == "never-ran":
            lost = SessionSpec(str(place), command=("/nowhere/at/all",), name=name)
            made = Truth(self.ground.home, create(str(self.ground.home), lost, HASTY, actor="test").id)
            self.ground.hitch.here("restart", made.id, check=False)
            return made
        made = self.ground.begin(*argv, name=name, place=place, settings=HASTY)
        if name == "stopped":
            self.ground.end(made, grace_s=0)
        made.ended()
        SPOILING.get(name, lambda made: None)(made)
        if name == "folder-gone":
            shutil.rmtree(place)
        return made


def _change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def _record(word: str) -> Callable[[Truth], None]:
    def change(made: Truth) -> None:
        with SessionLock(str(made.folder)):
            Session(str(made.folder), actor="test").change_record(word, run=1, reason="")

    return change


SPOILING: dict[str, Callable[[Truth], object]] = {
    "suspended": _record(recs.SUSPENDED),
    "archived": _record(recs.ARCHIVED),
    "error": _record(recs.ERROR),
    "unreadable-state": lambda made: (made.folder / "state.json").write_text('{"run": '),
    "unreadable-record": lambda made: (made.folder / "session.json").write_text("[]"),
    "no-state": lambda made: (made.folder / "state.json").unlink(),
    "no-runs": lambda made: shutil.rmtree(made.folder / "runs"),
    "newer-state": lambda made: _change(made.folder / "state.json", schema=99),
    "newer-record": lambda made: _change(made.folder / "session.json", schema=99),
    "empty-exit": lambda made: (made.run() / "exit.json").write_text(""),
    "wrong-exit": lambda made: (made.run() / "exit.json").write_text('{"schema": 1, "code": "3", "ended_at": 5}'),
    "state-of-no-run": lambda made: _change(made.folder / "state.json", run=7),
}
