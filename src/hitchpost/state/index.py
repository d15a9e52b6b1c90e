"""The index: what ``ps`` and look-ups need of every session, in one file. A cache, checked against the files.

Every durable change of a session renames a file inside its folder, so the folder's change time is the check. A folder
that changed in the same moment in which it was indexed is read again: file systems count time in ticks.
"""

from __future__ import annotations

import json
import os
from typing import Any

from hitchpost.state import files, records
from hitchpost.state.home import sessions_folder

INDEX = "index.json"
TICK_NS = 2_000_000_000
VERSION = 1

Row = dict[str, Any]
"""id, index, name, record; and ``shape``, ``total_s`` for a session that has ended, put there by ``remember``."""


class Index:
    """The rows of all sessions. ``changed`` are the ids whose row was read from the files this time."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.rows: dict[str, Row] = {}
        self.changed: list[str] = []
        self._stamps: dict[str, int] = {}
        self._dirty = False

    def refresh(self) -> Index:
        """Bring the rows up to date with the folders."""
        stored, taken_ns = self._load()
        with os.scandir(sessions_folder(self.home)) as entries:
            for entry in entries:
                name = entry.name
                if not records.is_id(name):
                    continue
                try:
                    stamp_ns = entry.stat(follow_symlinks=False).st_mtime_ns
                except FileNotFoundError:
                    continue
                old = stored.get(name)
                if old is not None and old[0] == stamp_ns and stamp_ns + TICK_NS < taken_ns:
                    self.rows[name] = old[1]
                else:
                    self.rows[name] = _read(os.path.join(sessions_folder(self.home), name))
                    self.changed.append(name)
                self._stamps[name] = stamp_ns
        self._dirty = bool(self.changed) or len(self.rows) != len(stored)
        return self

    def remember(self, session: str, **fields: Any) -> None:
        """Add what was worked out about a session whose files are as they were read."""
        self.rows[session].update(fields)
        self._dirty = True

    def save(self) -> None:
        """Store the rows for the next reader. Failing to is no loss."""
        if not self._dirty:
            return
        import time

        value = {
            "version": VERSION,
            "taken_ns": time.time_ns(),
            "rows": {session: [self._stamps[session], row] for session, row in self.rows.items()},
        }
        try:
            files.replace_file(os.path.join(self.home, INDEX), json.dumps(value).encode(), durable=False)
        except OSError:
            return

    def _load(self) -> tuple[dict[str, list[Any]], int]:
        try:
            value = json.loads(files.read_bytes(os.path.join(self.home, INDEX)))
            if value["version"] == VERSION:
                return value["rows"], value["taken_ns"]
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return {}, 0


def _read(folder: str) -> Row:
    try:
        record = records.read(folder)
    except (files.Unreadable, files.NewerSchema, OSError):
        return {"id": os.path.basename(folder), "index": 0, "name": "", "record": "active"}
    return {"id": record.id, "index": record.index, "name": record.name, "record": record.record}


def rows(home: str) -> dict[str, Row]:
    """Every session's row, up to date."""
    try:
        found = Index(home).refresh()
    except FileNotFoundError:
        return {}
    found.save()
    return found.rows
