"""One session on disk: its record, its state and its story. Whoever changes one of them does it here.

It records facts and enforces the maps of states; it judges nothing. The keeper imports this module: what it does not
need is imported where it is used.
"""

from __future__ import annotations

import os

from hitchpost.model import run as runs
from hitchpost.store import files, locks, statefile
from hitchpost.store.migrations import STATE_STEPS, migrated
from hitchpost.values import asdict, fields, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hitchpost.store.records import Record

    Observer = Callable[[str, str], None]
    """Called with the old and the new state, under the lock, before anything is written. Raising vetoes the change."""

PROMPT = "prompt.json"
SEEN = "seen.json"
CHANGES = "changes.json"
FAULTS = (OSError, locks.LockTimeout, files.CannotRead)
OF_CONVERSATION = ("conversation_id", "conversation_begun", "supports_resume", "fork_of", "resumes")
"""What an agent tells of itself, of all that is in a record."""


@value
class State:
    """``state.json``: the state of a session's current run."""

    state: str
    state_changed_at: str
    updated_by: int
    session_id: str
    workspace_id: str
    run: int
    last_activity_hash: int | None = None
    last_activity_at: str | None = None
    last_checked_at: str | None = None


class Session:
    """Shared by every process that uses the session. Each change is atomic and durable, and names its ``actor``.

    Whoever changes more than one thing holds the ``lock`` meanwhile; the methods that need it say so.
    """

    def __init__(self, folder: str, *, actor: str) -> None:
        self.folder, self.actor = folder, actor
        self._observers: list[Observer] = []

    def on_change(self, observer: Observer) -> None:
        self._observers.append(observer)

    def lock(self, timeout_s: float = locks.LOCK_TIMEOUT_S) -> locks.SessionLock:
        return locks.SessionLock(self.folder, timeout_s)

    def read(self) -> State:
        """See ``read_state``."""
        return read_state(self.folder)

    def record(self) -> Record:
        from hitchpost.store import records

        return records.read(self.folder)

    def tell(self, event: str, *, run: int, **details: object) -> None:
        """Add a line to the story. The caller holds the lock."""
        line = statefile.story_line(event, run, self.actor, files.stamp(), details)
        files.append_line(f"{self.folder}/{files.STORY}", line)

    def mention(self, event: str, *, run: int, details: dict[str, object]) -> None:
        """A line of its own, which nobody waits for, and which changes nothing else. No lock is needed, except where
        lines of others come into a copy."""
        line = statefile.story_line(event, run, self.actor, files.stamp(), details)
        path = f"{self.folder}/{files.STORY}"
        if not locks.GUARDS:
            return files.append_line(path, line, durable=False)
        with locks.FolderLock(self.folder):
            files.append_line(path, line, durable=False)

    def tell_attention(self, report: dict[str, object], *, run: int) -> None:
        """What the agent is doing."""
        self.mention("attention", run=run, details=report)

    # the first prompt -------------------------------------------------------------------------------------------

    def keep_prompt(self, text: str, *, typed: bool) -> None:
        """``typed``: it must stand in no arguments."""
        files.write_object(f"{self.folder}/{PROMPT}", {"schema": files.SCHEMA, "text": text, "typed": typed})

    def first_prompt(self) -> tuple[str, bool] | None:
        """As it was kept; None when there was none. Raises ``files.Unreadable``."""
        try:
            kept = files.read_object(f"{self.folder}/{PROMPT}")
        except files.Missing:
            return None
        return str(kept.get("text", "")), kept.get("typed") is not False

    # who looked -------------------------------------------------------------------------------------------------

    def mark_seen(self) -> None:
        """Somebody looks at the session now. A file of its own, which nobody waits for: it needs no lock."""
        files.write_object(f"{self.folder}/{SEEN}", {"schema": files.SCHEMA, "at": files.stamp()}, durable=False)

    # the state --------------------------------------------------------------------------------------------------

    def create(self, session_id: str, workspace_id: str, **details: object) -> State:
        """Write the first state of a new session: run 1, ``created``. ``details`` go into the story with it."""
        value = statefile.new_state(session_id, workspace_id, 1, files.stamp())
        self.tell("created", run=1, **details)
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
        spare: str | None = None,
        locked: bool = False,
    ) -> State:
        """Move run ``run`` to ``new``. The change is durable when this returns.

        Raises ``InvalidTransition`` with the session's story when the map does not lead there, ``WrongRun`` when the
        session has gone on to another run. ``since`` is when that came about, where it is found out late: words about
        time go by it. ``spare`` is room for a full disk. ``locked`` says that the caller holds the lock.
        """
        if not locked:
            with self.lock():
                return self.transition(
                    new, run=run, reason=reason, evidence=evidence, since=since, spare=spare, locked=True
                )
        value = self._of_run(run)
        old = str(value["state"])
        if new not in runs.TRANSITIONS.get(old, ()):
            raise runs.InvalidTransition(old, new, self._story())
        for observer in self._observers:
            observer(old, new)
        now = files.stamp()
        told: dict[str, object] = {"from": old, "to": new, "reason": reason}
        told |= {key: item for key, item in (("since", since), ("evidence", evidence)) if item}
        try:
            # first the story, so that a lost state file can be rebuilt from it
            files.append_line(f"{self.folder}/{files.STORY}", statefile.story_line("state", run, self.actor, now, told))
        except OSError as error:
            if error.errno not in files.FULL:
                raise  # a story that cannot grow does not stop the state from being true
        value.update(schema=files.SCHEMA, state=new, state_changed_at=since or now, updated_by=os.getpid())
        self._write(value, spare=spare)
        return _state(value)

    def attempt(self, new: str, *, run: int, reason: str = "") -> State:
        """``transition`` for those who must go on: a disk or lock that refuses is logged, and the state stays."""
        try:
            return self.transition(new, run=run, reason=reason)
        except FAULTS as error:
            import logging

            logging.getLogger(__name__).warning("state not changed to %s: %s", new, error)
            return self.read()

    def record_activity(self, digest: int, at: str, *, run: int, timeout_s: float = locks.LOCK_TIMEOUT_S) -> None:
        """Note the hash and time of the newest output. A fact, not a change: it is not forced to the disk."""
        with self.lock(timeout_s):
            value = self._of_run(run)
            value.update(last_activity_hash=digest, last_activity_at=at, last_checked_at=files.stamp())
            self._write(value, durable=False)

    def next_run(self, *, reason: str = "") -> State:
        """Put the ended run's state beside its other files and begin the next. The caller holds the lock."""
        value = self._read()
        old, run = str(value["state"]), int(str(value["run"]))
        if old not in runs.TERMINAL:
            raise runs.InvalidTransition(old, runs.CREATED, self._story())
        kept = os.path.join(self.folder, "runs", str(run))
        os.makedirs(kept, mode=0o700, exist_ok=True)
        files.write_object(os.path.join(kept, files.STATE), value)
        following = statefile.new_state(str(value["session_id"]), str(value["workspace_id"]), run + 1, files.stamp())
        self.tell("run", run=run + 1, reason=reason)
        self._write(following)
        return _state(following)

    def touch(self) -> None:
        """Write the state as it is, so that whoever goes by the folder's time looks at the session again.

        The caller holds the lock.
        """
        self._write(self._read())

    # the same session in another home ---------------------------------------------------------------------------

    def begin_copy(self, record: Record, state: dict[str, object]) -> None:
        """Begin a run here whose record and state were written in another home, with its story. The state of a run
        before it goes beside that run's other files. The caller holds the lock. Raises ``Unreadable``."""
        path = f"{self.folder}/{files.STATE}"
        statefile.checked_state(path, state)
        try:
            before = self._read()
        except files.Missing:
            before = state
        kept = f"{self.folder}/runs/{before['run']}"
        if before["run"] != state["run"] and os.path.isdir(kept):
            files.write_object(f"{kept}/{files.STATE}", before)
        self.save(record)
        self._write({**state, "schema": files.SCHEMA})

    def take_state(self, told: dict[str, object]) -> bool:
        """The state of the current run, as it was written where the run takes place. False when nothing has changed:
        this session has gone on to another run, or the run has ended here. The caller holds the lock.

        Raises ``Unreadable``.
        """
        path = f"{self.folder}/{files.STATE}"
        told, ours = statefile.checked_state(path, migrated(told, STATE_STEPS)), self._read()
        same = {key: ours[key] for key in ("session_id", "workspace_id")}
        if told["run"] != ours["run"] or ours["state"] not in runs.LIVE or {**told, **same} == ours:
            return False
        self._write({**told, **same}, durable=False)
        return True

    def take_conversation(self, told: Record) -> bool:
        """What the agent of the current run has told of its conversation, as it was written where the run takes place.
        False when that is nothing new. The caller holds the lock."""
        ours = self.record()
        changed = replace(ours, **{name: getattr(told, name) for name in OF_CONVERSATION})
        if changed == ours:
            return False
        self.save(changed, durable=False)
        return True

    def take_lines(self, lines: bytes) -> None:
        """Lines of the story that were written where the run takes place. The caller holds the lock."""
        files.append_bytes(f"{self.folder}/{files.STORY}", lines, durable=False)

    # the record -------------------------------------------------------------------------------------------------

    def save(self, record: Record, *, durable: bool = True) -> None:
        """The caller holds the lock, or has just made the folder."""
        from hitchpost.store.records import RECORD

        files.write_object(f"{self.folder}/{RECORD}", {"schema": files.SCHEMA, **asdict(record)}, durable=durable)

    def change_record(self, new: str, *, run: int, reason: str = "", since: str | None = None) -> Record:
        """Move the record to ``new``, with a line in the story. The caller holds the lock.

        ``since`` is when that came about, where it is found out late.
        """
        from hitchpost.model.record import check_record

        record = self.record()
        check_record(record.record, new)
        told: dict[str, object] = {"from": record.record, "to": new}
        self.tell("record", run=run, reason=reason, **told, **({"since": since} if since else {}))
        now = files.stamp()
        changed = replace(record, record=new, record_changed_at=since or now, last_active_at=now)
        self.save(changed)
        return changed

    def set_conversation(self, conversation_id: str | None, *, begun: bool, run: int, reported: bool = True) -> None:
        """The agent is in this conversation now; None: which one is not known. The caller holds the lock.

        ``reported``: the agent has said so itself. The first time in a run that goes on with another one, the story
        says which one was asked for.
        """
        record = self.record()
        begun = begun or (record.conversation_begun and record.conversation_id == conversation_id is not None)
        resumes = "" if reported else record.resumes
        can = record.can_resume and begun
        changed = replace(record, conversation_id=conversation_id, conversation_begun=begun, resumes=resumes)
        if (record.conversation_id, record.conversation_begun, record.resumes) == (conversation_id, begun, resumes):
            return
        if record.conversation_id != conversation_id:
            asked: dict[str, object] = {}
            if reported and conversation_id and record.resumes not in ("", conversation_id):
                reason = f"it was to go on with {record.resumes}, but says that it is in {conversation_id}"
                asked = {"asked": record.resumes, "reason": reason}
            self.tell("conversation", run=run, conversation=conversation_id, before=record.conversation_id, **asked)
        self.save(replace(changed, supports_resume=can))

    # repair -----------------------------------------------------------------------------------------------------

    def repair(self) -> str | None:
        """Move files that cannot be read to the quarantine and rebuild them from the story. What was wrong, if so.

        Raises ``Unreadable`` when the story cannot tell either. The caller holds the lock.
        """
        wrong = [self._repair_record(), self._repair_state()]
        return "; ".join(filter(None, wrong)) or None

    def _repair_record(self) -> str | None:
        from hitchpost.store import records

        try:
            self.record()
            return None
        except files.Unreadable as error:
            wrong = str(error)
        record = records.from_story(self.folder)
        if not record.argv:
            raise files.Unreadable(f"{self.folder}/{records.RECORD}", f"{wrong}; its story does not have it")
        self._put_away(records.RECORD, 0, wrong)
        self.save(record)
        return wrong

    def _repair_state(self) -> str | None:
        from hitchpost.store import story

        try:
            self._read()
            return None
        except files.Unreadable as error:
            wrong = str(error)
        value = story.rebuilt_state(self.folder, os.path.basename(self.folder), "")
        if value is None:
            raise files.Unreadable(f"{self.folder}/{files.STATE}", f"{wrong}; its story tells of no state")
        self._put_away(files.STATE, int(str(value["run"])), wrong)
        self._write(value)
        return wrong

    def _put_away(self, name: str, run: int, wrong: str) -> None:
        from hitchpost.store import quarantine

        quarantine.put_away(self.folder, name)
        self.tell("repaired", run=run, reason=wrong)

    def _of_run(self, run: int) -> dict[str, object]:
        value = self._read()
        if value["run"] != run:
            raise files.WrongRun(run, int(str(value["run"])))
        return value

    def _story(self) -> str:
        from hitchpost.store import story

        return story.as_text(story.read(self.folder))

    def _read(self) -> dict[str, object]:
        return _read(self.folder)

    def _write(self, value: dict[str, object], *, spare: str | None = None, durable: bool = True) -> None:
        files.write_object(f"{self.folder}/{files.STATE}", value, spare=spare, durable=durable)


def read_state(folder: str) -> State:
    """The current state. Older files are understood as they are; nothing is written."""
    return _state(_read(folder))


def seen_at(folder: str) -> str | None:
    """When somebody last looked at the session."""
    try:
        at = files.read_object(f"{folder}/{SEEN}").get("at")
    except files.CannotRead:
        return None
    return at if isinstance(at, str) else None


def read_changes(folder: str) -> dict[str, object]:
    """What was counted last; empty when nobody has."""
    try:
        return files.read_object(f"{folder}/{CHANGES}")
    except files.CannotRead:
        return {}


def write_changes(folder: str, counted: int, added: int, deleted: int) -> None:
    """What git has counted in its folder just now. As ``mark_seen``: it needs no lock, the newest is right."""
    counts = {"files": counted, "added": added, "deleted": deleted}
    value = {"schema": files.SCHEMA, "at": files.stamp(), **counts}
    files.write_object(f"{folder}/{CHANGES}", value, durable=False)


def _read(folder: str) -> dict[str, object]:
    path = f"{folder}/{files.STATE}"
    return statefile.checked_state(path, migrated(files.read_object(path), STATE_STEPS))


def _state(value: dict[str, object]) -> State:
    return State(*map(value.get, fields(State)))  # type: ignore[arg-type]
