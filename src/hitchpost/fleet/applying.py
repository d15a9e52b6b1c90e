"""From PostgreSQL into the copy: what has changed there is written here, as files are on one machine.

What only the copy has stays where it is news of a run: a keeper, or who stands in for it, works here, or the run's end
was seen here. Lines that only the copy has come behind those of others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from hitchpost import lightjson, wire
from hitchpost.errors import MALFORMED
from hitchpost.fleet import stored
from hitchpost.fleet.connections import Connection
from hitchpost.fleet.copied import HOME, Copy, Mark, check, crc, digest_of, is_of_run, order, steady
from hitchpost.fleet.stored import GONE, GROWING, Head, StoredFile
from hitchpost.model import run as runs
from hitchpost.store import files, locks
from hitchpost.store.home import run_folder

RANKS = {runs.CREATED: 0, runs.STARTING: 1, runs.RUNNING: 2, runs.STOPPING: 3}
ENDED = 4


def apply(copy: Copy, head: Head, changed: Iterable[StoredFile], asking: Connection) -> None:
    """Bring the copy to ``head``. The caller holds the session's lock, and ``asking`` sees at least that version."""
    changed = sorted(changed, key=lambda file: order(file.name))
    news = has_news(copy, _state(changed))
    for file in changed:
        check(file.name, copy.name)
        mark = copy.marks.get(file.name)
        if mark is not None and mark.version >= file.version:
            continue
        if file.kind == GROWING:
            _grow(copy, file, mark, asking, keep=True)
        else:
            _replace(copy, file, keep=news and is_of_run(file.name) and is_changed(copy, file.name, mark))
    copy.version, copy.revision = head.version, head.revision


def matches(copy: Copy, head: Head, there: Iterable[StoredFile]) -> bool:
    """At a hub's start: whether the copy has what PostgreSQL has, and nothing else. It is marked so then."""
    own, marks = set(copy.stamps()), {}
    for file in there:
        data = copy.read(check(file.name, copy.name))
        if data is None or (len(data), digest_of(file.name, data)) != (file.size, file.digest):
            return False
        own.discard(file.name)
        marks[file.name] = Mark(file.version, file.size, file.digest, copy.stamp(file.name), part=file.size)
        if file.name == files.STATE:
            copy.steady_state = steady(data)
    if own:
        return False
    copy.marks, copy.version, copy.revision = marks, head.version, head.revision
    return True


def put_right(copy: Copy, head: Head, there: Iterable[StoredFile], asking: Connection) -> None:
    """A copy that is behind, or ahead because of a crash before the commit, gets what PostgreSQL has."""
    there = sorted((file for file in there if file.kind != GONE), key=lambda file: order(file.name))
    news, known = has_news(copy, _state(there)), {check(file.name, copy.name) for file in there}
    copy.marks.clear()
    for name in copy.stamps():
        if name not in known and not (news and is_of_run(name)):
            files.discard(copy.path(name))
    for file in there:
        if file.kind == GROWING:
            _grow(copy, file, Mark(0, file.size, file.digest), asking, keep=news)
        else:
            _replace(copy, file, keep=news and is_of_run(file.name))
    copy.version, copy.revision = head.version, head.revision


def _replace(copy: Copy, file: StoredFile, *, keep: bool) -> None:
    """A whole file, unless what the copy has counts more. Then it differs from its mark, and is told to the others."""
    if file.kind == GONE:
        if not keep:
            files.discard(copy.path(file.name))
        copy.marks.pop(file.name, None)
        return
    data, mark = file.data or b"", Mark(file.version, file.size, file.digest)
    if not keep and is_changed(copy, file.name, mark):
        put(copy, file.name, data)
    mark.stamp = None if keep else copy.stamp(file.name)
    copy.marks[file.name] = mark
    if file.name == files.STATE:
        copy.steady_state = steady(data)


def _grow(copy: Copy, file: StoredFile, mark: Mark | None, asking: Connection, *, keep: bool) -> None:
    """A growing file: what is new of it is appended; what only the copy has comes behind it, or goes."""
    had = copy.read(file.name) or b""
    is_known = mark is not None and len(had) >= mark.size and crc(had[: mark.size]) == mark.digest
    start = min(mark.size, file.size) if mark is not None and is_known else 0
    new, part = stored.grown(asking, copy.name, file.name, start)
    told = had[:start] + new[: file.size - start]
    if start and crc(told) != file.digest:  # it was written anew
        start = 0
        new, part = stored.grown(asking, copy.name, file.name, 0)
        told = new[: file.size]
    own, since = (had[mark.size :], told[start:]) if mark is not None and is_known else (had, told)
    wanted = _joined(told, since, own) if keep else told
    if wanted.startswith(had) and had:
        append(copy, file.name, wanted[len(had) :])
    elif wanted != had or not had:
        put(copy, file.name, wanted)
    stamp = copy.stamp(file.name) if wanted == told else None
    copy.marks[file.name] = Mark(file.version, file.size, file.digest, stamp, part)


def _joined(told: bytes, new: bytes, own: bytes) -> bytes:
    """``new`` is the end of ``told``. The lines of ``own`` come behind it, those that are told already excepted."""
    if new.startswith(own):
        return told
    if own.startswith(new):
        return told + own[len(new) :]
    known = set(new.splitlines())
    return told + b"".join(line + b"\n" for line in own.splitlines() if line and line not in known)


def is_changed(copy: Copy, name: str, mark: Mark | None) -> bool:
    """Whether the copy has something else than ``mark``."""
    data = copy.read(name)
    if data is None or mark is None:
        return data is not None or mark is not None
    return (len(data), digest_of(name, data)) != (mark.size, mark.digest)


def has_news(copy: Copy, state: bytes | None) -> bool:
    """Whether the files of the run in this copy are newer than ``state``, which PostgreSQL has; None: than it had.

    They are while a keeper, or who stands in for it, has the run here, and when the run has ended here. What PostgreSQL
    knows of a later state counts more.
    """
    own = None if copy.name == HOME else copy.read(files.STATE)
    if own is None:
        return False
    (run, rank), known = progress(own), None if state is None else progress(state)
    if known is not None and known > (run, rank):
        return False
    where = run_folder(copy.folder, run)
    if locks.is_held(os.path.join(where, wire.KEEPER_LOCK)) is not False:
        return True
    is_end = known is None or (known[0] == run and 0 < known[1] < ENDED)
    return is_end and rank == ENDED and os.path.exists(os.path.join(where, wire.EXIT))


def progress(state: bytes) -> tuple[int, int]:
    """How far a session has come: the number of its run, and the rank of its state. It never goes back."""
    try:
        value = lightjson.loads(state)
        assert isinstance(value, dict)
        return int(value["run"]), RANKS.get(str(value["state"]), ENDED)
    except (*MALFORMED, AssertionError):
        return 0, 0


def _state(there: Iterable[StoredFile]) -> bytes | None:
    return next((file.data for file in there if file.name == files.STATE), None)


def put(copy: Copy, name: str, data: bytes) -> None:
    """Not forced to the disk: PostgreSQL has it."""
    path = copy.path(name)
    try:
        files.replace_file(path, data, durable=False)
    except FileNotFoundError:
        _make_folders(copy.folder, os.path.dirname(path))
        files.replace_file(path, data, durable=False)


def _make_folders(top: str, folder: str) -> None:
    """Below ``top``, for their owner only. Raises ``FileNotFoundError`` when that is gone itself."""
    if folder == top:
        raise FileNotFoundError(top)
    if not os.path.isdir(os.path.dirname(folder)):
        _make_folders(top, os.path.dirname(folder))
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        return


def append(copy: Copy, name: str, data: bytes) -> None:
    if not data:
        return
    fd = os.open(copy.path(name), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        files.write_all(fd, data)
    finally:
        os.close(fd)
