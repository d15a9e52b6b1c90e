"""Holding containers still while our git works on files that they can write.

What runs in a container could put a link in the place of a folder in the very moment in which git is about to read,
write or delete something in it. So the engine pauses every container that can write there, and lets it go on
afterwards. One that a person has paused stays paused.

A mark beside the session's files says that the pause is ours. Who made it holds a lock, and so does the git that it
has started: a mark without one was left by somebody who was killed, and whoever finds it lets the container go on.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, contextmanager

from hitchpost import wire
from hitchpost.errors import FAILURES, MALFORMED, HitchpostError
from hitchpost.runtimes import mount_sources
from hitchpost.runtimes.container_file import GOING, read_box
from hitchpost.runtimes.engine import ANSWER_S, Box, EngineFailed
from hitchpost.store import files, locks, records
from hitchpost.store.home import session_folder
from hitchpost.store.sandbox import StoredSandbox
from hitchpost.system.shortpath import ShortPath
from hitchpost.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from hitchpost.store.records import Record

LOCK, MARK = "frozen.lock", wire.FROZEN
WAIT_S = 60.0
"""How long to wait for somebody else who holds the same container still."""
PAUSE_S, ROUND_S = 10.0, 0.1
LATE_S = 600.0
"""How long an engine that has not answered may take to do what it was asked for."""
DONE = (204, 304)


class NoAnswer(EngineFailed):
    """Raised when the engine has not answered in time: what it was asked for it may still do."""


class NotStill(HitchpostError):
    """Raised when a container cannot be held still, or was not: then nothing is done with the files in its reach."""

    http_status = 502
    code = "engine_failed"

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"the container of {name} could not be paused: {why}")


@value
class Live:
    """A container that lives, and the session that it is of."""

    session: str
    folder: str
    name: str
    word: str
    box: Box

    @property
    def lock(self) -> str:
        return os.path.join(self.folder, LOCK)

    @property
    def mark(self) -> str:
        return os.path.join(self.folder, MARK)


def within_reach(home: str, path: str) -> list[Live]:
    """The containers of this home that live and can write something at ``path``, below it, or around it."""
    try:
        ids = sorted(records.ids(home))
    except OSError:
        return []
    found = []
    for session in ids:
        folder = session_folder(home, session)
        box = _box(folder)
        if box is None or not box.alive:
            continue
        try:
            record = records.read(folder)
        except FAILURES:
            found.append(Live(session, folder, session, session, box))  # nobody knows what it can write
            continue
        if _reaches(record, box, os.path.realpath(path)):
            found.append(Live(session, folder, record.name, record.word, box))
    return found


@contextmanager
def still(home: str, *paths: str, but: str = "") -> Iterator[tuple[int, ...]]:
    """Nothing runs meanwhile in a container that can write at one of the paths. Raises ``NotStill``.

    The container of the session ``but`` is left alone.

    Whatever is started to work on the files has the descriptors open that this gives, so that the container is not let
    go on before that has ended, even when we are killed.
    """
    live = {
        container.session: container
        for path in paths
        for container in within_reach(home, path)
        if container.session != but
    }
    with ExitStack() as held:
        yield tuple([held.enter_context(_held(live[session])) for session in sorted(live)])


@contextmanager
def _held(live: Live) -> Iterator[int]:
    box = live.box
    with locks.Lock(live.lock, WAIT_S) as lock:
        by_person = box.paused and not os.path.exists(live.mark)
        if not by_person:
            files.write_object(live.mark, {"schema": files.SCHEMA, "container": box.id, "at": files.stamp()})
        held = False
        try:
            if not box.paused:
                _pause(live)
            held = True
            yield lock.fd
            if _goes_on(box):
                raise NotStill(live.name, "someone resumed it in the meantime")
        finally:
            if not by_person and (held or box.paused):
                _let_go(box, live.mark)


def _pause(live: Live) -> None:
    """A busy container can be hard to pause, so an engine that has failed to is asked again.

    The mark of one that has not answered stays: it may do late what it was asked for.
    """
    deadline = time.monotonic() + PAUSE_S
    while _goes_on(live.box):
        left_s = deadline - time.monotonic()
        try:
            _ask(live.box, "pause", max(left_s, ROUND_S))
            why = "its engine reports it as paused, but the kernel does not"
        except NoAnswer as error:
            raise NotStill(live.name, str(error)) from None
        except EngineFailed as error:
            why = str(error)
        if not _goes_on(live.box):
            return
        if left_s <= ROUND_S:
            files.discard(live.mark)
            raise NotStill(live.name, why)
        time.sleep(ROUND_S)


def _let_go(box: Box, mark: str) -> None:
    if _is_frozen(box):
        try:
            _ask(box, "unpause", ANSWER_S)
        except EngineFailed:
            if _is_frozen(box):
                raise
    files.discard(mark)


def _goes_on(box: Box) -> bool:
    return box.alive and not box.paused


def _is_frozen(box: Box) -> bool:
    return box.alive and box.paused


def is_ours(folder: str) -> bool:
    """Whether the session's container is paused by us, for the moment."""
    return os.path.exists(os.path.join(folder, MARK)) and locks.is_held(os.path.join(folder, LOCK)) is True


def is_left(folder: str) -> bool:
    """Whether somebody who held the session's container still was killed, and it is still paused."""
    if not os.path.exists(os.path.join(folder, MARK)) or locks.is_held(os.path.join(folder, LOCK)) is not False:
        return False
    box = _box(folder)
    return box is not None and _is_frozen(box)


def let_go_left(folder: str) -> bool:
    """Let such a container go on. False where there is none. Raises ``EngineFailed``."""
    mark = os.path.join(folder, MARK)
    if not os.path.exists(mark):
        return False
    try:
        with locks.Lock(os.path.join(folder, LOCK), 0):
            box = _box(folder)
            left = box is not None and os.path.exists(mark) and _is_frozen(box)
            if left or time.time() - os.stat(mark).st_mtime > LATE_S:
                _let_go(box, mark) if box is not None else files.discard(mark)
            return left
    except locks.LockTimeout:
        return False  # somebody is at work there
    except FileNotFoundError:
        return False  # or has just been


@contextmanager
def in_motion(folder: str, wait_s: float = WAIT_S) -> Iterator[None]:
    """Nobody holds the session's container still meanwhile: no program can be started in one that is paused."""
    with locks.Lock(os.path.join(folder, LOCK), wait_s):
        box, mark = _box(folder), os.path.join(folder, MARK)
        if box is not None and os.path.exists(mark):
            _let_go(box, mark)
        yield


def _box(folder: str) -> Box | None:
    for name in (wire.BOX, GOING):
        if os.path.exists(os.path.join(folder, name)) and (box := read_box(folder, name)) is not None:
            return box
    return None


def _reaches(record: Record, box: Box, path: str) -> bool:
    """By where the session works and what it has mounted. A container that was made for another folder than the
    session has now can be anywhere."""
    mounted = box.made_for.split(" ")[0]
    if mounted != f"{record.folder_dev}:{record.folder_ino}" or mounted in _around(path):
        return True
    try:
        mounts = [source.path for source in mount_sources.of(record.sandbox or StoredSandbox()) if source.is_writable]
    except HitchpostError:
        return True
    return any(_overlap(place, path) for place in (os.path.realpath(record.folder), *mounts))


def _around(path: str) -> list[str]:
    """What is at ``path``, and every folder around it, as a container's ``made_for`` names them."""
    found = []
    while True:
        try:
            place = os.lstat(path)
            found.append(f"{place.st_dev}:{place.st_ino}")
        except OSError:
            pass
        if path == os.path.dirname(path):
            return found
        path = os.path.dirname(path)


def _overlap(path: str, other: str) -> bool:
    first, second = os.path.join(path, ""), os.path.join(other, "")
    return first.startswith(second) or second.startswith(first)


def _ask(box: Box, what: str, timeout_s: float) -> None:
    """Without the engine's client, which takes longer to load than to do this. Raises ``EngineFailed``."""
    import socket
    from http.client import HTTPConnection, HTTPException

    folder, name = os.path.split(box.engine.removeprefix("unix://"))
    link = HTTPConnection("engine", timeout=timeout_s)
    try:
        link.sock = socket.socket(socket.AF_UNIX)
        link.sock.settimeout(timeout_s)
        with ShortPath(folder, name) as place:
            link.sock.connect(place)
        link.request("POST", f"/containers/{box.id}/{what}")
        answer = link.getresponse()
        text = answer.read(4096).decode("utf-8", "replace")
    except TimeoutError:
        raise NoAnswer(f"the container engine did not answer within {timeout_s:g} s") from None
    except (OSError, HTTPException) as error:
        raise EngineFailed(f"the container engine cannot be reached at {box.engine}: {error}") from None
    finally:
        link.close()
    if answer.status not in DONE:
        raise EngineFailed(f"the container engine refused: {_message(text)}")


def _message(answer: str) -> str:
    import json

    try:
        return str(json.loads(answer)["message"])
    except MALFORMED:
        return answer.strip()
