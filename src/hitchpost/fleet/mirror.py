"""The copy of the fleet's files in a home, and PostgreSQL, which it is made from.

A session is changed on the files, as on one machine. Whoever takes its lock (``store.locks.SessionLock``) has it in the
whole fleet: the copy is brought up to date then, and what has changed is in PostgreSQL before the lock is given back.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass

import structlog
from psycopg import errors

from hitchpost.errors import FAILURES, DatabaseAway, NameTaken
from hitchpost.fleet import stored
from hitchpost.fleet.applying import apply, matches, put_right
from hitchpost.fleet.changing import Before, about, changes, is_kept, is_urgent, told
from hitchpost.fleet.claims import Claims
from hitchpost.fleet.connections import Connection
from hitchpost.fleet.copied import HOME, Copy
from hitchpost.fleet.database import Database, newest
from hitchpost.fleet.output import Output
from hitchpost.fleet.quotas import Quotas
from hitchpost.fleet.stored import Change, Head, StoredFile
from hitchpost.ops.sessions.create import NEW, REMOVED
from hitchpost.store import files, locks, records
from hitchpost.store.home import is_id, session_folder, sessions_folder
from hitchpost.workspaces.folders import erase

AT_ONCE = 100
"""Sessions whose files are asked for at once."""
BUSY_S = 0.2
"""A session that somebody else works on is brought up to date at the next turn: who has its lock did that already."""
FORGET_GONE_S = 3600.0

log = structlog.get_logger()
Names = Iterable[str]
Claim = Callable[[Names], tuple[str, int]]


@dataclass(slots=True)
class Scope:
    """A session whose lock is held by a thread. ``held`` is the connection, in a transaction that has the lock."""

    copy: Copy
    stack: ExitStack
    held: Connection
    before: Before
    thread: int


class Mirror:
    """It guards the sessions of its home from ``open`` to ``close``."""

    def __init__(self, home: str, database: Database) -> None:
        self.home, self.database = home, database
        self.claims, self.output, self.quotas = Claims(database), Output(database), Quotas()
        self._copies: dict[str, Copy] = {}
        self._scopes: dict[str, Scope] = {}
        self._seen = -1
        """Every change up to this revision is in the copy. -1: nobody has looked yet."""
        self._late: set[str] = set()
        self._catching, self._sharing = threading.Lock(), threading.RLock()

    def open(self) -> None:
        """From now on whoever changes a session in this home changes it in the fleet."""
        locks.GUARDS[sessions_folder(self.home)] = self

    def close(self) -> None:
        locks.GUARDS.pop(sessions_folder(self.home), None)
        self.claims.close()

    # who does what ------------------------------------------------------------------------------------------------

    def watch(self, session: str) -> bool:
        """True: this replica watches the session from now on. Raises ``DatabaseAway``."""
        return self.claims.watch(session)

    def lead(self) -> bool:
        """True: this replica does the regular jobs. Raises ``DatabaseAway``."""
        return self.claims.lead()

    # changing -----------------------------------------------------------------------------------------------------

    @contextmanager
    def working(self, session: str) -> Iterator[None]:
        """The session's lock in the fleet; its files are as PostgreSQL has them, and what has changed is there at the
        end. Nobody else can change it meanwhile: do not wait for anything in here.

        Raises ``DatabaseAway``, ``locks.LockTimeout`` and ``locks.Removed``; at the end also ``NameTaken`` and
        ``QuotaReached``. What was changed is undone then.
        """
        if session != HOME:
            with locks.SessionLock(session_folder(self.home, session)):
                yield
            return
        with self._sharing:
            if HOME in self._scopes:
                yield
                return
            leave = self._enter(self._copy(HOME), locks.LOCK_TIMEOUT_S)
            try:
                yield
            finally:
                leave(None)

    def commit(self, session: str) -> int:
        """Durable now; the revision. Within ``working``, or alone."""
        scope = self._scopes.get(session)
        if scope is None or scope.thread != threading.get_ident():
            with self.working(session):
                pass
            return self._copy(session).revision
        copy = scope.copy
        found = changes(copy, had=scope.before.stamps, own_run=self._has_run(copy))
        if found:
            # not the connection that has the lock: that ends with its transaction
            asked = self.database.connections
            with asked.connect() as asking, self._named(copy), asked.translated(), asking.transaction():
                head = stored.write(asking, session, copy.version, found, about(copy))
            told(copy, head.version, head.revision, found)
            scope.before = Before.look(copy)
        return copy.revision

    def tell(self, session: str) -> bool:
        """Commit what has changed in the copy without its lock: what a pod, a keeper or a viewer has written.

        False when there was nothing. Raises as ``working``.
        """
        copy = self._copy(HOME) if session == HOME else self._copies.get(session)
        if copy is None:
            return False
        try:
            found = changes(copy, own_run=self._has_run(copy))
        except FileNotFoundError:
            return False
        if not is_urgent(copy, found):
            return False
        with self.working(session):
            return True

    @contextmanager
    def making(self, session: str) -> Iterator[Claim]:
        """Make a session. Call what this gives with the names that it may have, in order: the answer is the first that
        is free in the fleet, and a number. At the end it is in its folder and in PostgreSQL, or nowhere.
        """
        folder = session_folder(self.home, session)
        try:
            with self.database.transaction() as held:
                yield lambda names: stored.claim(held, session, names)
                copy = Copy(session, folder)
                found = changes(copy)
                self.quotas.admit(held, session, folder, found)
                head = stored.write(held, session, 0, found, about(copy))
        except BaseException:
            self._take_away(folder)
            raise
        told(copy, head.version, head.revision, found)
        self._copies[session] = copy

    def _has_run(self, copy: Copy) -> bool:
        """Whether the files of its run are told from here: while it is kept, only by who watches it."""
        return copy.name == HOME or copy.name in self.claims.watched or not is_kept(copy)

    # the lock of a session ----------------------------------------------------------------------------------------

    def is_inside(self, folder: str) -> bool:
        scope = self._scopes.get(os.path.basename(folder))
        return scope is not None and scope.thread == threading.get_ident()

    def enter(self, folder: str, timeout_s: float) -> Callable[[BaseException | None], None]:
        return self._enter(self._copy(os.path.basename(folder)), timeout_s)

    def _enter(self, copy: Copy, timeout_s: float) -> Callable[[BaseException | None], None]:
        if self._seen < 0:
            raise DatabaseAway(self.database.where, "this hub has not heard from it yet")
        try:
            scope = self._scope(copy, timeout_s)
        except DatabaseAway:
            if self.database.away is not None:
                raise
            scope = self._scope(copy, timeout_s)  # a connection broke, and the next one may not
        self._scopes[copy.name] = scope
        return lambda error: self._leave(scope)

    def _scope(self, copy: Copy, timeout_s: float) -> Scope:
        with ExitStack() as stack:
            held = stack.enter_context(self.database.transaction())
            try:
                if copy.name == HOME:
                    stored.make_home(held, HOME)
                head = stored.lock(held, copy.name, timeout_s)
            except errors.LockNotAvailable:
                raise locks.LockTimeout(os.path.join(copy.folder, files.LOCK), timeout_s) from None
            if head is None or head.gone:
                raise locks.Removed(copy.folder)
            if not copy.version and copy.name != HOME:
                put_right(copy, head, stored.files_since(held, {copy.name: -1}), held)
            elif head.version != copy.version:
                apply(copy, head, stored.files_since(held, {copy.name: copy.version}), held)
            self._heal(copy, held)
            before = Before.look(copy)
            return Scope(copy, stack.pop_all(), held, before, threading.get_ident())

    def _heal(self, copy: Copy, held: Connection) -> None:
        """Bring back what somebody has deleted in the copy: that is nobody's wish for the fleet."""
        there = copy.stamps()
        lost = [name for name in copy.marks if name not in there]
        if lost:
            log.warning("files of the copy were lost", session_id=copy.name, files=lost)
            for name in lost:
                del copy.marks[name]
            every = stored.files_since(held, {copy.name: -1})
            wanted = [file for file in every if file.name in lost]
            apply(copy, Head(copy.name, copy.revision, copy.version), wanted, held)

    def _leave(self, scope: Scope) -> None:
        """Commit what has changed, whatever the body has raised: the files are so. Undo it where that fails."""
        copy = scope.copy
        found: list[Change] = []
        head: Head | None = None
        try:
            try:
                with scope.stack, self._named(copy):
                    try:
                        found = changes(copy, had=scope.before.stamps, own_run=self._has_run(copy))
                    except FileNotFoundError:
                        head = stored.remove(scope.held, copy.name, copy.version)
                    else:
                        if found:
                            self.quotas.admit(scope.held, copy.name, copy.folder, found)
                            head = stored.write(scope.held, copy.name, copy.version, found, about(copy))
            except BaseException:
                scope.before.restore()
                raise
            if head is None:
                return
            if head.gone:
                self._copies.pop(copy.name, None)
            else:
                told(copy, head.version, head.revision, found)
        finally:
            self._scopes.pop(copy.name, None)

    @contextmanager
    def _named(self, copy: Copy) -> Iterator[None]:
        """Two sessions with one name cannot be: the second one's change is refused."""
        try:
            yield
        except errors.UniqueViolation:
            name = about(copy).name or ""
            with self.database.connections.connect() as asking:
                raise NameTaken(name, stored.holder(asking, name)) from None

    # the copy -----------------------------------------------------------------------------------------------------

    def catch_up(self) -> list[str]:
        """Bring the copy to the newest revision. The sessions whose files have changed in it, or ``HOME``.

        Raises ``DatabaseAway``.
        """
        with self._catching, self.database.snapshot() as asking:
            revision = newest(asking)
            if self._seen < 0 or revision < self._seen:  # the first look, or an older database was put in its place
                self._late.clear()
                changed = self._put_right(asking)
            else:
                heads = {head.id: head for head in stored.heads(asking, self._seen)}
                late, self._late = self._late, set()
                for session in late - heads.keys():
                    if (head := stored.head(asking, session)) is not None:
                        heads[session] = head
                changed = self._bring(asking, list(heads.values()))
            self._seen = revision
        return changed

    def refresh(self, session: str) -> bool:
        """Bring one session up to date. False when there is no such session. Raises ``DatabaseAway``."""
        with self.database.connections.connection() as asking:
            head = stored.head(asking, session)
            if head is None:
                return False
            copy = self._copies.get(session)
            if copy is None or head.version > copy.version or head.gone:
                self._bring(asking, [head])
            return not head.gone

    def _bring(self, asking: Connection, heads: list[Head]) -> list[str]:
        changed = []
        for head in heads:
            if head.gone:
                changed += self._forget(head.id)
        there = [head for head in heads if not head.gone and self._is_behind(head)]
        for start in range(0, len(there), AT_ONCE):
            part = there[start : start + AT_ONCE]
            by_session: dict[str, list[StoredFile]] = {head.id: [] for head in part}
            versions = {head.id: copy.version if (copy := self._copies.get(head.id)) else -1 for head in part}
            for file in stored.files_since(asking, versions):
                by_session[file.session].append(file)
            for head in part:
                if self._apply(head, by_session[head.id], asking):
                    changed.append(head.id)
        return changed

    def _is_behind(self, head: Head) -> bool:
        copy = self._copies.get(head.id)
        return copy is None or copy.version < head.version

    def _apply(self, head: Head, changed: list[StoredFile], asking: Connection) -> bool:
        if head.id == HOME:
            with self._sharing:
                if self._is_behind(head):
                    apply(self._copy(HOME), head, changed, asking)
            return True
        folder = session_folder(self.home, head.id)
        if self.is_inside(folder):
            return False
        if head.id not in self._copies:
            return self._compare(head, None, asking)
        try:
            with locks.FolderLock(folder, BUSY_S):
                copy = self._copy(head.id)
                if not self._is_behind(head):
                    return False  # who had the lock brought it up to date
                apply(copy, head, changed, asking)
        except FileNotFoundError:
            return self._make(head, asking)
        except locks.LockTimeout:
            self._late.add(head.id)
            return False
        return True

    def _make(self, head: Head, asking: Connection) -> bool:
        """A session that is new here: its folder appears whole. What came before its newest version comes with it."""
        made = os.path.join(sessions_folder(self.home), NEW + head.id)
        if os.path.isdir(made) and locks.is_held(os.path.join(made, files.LOCK)) is not True:
            self._take_away(made)  # who began it was killed
        try:
            os.mkdir(made, 0o700)
        except FileExistsError:
            self._late.add(head.id)  # it is being made
            return False
        try:
            with locks.Lock(os.path.join(made, files.LOCK)):
                copy = Copy(head.id, made)
                apply(copy, head, stored.files_since(asking, {head.id: -1}), asking)
                copy.folder = session_folder(self.home, head.id)
                os.rename(made, copy.folder)
                self._copies[head.id] = copy
        except BaseException:
            self._take_away(made)
            raise
        return True

    def _forget(self, session: str) -> list[str]:
        """Take the session, which is gone, out of the copy."""
        if not is_id(session):
            return []
        self._copies.pop(session, None)
        return [session] if self._take_away(session_folder(self.home, session)) else []

    def _take_away(self, folder: str) -> bool:
        gone = os.path.join(os.path.dirname(folder), REMOVED + os.path.basename(folder).removeprefix(NEW))
        try:
            os.rename(folder, gone)
        except FileNotFoundError:
            return False
        try:
            erase(gone)
        except OSError as error:
            log.warning("not erased", folder=gone, error=str(error))  # the next sweep tries again
        return True

    def _copy(self, session: str) -> Copy:
        found = self._copies.get(session)
        if found is None:
            folder = self.home if session == HOME else session_folder(self.home, session)
            found = self._copies.setdefault(session, Copy(session, folder))
        return found

    # the first look -----------------------------------------------------------------------------------------------

    def _put_right(self, asking: Connection) -> list[str]:
        """Compare all of the copy with PostgreSQL: it may be old, or ahead because of a crash before a commit."""
        began_s = time.monotonic()
        heads = [head for head in stored.heads(asking, -1) if not head.gone]
        by_session: dict[str, list[StoredFile]] = {head.id: [] for head in heads}
        for file in stored.every_file(asking):
            if file.session in by_session:
                by_session[file.session].append(file)
        known = {head.id for head in heads}
        unknown = [session for session in records.ids(self.home) if session not in known]
        for session in unknown:
            self._put_aside(session)
        changed = [*unknown, *(head.id for head in heads if self._compare(head, by_session.pop(head.id), asking))]
        log.info("compared", sessions=len(heads), changed=len(changed), seconds=round(time.monotonic() - began_s, 3))
        return changed

    def _compare(self, head: Head, there: list[StoredFile] | None, asking: Connection) -> bool:
        """Put one session right that was not looked at before. ``there`` is what PostgreSQL has, if that is known."""
        folder = self.home if head.id == HOME else session_folder(self.home, head.id)
        copy = Copy(head.id, folder)
        lock: AbstractContextManager[object] = self._sharing
        if head.id != HOME:
            lock = locks.FolderLock(folder, BUSY_S)
        try:
            with lock:
                is_right = there is not None and matches(copy, head, there)
                if not is_right:
                    put_right(copy, head, stored.files_since(asking, {head.id: -1}), asking)
                self._copies[head.id] = copy
        except FileNotFoundError:
            return self._make(head, asking)
        except FAILURES as error:
            log.warning("a copy could not be put right", session_id=head.id, error=str(error))
            self._late.add(head.id)
            return False
        return not is_right

    def _put_aside(self, session: str) -> None:
        """PostgreSQL does not know it: it was never committed. Nothing is deleted here all the same."""
        from hitchpost.store.quarantine import put_away

        log.warning("a session that PostgreSQL does not know was put into quarantine", session_id=session)
        put_away(session_folder(self.home, session), "../" + session)

    @property
    def revision(self) -> int:
        """The newest whose changes are all in the copy; -1 before the first look."""
        return self._seen

    @property
    def is_late(self) -> bool:
        """Whether sessions could not be brought up to date at the last turn, because somebody works on them here."""
        return bool(self._late)

    # output -------------------------------------------------------------------------------------------------------

    def ship(
        self, session: str, run: int, name: str, offset: int, data: bytes, written_at: float | None = None
    ) -> None:
        """A part of the output log: of a segment or of the time index, from its byte ``offset`` on. Durable then."""
        self.output.ship(session, run, name, offset, data, time.time() if written_at is None else written_at)

    def fetch_output(self, session: str, run: int) -> None:
        """What PostgreSQL has of it, into the copy."""
        self.output.fetch(session_folder(self.home, session), run)

    def forget_gone(self) -> None:
        """For who does the regular jobs."""
        with self.database.transaction() as held:
            stored.forget_gone(held, FORGET_GONE_S)
