"""The index: what ``ps`` and look-ups need of every session, in one file. A cache, checked against the files.

The check is the change time of the session's folder: our files are changed by renaming, which the folder's time tells.
What changed in the same moment in which it was indexed is read again, because file systems count time in ticks, and
what has not ended is read each time. ``hitch doctor`` finds what somebody wrote into a file by hand.

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
from hitchpost.errors import NOT_READ
from hitchpost.model.durations import duration
from hitchpost.store import files
from hitchpost.store.home import ID_LENGTH, is_id, sessions_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hitchpost.store.records import Record

    Row = dict[str, Any]

INDEX = "index.tsv"
MAGIC = b"hitchpost index"
TICK_NS = 2_000_000_000
VERSION = 13
"""Another one whenever the fields of a line or of a shape are others: what an older version stored is not used."""
NO_STAMP = "0"
MOST_BYTES = 256 << 20

# the fields of a line; one that has ended has also: since, total, colour, agent_state, description, agent, node, place,
# label
ID, STAMP, RECORD, NUMBER, NAME, OWNER = range(6)
AGENT_STATE = 9
FEW_FIELDS, ALL_FIELDS = 6, 15


class Index:
    """One line for each session. ``changed`` are the ids that the stored index says nothing true about, and when their
    folders had changed."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.lines: dict[str, str] = {}
        self.changed: dict[str, int] = {}
        self._head = b""
        self._stored: dict[str, str] = {}
        self._shapes: dict[str, str] | None = None
        self._taken_ns = 0

    def refresh(self) -> Index:
        """Bring the lines up to date with the files."""
        self.check()
        for name in self.changed:
            self.lines[name] = self.read(name)
        return self

    def again(self) -> Index:
        """Bring lines that were refreshed a moment ago up to date. What cannot have changed since is not read."""
        top, lines = sessions_folder(self.home), {}
        for name in filter(is_id, os.listdir(top)):
            try:
                changed_ns = os.lstat(f"{top}/{name}").st_ctime_ns
            except FileNotFoundError:
                continue
            line = self.lines.get(name, "")
            was_settled = self.changed.get(name) == changed_ns and changed_ns + TICK_NS < self._taken_ns
            same = line and (was_settled or line.startswith(f"{name}\t{changed_ns}\t"))
            lines[name] = line if same else self.read(name)
        self.lines = lines
        return self

    def check(self) -> Index:
        """Keep the stored lines that still hold. No session is opened: what has changed has no line afterwards."""
        stored = self._stored = self._load()
        lines, changed, lstat = self.lines, self.changed, os.lstat
        self._taken_ns = time.time_ns()
        top = os.open(sessions_folder(self.home), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name, line in stored.items():
                try:
                    changed_ns = lstat(name, dir_fd=top).st_ctime_ns
                except FileNotFoundError:
                    continue
                if line.startswith(f"{name}\t{changed_ns}\t"):
                    lines[name] = line
                else:
                    changed[name] = changed_ns
            for name in filter(is_id, set(os.listdir(top)).difference(stored)):
                try:
                    changed[name] = lstat(name, dir_fd=top).st_ctime_ns
                except FileNotFoundError:
                    continue
        finally:
            os.close(top)
        return self

    @property
    def rows(self) -> dict[str, Row]:
        """id, index, name and record of every session."""
        return {session: self.row(session) for session in self.lines}

    def shape(self, session: str) -> str | None:
        """The JSON shape of a session that has ended, as text; None when it has not, or when it is stored no more."""
        if not has_ended(self.lines.get(session, "")):
            return None
        return self.shapes.get(session)

    @property
    def shapes(self) -> dict[str, str]:
        """The JSON shapes that are stored, also of sessions that have changed since."""
        if self._shapes is None:
            self._shapes = self._load_shapes()
        return self._shapes

    def remember(self, line: str, shape: str, few: str = "") -> None:
        """Add what was worked out about a session, whose files are as they were read; its ``few`` fields when it has
        not ended."""
        session, _, rest = line.split("\t", RECORD)
        if few:
            self.lines[session] = few
            return
        self.shapes[session] = shape
        self.lines[session] = "\t".join((session, self._stamp(self.changed[session]), rest))

    def save(self) -> None:
        """Store the lines for the next reader. Failing to is no loss."""
        if self.lines == self._stored:
            return
        kept, shapes = [], []
        for session, line in sorted(self.lines.items(), key=_by_number):
            if (shape := self.shape(session)) is not None:
                shapes.append(shape)
            elif has_ended(line):
                line = "\t".join((session, NO_STAMP, *line.split("\t", FEW_FIELDS)[RECORD:FEW_FIELDS]))
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
            fd = files.open_file(self._path)
        except OSError:
            return {}
        try:
            if os.fstat(fd).st_size > MOST_BYTES:
                return {}
            head = os.read(fd, HEAD_BYTES)
            word, what, version, size, sum_, texts_size, _ = head.split()
            lines = os.read(fd, min(int(size), MOST_BYTES, MOST_BYTES - int(texts_size)))
            if (word, what, version) != (*MAGIC.split(), b"%d" % VERSION) or b"%08x" % crc32(lines) != sum_:
                return {}
            stored = lines.decode("ascii").split("\n") if lines else []
        except NOT_READ:
            return {}
        finally:
            os.close(fd)
        self._head = head
        return {line[:ID_LENGTH]: line for line in stored}

    def _load_shapes(self) -> dict[str, str]:
        """The second part of the file whose first part was read; none when it was replaced meanwhile, or is broken."""
        if not self._head:
            return {}
        size, _, texts_size, texts_sum = self._head.split()[3:]
        try:
            fd = files.open_file(self._path)
        except OSError:
            return {}
        try:
            is_same = os.read(fd, HEAD_BYTES) == self._head
            texts = os.pread(fd, min(int(texts_size), MOST_BYTES) + 1, HEAD_BYTES + int(size)) if is_same else b""
        except OSError:
            return {}
        finally:
            os.close(fd)
        if not is_same:
            return {}
        if (b"%d" % len(texts), b"%08x" % crc32(texts)) != (texts_size, texts_sum):
            files.discard(self._path)
            return {}
        ended = [line[:ID_LENGTH] for line in self._stored.values() if has_ended(line)]
        return dict(zip(ended, texts.decode("ascii").split("\n"), strict=False))

    def read(self, name: str) -> str:
        """The few fields of a session, from its files."""
        from hitchpost.store import records

        folder = self._folder(name)
        try:
            record = records.read(folder)
        except files.CannotRead:
            try:
                record = records.from_story(folder)
            except OSError:
                record = records.NOBODY
        return few(name, record)

    def _stamp(self, changed_ns: int) -> str:
        """``changed_ns`` as it is stored: a change that later ones in the same tick could hide fits no file."""
        return str(changed_ns) if changed_ns + TICK_NS < self._taken_ns else NO_STAMP

    def row(self, session: str) -> Row:
        fields = self.lines[session].split("\t")
        return {
            "id": session,
            "index": int(fields[NUMBER]),
            "name": text_of(fields[NAME]),
            "record": fields[RECORD],
        }


def _head(lines: bytes, texts: bytes) -> bytes:
    """The first line; always as long."""
    parts = (len(lines), crc32(lines), len(texts), crc32(texts))
    return MAGIC + b" %4d %12d %08x %12d %08x\n" % (VERSION, *parts)


HEAD_BYTES = len(_head(b"", b""))


def owner_of(line: str) -> str:
    """Whose session it is; empty when it is nobody's in particular, or not known."""
    fields = line.split("\t", OWNER + 1)
    return text_of(fields[OWNER]) if len(fields) > OWNER else ""


def agent_state_of(line: str) -> str:
    """The word of ``/api/agents``, of a line with all its fields."""
    return line.split("\t", AGENT_STATE + 1)[AGENT_STATE]


def has_ended(line: str) -> bool:
    return line.count("\t") == ALL_FIELDS - 1


def _by_number(item: tuple[str, str]) -> int:
    return int(item[1].split("\t", NAME)[NUMBER])


def few(session: str, record: Record) -> str:
    return "\t".join((session, NO_STAMP, record.record, str(record.index), _field(record.name), _field(record.owner)))


def total_field(total_s: float, now_s: float, *, grows: bool) -> str:
    """The total time of a line: as people read it, or, while it grows, ``@`` and the moment from which it counts.

    So the table works out both of its times at one moment, and they agree.
    """
    return f"@{now_s - total_s:.1f}" if grows else duration(total_s)


def line_of(
    shape: Mapping[str, object], since_s: float, total: str, colour: str, agent_state: str, workspace: str
) -> str:
    """A session's line, without a stamp."""
    node = str(shape["node"] or "")
    texts = map(_field, (str(shape["description"]), str(shape["agent"]), node, workspace, str(shape["label"])))
    whose = map(_field, (str(shape["name"]), str(shape["owner"] or "")))
    first = (str(shape["id"]), NO_STAMP, str(shape["record"]), str(shape["index"]), *whose)
    return "\t".join((*first, f"{since_s:.1f}", total, colour, agent_state, *texts))


def with_label(line: str, label: str) -> str:
    """A line with another label."""
    return "\t".join((line.rpartition("\t")[0], _field(label)))


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
