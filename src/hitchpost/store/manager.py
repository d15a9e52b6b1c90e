"""``Manager``: ADR 31's owner of a session's state file. It records facts and enforces the map; it judges nothing."""

from __future__ import annotations

import os

from hitchpost.model import run as runs
from hitchpost.store import files, quarantine, statefile, story
from hitchpost.store.migrations import STATE_STEPS, migrated
from hitchpost.values import fields, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Observer = Callable[[str, str], None]
    """Called with the old and the new state, under the lock, before anything is written. Raising vetoes the change."""

FAULTS = (OSError, files.LockTimeout, files.Unreadable, files.NewerSchema)


@value
class State:
    """ADR 31's file, exactly its fields, plus the run that it is about."""

    state: str
    state_changed_at: str
    updated_by: int
    session_id: str
    workspace_id: str
    run: int
    last_activity_hash: int | None = None
    last_activity_at: str | None = None
    last_checked_at: str | None = None


class Manager:
    """The state of one session, shared by every process that uses it. Each change is atomic and durable."""

    def __init__(self, folder: str, *, actor: str) -> None:
        self.folder, self.actor = folder, actor
        self._observers: list[Observer] = []

    def on_change(self, observer: Observer) -> None:
        self._observers.append(observer)

    def read(self) -> State:
        """See ``read_state``."""
        return read_state(self.folder)

    def create(self, session_id: str, workspace_id: str, **told: object) -> State:
        """Write the first state of a new session: run 1, ``created``. What is ``told`` goes into the story with it."""
        value = statefile.new_state(session_id, workspace_id, 1, files.stamp())
        story.tell(self.folder, "created", run=1, actor=self.actor, **told)
        self._write(value)
        return _state(value)

    def transition(
        self,
        new: str,
        *,
        run: int,
        reason: str = "",
        evidence: dict[str, object] | None = None,
        since: str | None = None,
        locked: bool = False,
    ) -> State:
        """Move run ``run`` to ``new``.

        Raises ``InvalidTransition`` with the session's story when the map does not lead there, ``WrongRun`` when the
        session has gone on to another run. ``locked`` says that the caller holds the session's lock.
        """
        if not locked:
            with files.SessionLock(self.folder):
                return self.transition(new, run=run, reason=reason, evidence=evidence, since=since, locked=True)
        try:
            value = statefile.change_state(
                self.folder,
                run,
                new,
                actor=self.actor,
                reason=reason,
                evidence=evidence,
                since=since,
                before=self._ask_observers,
                value=self._read(),
            )
        except runs.InvalidTransition as error:
            raise runs.InvalidTransition(error.old, error.new, story.as_text(story.read(self.folder))) from None
        return _state(value)

    def attempt(self, new: str, *, run: int, reason: str = "") -> State:
        """``transition`` for those who must go on: a disk or lock that refuses is logged, and the state stays."""
        try:
            return self.transition(new, run=run, reason=reason)
        except FAULTS as error:
            import logging

            logging.getLogger(__name__).warning("state not changed to %s: %s", new, error)
            return self.read()

    def record_activity(self, digest: int, at: str, *, run: int) -> None:
        """Note the hash and time of the newest output. What it means is for others to say."""
        with files.SessionLock(self.folder):
            statefile.record_activity(self.folder, run, digest, at, files.stamp(), self._read())

    def next_run(self, *, reason: str = "") -> State:
        """Put the ended run's state beside its other files and begin the next. The caller holds the session's lock."""
        value = self._read()
        old, run = str(value["state"]), int(str(value["run"]))
        if old not in runs.TERMINAL:
            raise runs.InvalidTransition(old, runs.CREATED, story.as_text(story.read(self.folder)))
        kept = os.path.join(self.folder, "runs", str(run))
        os.makedirs(kept, mode=0o700, exist_ok=True)
        files.write_object(os.path.join(kept, files.STATE), value)
        following = statefile.new_state(str(value["session_id"]), str(value["workspace_id"]), run + 1, files.stamp())
        story.tell(self.folder, "run", run=run + 1, actor=self.actor, reason=reason)
        self._write(following)
        return _state(following)

    def write_again(self) -> None:
        """Write the state as it is, so that whoever goes by the folder's time looks at the session again.

        The caller holds the session's lock.
        """
        self._write(self._read())

    def repair(self) -> str | None:
        """Move an unreadable state file to the quarantine and rebuild it from the story. Returns what was wrong.

        Raises ``Unreadable`` when the story cannot tell either. The caller holds the session's lock.
        """
        try:
            self._read()
            return None
        except (files.Unreadable, FileNotFoundError) as error:
            wrong = str(error)
        session, workspace = os.path.basename(self.folder), ""
        value = story.rebuilt_state(self.folder, session, workspace)
        if value is None:
            raise files.Unreadable(os.path.join(self.folder, files.STATE), f"{wrong}; its story tells of no state")
        quarantine.put_away(self.folder, files.STATE)
        story.tell(self.folder, "repaired", run=int(str(value["run"])), actor=self.actor, reason=wrong)
        self._write(value)
        return wrong

    def _ask_observers(self, old: str, new: str) -> None:
        for observer in self._observers:
            observer(old, new)

    def _read(self) -> dict[str, object]:
        return _read(self.folder)

    def _write(self, value: dict[str, object]) -> None:
        files.write_object(os.path.join(self.folder, files.STATE), value)


def read_state(folder: str) -> State:
    """The current state. Older files are understood as they are; nothing is written."""
    return _state(_read(folder))


def _read(folder: str) -> dict[str, object]:
    path = f"{folder}/{files.STATE}"
    return statefile.checked_state(path, migrated(files.read_object(path), STATE_STEPS))


def _state(value: dict[str, object]) -> State:
    known = {key: item for key, item in value.items() if key in fields(State)}
    return State(**known)  # type: ignore[arg-type]
