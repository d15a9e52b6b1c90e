"""Sessions on the tmux runtime, and the truth about them from tmux itself."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hitchpost.errors import NoSuchSession
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.remove import remove
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.sessions.start import start
from hitchpost.runtimes.tmux import server_pid
from hitchpost.settings import Settings
from tests.ground import Ground, Truth, alive
from tests.support import Hitch, eventually


@dataclass(slots=True)
class Panes:
    """Starts sessions in panes; what tmux says of them is asked from tmux."""

    ground: Ground
    sessions: list[Truth] = field(default_factory=list)

    def begin(self, *argv: str, env: dict[str, str] | None = None, **more: Any) -> Truth:
        home, settings = str(self.ground.home), more.pop("settings", None) or Settings()
        place = str(more.pop("place", self.ground.place))
        record = create(home, SessionSpec(place, command=argv, runtime="tmux", **more), settings, actor="test")
        session = Truth(self.ground.home, record.id)
        self.sessions.append(session)
        caller = {**Hitch.environment(), "SHELL": "/bin/sh", **(env or {})}
        start(home, record.id, settings, caller=caller, actor="test", until_ready=False)
        return session

    def sh(self, script: str, *argv: str, **more: Any) -> Truth:
        return self.begin("sh", "-c", script, "agent", *argv, **more)

    def tmux(self, session: Truth, *words: str, check: bool = True) -> str:
        argv = ["tmux", "-S", "tmux.sock", *words]
        done = subprocess.run(argv, cwd=session.folder, capture_output=True, text=True, check=check, timeout=20)
        return done.stdout

    def panes(self, session: Truth) -> list[tuple[str, bool, int]]:
        lines = self.tmux(session, "list-panes", "-a", "-F", "#{pane_id} #{pane_dead} #{pane_pid}").splitlines()
        return [(pane, dead == "1", int(pid)) for pane, dead, pid in map(str.split, lines)]

    def screen(self, session: Truth, pane: str = "") -> str:
        return self.tmux(session, "capture-pane", "-p", *(("-t", pane) if pane else ()))

    def shows(self, session: Truth, text: str) -> str:
        return eventually(
            lambda: seen if text in (seen := self.screen(session)) else None, what=f"{text!r} in the pane"
        )

    def server(self, session: Truth) -> int:
        pid = server_pid(str(session.folder))
        assert pid is not None
        return pid

    def final(self, session: Truth, run: int = 1, timeout_s: float = 60) -> str:
        """The state in which the run ended. Its pane's process may live on, as a shell."""

        def ended() -> str:
            value = session.state_file()
            return (
                value["state"] if value["run"] == run and value["state"] in ("stopped", "failed", "completed") else ""
            )

        return eventually(ended, timeout_s, what=f"the end of run {run}")

    def close(self) -> None:
        for session in self.sessions:
            pid = server_pid(str(session.folder)) if session.folder.exists() else None
            try:
                remove(str(self.ground.home), session.id, force=True, actor="test")
            except NoSuchSession:
                pass
            assert pid is None or not alive(pid)


@contextmanager
def panes_in(ground: Ground) -> Iterator[Panes]:
    panes = Panes(ground)
    try:
        yield panes
    finally:
        for session in panes.sessions:
            server = server_pid(str(session.folder)) if session.folder.exists() else None
            if server is not None:
                os.kill(server, signal.SIGCONT)
        panes.close()
