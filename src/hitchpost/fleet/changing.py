"""From the copy into PostgreSQL: what has changed in a session's folder, and the way back when it could not be told."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from hitchpost import wire
from hitchpost.fleet.copied import HOME, RUNS, Copy, Mark, Stamp, crc, digest, is_of_run, is_old, kind_of, steady
from hitchpost.fleet.stored import GONE, GROWING, PART_BYTES, WHOLE, About, Change
from hitchpost.model.record import ARCHIVED
from hitchpost.ops.sessions.create import REMOVED
from hitchpost.store import files, locks, records
from hitchpost.store.home import run_folder
from hitchpost.store.images import IMAGES

ACTIVITY_EVERY_S = 60.0
"""That output came is told to the others now and then; whoever wants to know it at once has a link."""
MOST_KEPT_BYTES = 1 << 20


def changes(copy: Copy, *, had: dict[str, Stamp] | None = None, own_run: bool = True) -> list[Change]:
    """What the copy has and PostgreSQL has not. Raises ``FileNotFoundError`` when the session's folder is gone.

    ``had`` are the files that were there before: one of those that is not there now was removed. One that nobody has
    seen here was lost, and its loss is told to nobody. Without ``own_run`` the files of the run are another's.
    """
    found, there = [], copy.stamps()
    for name, stamp in there.items():
        mark = copy.marks.get(name)
        if mark is not None and mark.stamp == stamp:
            continue
        if is_of_run(name) and not own_run:
            continue
        change = _grown(copy, name, mark, stamp) if kind_of(name) == GROWING else _replaced(copy, name, mark, stamp)
        if change is not None:
            found.append(change)
    gone = [name for name in had or {} if name not in there and name in copy.marks]
    return [*found, *(Change(name, GONE) for name in gone)]


def _replaced(copy: Copy, name: str, mark: Mark | None, stamp: Stamp) -> Change | None:
    data = copy.read(name)
    if data is None:
        return None
    change = Change(name, WHOLE, len(data), digest(data), data)
    if mark is not None and (mark.size, mark.digest) == (change.size, change.digest):
        mark.stamp = stamp if is_old(stamp) else None
        return None
    return change


def _grown(copy: Copy, name: str, mark: Mark | None, stamp: Stamp) -> Change | None:
    """The same inode as before holds what it held: only its end is read."""
    if mark is not None and mark.stamp is not None and mark.stamp[0] == stamp[0] and stamp[1] > mark.size:
        data = copy.read_from(name, mark.part)
        size = mark.part + len(data)
        return Change(name, GROWING, size, crc(data[mark.size - mark.part :], mark.digest), data, mark.part)
    content = copy.read(name)
    if content is None:
        return None
    if mark is None or len(content) < mark.size or crc(content[: mark.size]) != mark.digest:
        return Change(name, GROWING, len(content), crc(content), content)
    if len(content) == mark.size:
        mark.stamp = stamp
        return None
    return Change(name, GROWING, len(content), crc(content), content[mark.part :], mark.part)


def is_urgent(copy: Copy, found: list[Change]) -> bool:
    """False when nothing has changed but the time of the last output, and that was told lately."""
    if len(found) != 1 or found[0].name != files.STATE or found[0].kind != WHOLE:
        return bool(found)
    return steady(found[0].data) != copy.steady_state or time.monotonic() - copy.committed_s > ACTIVITY_EVERY_S


def told(copy: Copy, version: int, revision: int, done: list[Change]) -> None:
    """PostgreSQL has the changes now."""
    for change in done:
        if change.kind == GONE:
            copy.marks.pop(change.name, None)
            continue
        part = change.start if len(change.data) < PART_BYTES else change.size
        stamp = copy.stamp(change.name)
        mark = Mark(version, change.size, change.digest, None, part)
        if change.kind == GROWING and stamp is not None:
            mark.stamp = (stamp[0], change.size)
        copy.marks[change.name] = mark
        if change.name == files.STATE:
            copy.steady_state = steady(change.data)
    copy.version, copy.revision, copy.committed_s = version, revision, time.monotonic()


def about(copy: Copy) -> About:
    """What the session's row has of its record."""
    if copy.name == HOME:
        return About()
    try:
        record = records.read(copy.folder)
    except files.CannotRead:
        return About()
    return About(record.name, record.record == ARCHIVED)


def is_kept(copy: Copy) -> bool:
    """Whether a keeper, or who stands in for it, has the current run in this copy."""
    try:
        run = files.read_object(os.path.join(copy.folder, files.STATE)).get("run")
    except files.CannotRead:
        return False
    where = run_folder(copy.folder, run if isinstance(run, int) else 0)
    return locks.is_held(os.path.join(where, wire.KEEPER_LOCK)) is not False


@dataclass(slots=True)
class Before:
    """A session's files as they were when somebody took its lock, so that they can be so again.

    Files of a run that a keeper has are its own, and stay as they are.
    """

    copy: Copy
    is_kept: bool
    stamps: dict[str, Stamp]
    held: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def look(cls, copy: Copy) -> Before:
        kept = is_kept(copy)
        before = cls(copy, kept, copy.stamps())
        newest = sorted({_run(name) for name in before.stamps})[-2:]
        for name, stamp in before.stamps.items():
            is_small = kind_of(name) == WHOLE and stamp[1] <= MOST_KEPT_BYTES
            if is_small and before._is_ours(name) and _run(name) in (0, *newest):
                before.held[name] = copy.read(name) or b""
        return before

    def _is_ours(self, name: str) -> bool:
        return not name.startswith(f"{IMAGES}/") and not (self.is_kept and is_of_run(name))

    def restore(self) -> None:
        """PostgreSQL did not take the changes: undo them."""
        copy = self.copy
        gone = os.path.join(os.path.dirname(copy.folder), REMOVED + copy.name)
        if copy.name != HOME and not os.path.isdir(copy.folder) and os.path.isdir(gone):
            os.rename(gone, copy.folder)
        now = copy.stamps()
        for name in now:
            if name not in self.stamps and self._is_ours(name):
                files.discard(copy.path(name))
        for name, stamp in self.stamps.items():
            if now.get(name) == stamp and is_old(stamp):
                continue
            if kind_of(name) == GROWING:
                if name in now and now[name][0] == stamp[0] and now[name][1] > stamp[1]:
                    os.truncate(copy.path(name), stamp[1])
            elif name in self.held and copy.read(name) != self.held[name]:
                files.replace_file(copy.path(name), self.held[name])


def _run(name: str) -> int:
    """Of whose files it is; 0 for those of the session itself."""
    return int(name.split("/")[1]) if name.startswith(f"{RUNS}/") else 0
