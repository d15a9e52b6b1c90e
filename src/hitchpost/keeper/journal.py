"""What the keeper writes down about its run: its processes, its state, who asked for the end, what was reported."""

from __future__ import annotations

import os
import time

from hitchpost.errors import FAILURES, HitchpostError
from hitchpost.keeper import own_log
from hitchpost.model import run as runs
from hitchpost.runspec import RunSpec
from hitchpost.store import files, locks, runfiles
from hitchpost.store.session import Session
from hitchpost.system import process

WRITE_AGAIN_S = 3.0
WRITE_AGAIN_EVERY_S = 0.2
MOST_TELLINGS, TELLING_EVERY_S = 120, 2.0
"""So many changes of what the agent is doing go into the story at once, and one more every so often. What an agent
really does, with a person who answers as fast as possible, is less than that."""
REFUSALS = (runs.InvalidTransition, locks.Removed, files.WrongRun, files.NewerSchema)
FAULTS = (OSError, locks.LockTimeout, files.Unreadable)


class NotWritten(HitchpostError):
    """Raised when the state cannot be written and the run must not go on without it."""


class Journal:
    """What is on disk about one run."""

    def __init__(self, spec: RunSpec, run_folder: str) -> None:
        self.spec, self.run_folder = spec, run_folder
        self.session = Session(spec.session_folder, actor="keeper")
        self._told: dict[str, object] = {}
        self._tellings, self._told_at = float(MOST_TELLINGS), time.monotonic()
        self.changed_at: str | None = None
        """Since when the run is in its state, as the state file has it; None when that could not be written."""

    def write_run(self, pid: int, tier: str, more: dict[str, object]) -> None:
        spec = self.spec
        fields: dict[str, object] = {
            "home": files.home_id(spec.session_folder),
            "run": spec.run,
            "argv": [_readable(text) for text in spec.argv],
            "folder": spec.folder,
            "folder_dev": spec.folder_dev,
            "folder_ino": spec.folder_ino,
            "cols": spec.cols,
            "rows": spec.rows,
            "env_names": sorted(_readable(name) for name in spec.env),
            "tier": tier,
        }
        agent = runfiles.Process(pid, process.start_time(pid) or 0)
        runfiles.write_run(self.run_folder, agent, {**fields, **more})

    def take_over(self) -> str:
        """The run goes on in the state that is written down, under this process. Raises ``OSError``, ``Unreadable``."""
        state = files.read_object(os.path.join(self.spec.session_folder, files.STATE)).get("state")
        runfiles.write_keeper(self.run_folder)
        return str(state) if state in runs.LIVE else runs.STARTING

    def write_state(self, new: str, reason: str, evidence: dict[str, object], since: str | None = None) -> None:
        """A disk that refuses is tried again for a while; then the files say less than the truth, and never a lie.

        Raises ``NotWritten`` for ``running``: an agent that nobody could find again must not run.
        """
        self.changed_at = None
        deadline = time.monotonic() + WRITE_AGAIN_S
        while True:
            try:
                spare = runfiles.spare(self.run_folder, runfiles.SPARE_STATE)
                state = self.session.transition(
                    new, run=self.spec.run, reason=reason, evidence=evidence, since=since, spare=spare
                )
                self.changed_at = state.state_changed_at
                return
            except REFUSALS as error:
                refusal, final = str(error), True
            except FAULTS as error:
                refusal, final = str(error), time.monotonic() > deadline
            own_log.note(f"cannot write the state {new}: {refusal}")
            if new == runs.RUNNING:
                raise NotWritten(f"cannot write the state: {refusal}")
            if final:
                return
            time.sleep(WRITE_AGAIN_EVERY_S)

    def write_intent(self, by: str, reason: str, grace_s: float) -> None:
        """Who asked for the end, on disk before any signal is sent."""
        try:
            runfiles.write_intent(self.run_folder, by, reason, grace_s)
        except OSError as error:
            own_log.note(f"cannot write the intent: {error}")

    def write_report(self, report: dict[str, object] | None) -> None:
        """What the agent is doing, for those who look now."""
        try:
            runfiles.write_report(self.run_folder, report)
        except OSError as error:
            own_log.note(f"cannot write the report: {error}")

    def tell_report(self, report: dict[str, object] | None) -> float:
        """The same in the story, for those who look back. How long to wait where the story has too much of it."""
        told = {key: item for key, item in (report or {"state": "clear"}).items() if key not in ("at", "schema")}
        is_news = {**told, "request": ""} != {**self._told, "request": ""}  # that a question got another name is none
        wait_s = self._too_soon_s() if is_news else 0.0
        if is_news and not wait_s:
            self._tellings -= 1
            self._told = told
            try:
                self.session.tell_attention(told, run=self.spec.run)
            except OSError as error:
                own_log.note(f"cannot write the story: {error}")
        return wait_s

    def _too_soon_s(self) -> float:
        """A story stays readable: when it may tell of another change; 0: now."""
        now = time.monotonic()
        self._tellings = min(float(MOST_TELLINGS), self._tellings + (now - self._told_at) / TELLING_EVERY_S)
        self._told_at = now
        return max(0.0, 1 - self._tellings) * TELLING_EVERY_S

    def record_activity(self, last_output: float, tail: bytes) -> None:
        try:
            at = files.stamp(last_output)
            self.session.record_activity(_fnv1a(tail), at, run=self.spec.run, timeout_s=0)
        except FAILURES as error:
            own_log.note(f"cannot record activity: {error}")


def _readable(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _fnv1a(data: bytes) -> int:
    digest = 0x811C9DC5
    for byte in data:
        digest = (digest ^ byte) * 0x01000193 & 0xFFFFFFFF
    return digest
