"""A hub's copy of a session's folder, as its pod tells it. Everything above it reads it as if the run took place here.

An agent can write everything that a pod sends. So only files that are known come in, no larger than they may be, and of
record and state only what is true of the run. All of it blocks.
"""

from __future__ import annotations

import os
from binascii import crc32

from hitchpost import wire
from hitchpost.agents.prepare import is_conversation_id
from hitchpost.errors import MALFORMED, HitchpostError
from hitchpost.fleet import frames, shipped
from hitchpost.fleet.news import FILE, OUTPUT, News
from hitchpost.lightjson import dumps, loads
from hitchpost.model import run as runs
from hitchpost.store import files, locks, records
from hitchpost.store.home import make_run_folder, run_folder
from hitchpost.store.session import Session, State
from hitchpost.terminal import output

FROM_POD = "from_pod.json"
"""How much of the pod's own lines was taken, by file."""
TAIL_BYTES = 256 * 1024
"""Lines that were taken just before a hub was killed are looked for so far back."""
POD_EVENTS = ("state", "attention", "conversation", "keeper", "repaired")
"""What a pod may tell in the story: what becomes of its run. What people did there, only hubs tell."""
POD_ACTORS = ("keeper", "recovery", "pod")
FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
LONGEST_LOG_BYTES = 1 << 30
MOST_SEGMENTS = 128
"""Of a run's output. A keeper has half as many."""


class NotFitting(HitchpostError):
    """Raised when what a pod sends does not go on where the copy ends, or is nothing that a pod may send."""

    http_status = 502
    code = "bad_frame"


class Copy:
    """``ends`` is how far the log of each run reaches here, for readers. ``most_log_bytes`` are kept of each, and at
    most as many more of its newest segment. ``most_line_bytes`` is how long a story or a chat can become by what its
    pod says: what comes then is not kept."""

    def __init__(
        self,
        session_folder: str,
        most_log_bytes: int = LONGEST_LOG_BYTES,
        most_line_bytes: int = shipped.MOST_LINE_BYTES,
    ) -> None:
        self.folder, self.most_log_bytes, self.most_line_bytes = session_folder, most_log_bytes, most_line_bytes
        self.ends: dict[int, int] = {}
        self._stored = Session(session_folder, actor="pod")
        self._part = bytearray()
        self._doubted: set[str] = set()
        self._segment: tuple[int, int] = (0, 0)
        self._fd = -1
        self._size = 0

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def state(self) -> State:
        return self._stored.read()

    # what it has --------------------------------------------------------------------------------------------------

    def have(self) -> dict[str, object]:
        """What the pod need not send again."""
        self.close()
        self._part.clear()
        return {"lines": self.lines(), "runs": self._runs()}

    def lines(self) -> dict[str, int]:
        """How much of the pod's own lines was taken, by this hub or another."""
        self._doubted = set(shipped.LINES)
        taken = self._taken()
        return {name: taken.get(name, 0) for name in shipped.LINES}

    def _runs(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for run in sorted({*self._run_numbers(), self.state().run}):
            self.ends[run] = max(self.ends.get(run, 0), self._end_of_bytes(run))
            sizes = {name: _checksum(os.path.join(run_folder(self.folder, run), name)) for name in shipped.GROWN}
            grown = {name: list(has) for name, has in sizes.items() if has is not None}
            found[str(run)] = {"end": self._end_of_bytes(run), "grown": grown}
        return found

    def _run_numbers(self) -> list[int]:
        """Those whose output is here."""
        try:
            names = os.listdir(os.path.join(self.folder, "runs"))
        except FileNotFoundError:
            return []
        return [int(name) for name in names if name.isdecimal() and os.path.isdir(self._output(int(name)))]

    def _output(self, run: int) -> str:
        return os.path.join(run_folder(self.folder, run), wire.OUTPUT)

    def _end_of_bytes(self, run: int) -> int:
        return output.bounds(self._output(run))[1]

    def first(self, run: int) -> int:
        return output.bounds(self._output(run))[0]

    def _taken(self) -> dict[str, int]:
        try:
            found = files.read_object(os.path.join(self.folder, FROM_POD))
        except files.CannotRead:
            return {}
        return {name: at for name, at in found.items() if isinstance(at, int)}

    # what comes ---------------------------------------------------------------------------------------------------

    def apply(self, kind: bytes, payload: bytes) -> News | None:
        """Take a frame that is about files. What is new then, if anything. Raises ``NotFitting``, ``OSError``, or what
        the store raises."""
        try:
            if kind in (frames.REACHED, frames.FIRST):
                run, at = int.from_bytes(payload[:4], "big"), int.from_bytes(payload[4:12], "big")
                (self._reached if kind == frames.REACHED else self._drop_before)(run, at)
                return None
            run, flag, name, start = frames.take_name(payload)
            if kind == frames.PART:
                at, us = (int.from_bytes(payload[start + i : start + i + 8], "big") for i in (0, 8))
                return self._take_part(run, name, at, us, memoryview(payload)[start + 16 :])
            most = shipped.MOST_GROWN_BYTES if name in shipped.GROWN else shipped.MOST_WHOLE_BYTES
            if len(self._part) + len(payload) - start > most:
                self._part.clear()
                raise NotFitting(f"a file {name!r} of more than {most} bytes is none of a pod's")
            self._part += payload[start:]
            if flag == frames.MORE:
                return None
            data, self._part = bytes(self._part), bytearray()
            return self._take_whole(run, name, data)
        except MALFORMED as error:
            raise NotFitting(f"a pod sent what nobody understands: {error}") from None

    def check_run(self, run: int) -> None:
        """Raises ``NotFitting`` for a run that there is not, as far as is known here."""
        last = self.state().run
        if not 0 < run <= last:
            raise NotFitting(f"expected a run from 1 to {last}, but the pod speaks of run {run}")

    def _take_whole(self, run: int, name: str, data: bytes) -> News | None:
        if name in shipped.STATES:
            return News(FILE, run, name) if self._take_state(run, name, data) else None
        if name not in shipped.OF_RUN:
            raise NotFitting(f"no pod sends a file {name!r}")
        with locks.FolderLock(self.folder):
            state = self.state()
            is_live = run == state.run and state.state in runs.LIVE
            path = os.path.join(self._folder_of(run, state), name)
            before = _read(path)
            if before == data or (before is not None and not is_live and name not in shipped.GROWN):
                return None  # what a hub has written down of an end stays
            files.replace_file(path, data, durable=False)
        return _news(run, name)

    def _take_state(self, run: int, name: str, data: bytes) -> bool:
        told = loads(data)
        if not isinstance(told, dict):
            raise NotFitting(f"expected an object in {name}, but got {type(told).__name__}")
        with locks.FolderLock(self.folder):
            if name == files.STATE:
                return self._stored.take_state(told)
            if run != self.state().run:
                return False
            record = records.told(self.folder, told)
            for text in (record.conversation_id, record.fork_of, record.resumes):
                if text and not is_conversation_id(text):
                    raise NotFitting(f"expected the id of a conversation, but got {text!r}")
            return self._stored.take_conversation(record)

    def _folder_of(self, run: int, state: State) -> str:
        if not 0 < run <= state.run:
            raise NotFitting(f"expected a file of run 1 to {state.run}, but got one of run {run}")
        folder = make_run_folder(self.folder, run)
        os.makedirs(os.path.join(folder, wire.OUTPUT), mode=0o700, exist_ok=True)
        return folder

    def _take_part(self, run: int, name: str, at: int, us: int, data: memoryview) -> News | None:
        if name in shipped.LINES:
            return self._take_lines(name, at, bytes(data))
        start = shipped.segment_start(name)
        if start is not None:
            self._append_output(run, start, at, us, data)
            return News(OUTPUT, run, f"runs/{run}/{name}")
        if name not in shipped.GROWN:
            raise NotFitting(f"no pod appends to a file {name!r}")
        path = os.path.join(self._folder_of(run, self.state()), name)
        fd = os.open(path, FLAGS, 0o600)
        try:
            size = os.fstat(fd).st_size
            if size != at or size + len(data) > shipped.MOST_GROWN_BYTES:
                raise NotFitting(f"{name} of run {run} goes on at {size}, but the pod sends it from {at}")
            files.write_all(fd, data)
        finally:
            os.close(fd)
        return _news(run, name)

    def _take_lines(self, name: str, at: int, data: bytes) -> News | None:
        with locks.FolderLock(self.folder):
            taken = self._taken()
            if at not in (0, taken.get(name, 0)):
                raise NotFitting(f"{name} goes on at {taken.get(name, 0)}, but the pod sends it from {at}")
            end, path = at + len(data), os.path.join(self.folder, name)
            if name == files.STORY:
                data = _of_pod(data)
            if name in self._doubted:
                self._doubted.discard(name)
                known = set(_tail(path).splitlines())
                data = b"".join(line for line in data.splitlines(keepends=True) if line.rstrip(b"\n") not in known)
            if _size(path) + len(data) > self.most_line_bytes:
                data = b""
            if data and name == files.STORY:
                self._stored.take_lines(data)
            elif data:
                files.append_bytes(path, data, durable=False)
            where = os.path.join(self.folder, FROM_POD)
            files.write_object(where, {"schema": files.SCHEMA, **taken, name: end}, durable=False)
        return News(FILE, 0, name)

    # output -------------------------------------------------------------------------------------------------------

    def _append_output(self, run: int, start: int, at: int, us: int, data: memoryview) -> None:
        if self._fd < 0 or self._segment != (run, start):
            self._open_segment(run, start, at)
        if start + self._size != at or at >= frames.FURTHEST:
            self.close()
            raise NotFitting(f"the output of run {run} goes on at {start + self._size}, but the pod sends it from {at}")
        if self._size + len(data) > self.most_log_bytes:
            raise NotFitting(f"a part of the output of run {run} has more than {self.most_log_bytes} bytes")
        # at its place, not at the end of the file: what PostgreSQL has may have been brought meanwhile
        self._size = files.write_all_at(self._fd, self._size, data)
        if us:
            os.utime(self._fd, ns=(us * 1000, us * 1000))
        self.ends[run] = max(self.ends.get(run, 0), start + self._size)

    def _open_segment(self, run: int, start: int, at: int) -> None:
        """It is made only for its first bytes, where the log ends."""
        self.close()
        path = os.path.join(self._folder_of(run, self.state()), shipped.segment(start))
        is_new = at == start >= self._end_of_bytes(run)
        try:
            self._fd = os.open(path, FLAGS & ~(os.O_APPEND if is_new else os.O_APPEND | os.O_CREAT), 0o600)
        except FileNotFoundError:
            raise NotFitting(f"the output of run {run} has no segment {start} here that goes on at {at}") from None
        self._size, self._segment = os.fstat(self._fd).st_size, (run, start)
        self._make_room(run)

    def _reached(self, run: int, end: int) -> None:
        self.check_run(run)
        if end >= frames.FURTHEST:
            raise NotFitting(f"the output of run {run} cannot reach to {end}")
        self.ends[run] = max(self.ends.get(run, 0), end)

    def _drop_before(self, run: int, first: int) -> None:
        """The pod's log has dropped its oldest segments. The newest stays: a reader may be there."""
        for start in output.segments(self._output(run))[:-1]:
            if start < first:
                self._drop(run, start)

    def _make_room(self, run: int) -> None:
        """A log that grows beyond what it may is cut here, whatever its pod does."""
        starts = output.segments(self._output(run))
        end = self._end_of_bytes(run)
        while len(starts) > 1 and (end - starts[0] > self.most_log_bytes or len(starts) > MOST_SEGMENTS):
            self._drop(run, starts.pop(0))

    def _drop(self, run: int, start: int) -> None:
        files.discard(os.path.join(self._output(run), wire.segment_name(start)))


def _news(run: int, name: str) -> News:
    """Of a file of a run. The time index is a part of the output, and changes as often."""
    return News(OUTPUT if name == shipped.TIMES else FILE, run, f"runs/{run}/{name}")


def _of_pod(lines: bytes) -> bytes:
    """Lines of the story that a pod may tell, in the name of those who are there. Others are left out."""
    return b"".join(map(_told_by_pod, lines.splitlines(keepends=True)))


def _told_by_pod(line: bytes) -> bytes:
    try:
        told = loads(line)
    except ValueError:
        return b""
    if not isinstance(told, dict) or told.get("event") not in POD_EVENTS:
        return b""
    if told.get("actor") in POD_ACTORS:
        return line if line.endswith(b"\n") else line + b"\n"
    return dumps({**told, "actor": POD_ACTORS[-1]}).encode() + b"\n"


def _size(path: str) -> int:
    try:
        return os.stat(path, follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0


def _checksum(path: str) -> tuple[int, int] | None:
    data = _read(path)
    return None if data is None else (len(data), crc32(data))


def _read(path: str) -> bytes | None:
    try:
        return files.read_bytes(path, shipped.MOST_GROWN_BYTES)
    except OSError:
        return None


def _tail(path: str) -> bytes:
    try:
        return files.read_ends(path, 0, TAIL_BYTES)
    except OSError:
        return b""
