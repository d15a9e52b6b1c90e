"""The index: what ``ps`` and look-ups need of every session, in one file. A cache, checked against the files.

The check is the change time of a session's two files, which sees what renames a file and what writes into one. What
changed in the same moment in which it was indexed is read again: file systems count time in ticks.

The file is made to be read fast. Its first line has the version, and the lengths and checksums of two parts. The first
part has one line for each session, its fields separated by tabs; the second has, in the same order, the JSON shapes of
those that have ended. ``ps`` prints thousands of sessions without parsing any, and its table does not even read the
second part.
"""

from __future__ import annotations

import os
import time
from binascii import crc32

from hitchpost import lightjson
from hitchpost.state import files
from hitchpost.state.home import sessions_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Row = dict[str, Any]

INDEX = "index.tsv"
MAGIC = b"hitchpost index"
TICK_NS = 2_000_000_000
VERSION = 3
RECORD_FILE = "session.json"
NO_STAMP = "0"

# the fields of a line; those from SINCE on are there only for a session that has ended
ID, RECORD_STAMP, STATE_STAMP, RECORD, NUMBER, NAME = range(6)
SINCE, TOTAL, COLOUR, DESCRIPTION, AGENT, PLACE, LABEL = range(6, 13)
ALL_FIELDS, FEW_FIELDS = 13, 6


class Index:
    """One line for each session. ``changed`` are the ids whose record was read from the files this time."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.lines: dict[str, str] = {}
        self.changed: list[str] = []
        self._stamps: dict[str, tuple[int, int]] = {}
        self._head = b""
        self._stored: list[str] = []
        self._shapes: dict[str, str] | None = None
        self._taken_ns = 0
        self._dirty = False

    def refresh(self) -> Index:
        """Bring the lines up to date with the files."""
        stored = self._load()
        self._taken_ns = time.time_ns()
        top = os.open(sessions_folder(self.home), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in os.listdir(top):
                line = stored.get(name)
                if line is None and not _is_session(name):
                    continue
                try:
                    record_ns = os.lstat(f"{name}/{RECORD_FILE}", dir_fd=top).st_ctime_ns
                    state_ns = os.lstat(f"{name}/{files.STATE}", dir_fd=top).st_ctime_ns
                except OSError:
                    if not os.path.lexists(self._folder(name)):
                        continue
                    record_ns, state_ns = (_changed_ns(f"{name}/{file}", top) for file in (RECORD_FILE, files.STATE))
                if line is not None and line.startswith(f"{name}\t{record_ns}\t{state_ns}\t"):
                    self.lines[name] = line
                    continue
                self._stamps[name] = (record_ns, state_ns)
                if line is not None and line.startswith(f"{name}\t{record_ns}\t"):
                    fields = line.split("\t", FEW_FIELDS)[:FEW_FIELDS]
                    self._dirty |= fields[STATE_STAMP] != NO_STAMP
                    fields[STATE_STAMP] = NO_STAMP
                    self.lines[name] = "\t".join(fields)
                else:
                    self.lines[name] = self._read(name)
                    self.changed.append(name)
        finally:
            os.close(top)
        self._dirty |= bool(self.changed) or len(self.lines) != len(stored)
        return self

    @property
    def rows(self) -> dict[str, Row]:
        """id, index, name and record of every session; and, of one that has ended, its ``shape`` as remembered."""
        return {session: self._row(session, line) for session, line in self.lines.items()}

    def shape(self, session: str) -> str | None:
        """The JSON shape of a session that has ended, as text; None when it cannot be had any more."""
        if self._shapes is None:
            self._shapes = self._load_shapes()
        return self._shapes.get(session)

    def remember(self, session: str, *, shape: Row, since_s: float, total: str, colour: str, place: str) -> None:
        """Add what was worked out about a session that has ended, whose files are as they were read."""
        fields = self.lines[session].split("\t", FEW_FIELDS)[:FEW_FIELDS]
        fields[STATE_STAMP] = self._stamp(self._stamps[session][1])
        fields += [repr(since_s), total, colour]
        fields += map(_field, (shape["description"], shape["agent"], place, shape["label"]))
        self.lines[session] = "\t".join(fields)
        if self._shapes is None:
            self._shapes = self._load_shapes()
        self._shapes[session] = lightjson.dumps(shape)
        self._dirty = True

    def save(self) -> None:
        """Store the lines for the next reader. Failing to is no loss."""
        if not self._dirty:
            return
        kept, shapes = [], []
        for session, line in self.lines.items():
            if _has_ended(line):
                if (shape := self.shape(session)) is None:
                    line = "\t".join((*line.split("\t")[:STATE_STAMP], NO_STAMP, *line.split("\t")[RECORD:FEW_FIELDS]))
                else:
                    shapes.append(shape)
            kept.append(line)
        lines, texts = "\n".join(kept).encode("ascii"), "\n".join(shapes).encode("ascii")
        try:
            files.replace_file(self._path, b"".join((_head(lines, texts), lines, texts)), durable=False)
        except OSError:
            return

    @property
    def _path(self) -> str:
        return os.path.join(self.home, INDEX)

    def _folder(self, name: str) -> str:
        return f"{sessions_folder(self.home)}/{name}"

    def _load(self) -> dict[str, str]:
        """The stored lines by their ids; none when the file is not whole or is another version's."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return {}
        try:
            head = os.read(fd, HEAD_BYTES)
            word, what, version, size, sum_, *_ = head.split()
            lines = os.read(fd, int(size))
            if (word, what, version) != (*MAGIC.split(), b"%d" % VERSION) or b"%08x" % crc32(lines) != sum_:
                return {}
            stored = lines.decode("ascii").split("\n") if lines else []
        except (OSError, ValueError, OverflowError):
            return {}
        finally:
            os.close(fd)
        self._head, self._stored = head, stored
        return {line.partition("\t")[0]: line for line in stored}

    def _load_shapes(self) -> dict[str, str]:
        """The second part of the file whose first part was read; none when it was replaced meanwhile, or is broken."""
        try:
            data = files.read_bytes(self._path)
        except OSError:
            return {}
        if not self._head or not data.startswith(self._head):
            return {}
        size, _, texts_size, texts_sum = self._head.split()[3:]
        texts = data[HEAD_BYTES + int(size) :]
        if (b"%d" % len(texts), b"%08x" % crc32(texts)) != (texts_size, texts_sum):
            files.discard(self._path)
            return {}
        ended = [line.partition("\t")[0] for line in self._stored if _has_ended(line)]
        return dict(zip(ended, texts.decode("ascii").split("\n"), strict=False))

    def _read(self, name: str) -> str:
        from hitchpost.state import records

        folder, stamp = self._folder(name), self._stamp(self._stamps[name][0])
        try:
            record = records.read(folder)
        except (files.Unreadable, files.NewerSchema, OSError):
            stamp = NO_STAMP
            try:
                record = records.from_story(folder)
            except OSError:
                record = records.NOBODY
        return "\t".join((name, stamp, NO_STAMP, record.record, str(record.index), _field(record.name)))

    def _stamp(self, changed_ns: int) -> str:
        """``changed_ns`` as it is stored: a change that later ones in the same tick could hide fits no file."""
        return str(changed_ns) if changed_ns + TICK_NS < self._taken_ns else NO_STAMP

    def _row(self, session: str, line: str) -> Row:
        fields = line.split("\t")
        row: Row = {
            "id": session,
            "index": int(fields[NUMBER]),
            "name": text_of(fields[NAME]),
            "record": fields[RECORD],
        }
        if len(fields) == ALL_FIELDS and (text := self.shape(session)) is not None:
            row["shape"] = lightjson.loads(text)
        return row


def _head(lines: bytes, texts: bytes) -> bytes:
    """The first line; always as long."""
    parts = (len(lines), crc32(lines), len(texts), crc32(texts))
    return MAGIC + b" %4d %12d %08x %12d %08x\n" % (VERSION, *parts)


HEAD_BYTES = len(_head(b"", b""))


def _has_ended(line: str) -> bool:
    return line.count("\t") == ALL_FIELDS - 1


def _is_session(name: str) -> bool:
    if name.startswith("."):
        return False
    from hitchpost.state.records import is_id

    return is_id(name)


def _changed_ns(path: str, top: int) -> int:
    """When a file changed; 0 when there is none."""
    try:
        return os.lstat(path, dir_fd=top).st_ctime_ns
    except OSError:
        return 0


def _field(text: str) -> str:
    """``text`` in printable ASCII: the inside of a JSON string. Without a backslash it is the text itself."""
    return lightjson.dumps(text)[1:-1].replace("\x7f", "\\u007f")


def text_of(field: str) -> str:
    return field if "\\" not in field else str(lightjson.loads(f'"{field}"'))


def rows(home: str) -> dict[str, Row]:
    """Every session's row, up to date."""
    try:
        found = Index(home).refresh()
    except FileNotFoundError:
        return {}
    found.save()
    return found.rows
