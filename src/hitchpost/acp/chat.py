"""``chat.jsonl`` of a session: what was said, asked and done in its conversation, one JSON line each, oldest first.

It is a session's and not a run's: a conversation goes on in the next run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from hitchpost import lightjson
from hitchpost.store import files

CHAT = "chat.jsonl"
MOST_BYTES = 64 << 20
"""What comes behind these is shown in the terminal, and not kept."""
LONGEST_TEXT = 1 << 20
LONGEST_LINE = 8 << 20
"""Of a longer one only its short texts are kept: a file that a tool has written may be as long as it likes."""
SHORT_TEXT = 1000
TOO_LONG = "(too long to be kept)"
PART_BYTES = 1 << 20
BEGINNING_BYTES = 1 << 16
"""How far back the beginning of a run is looked for that has just begun."""


class Chat:
    """Written by one process, the client of the agent."""

    def __init__(self, session_folder: str, run: int) -> None:
        self._path, self._run = os.path.join(session_folder, CHAT), run
        self._size = _size(self._path)

    def add(self, kind: str, /, **details: Any) -> None:
        if self._size > MOST_BYTES:
            return
        head = {"at": files.stamp(), "run": self._run, "type": kind}
        line = lightjson.dumps({**head, **_cut(details)})
        if len(line) > LONGEST_LINE:
            line = lightjson.dumps({**head, **_short(details)})
        files.append_line(self._path, line, durable=False)
        self._size += len(line) + 1


def read(session_folder: str, start: int = 0) -> tuple[list[dict[str, Any]], int]:
    """The lines from the byte ``start`` on, a part of them where there are many, and where the next part begins."""
    path = os.path.join(session_folder, CHAT)
    try:
        fd = files.open_file(path)
    except files.NoFile:
        return [], 0
    try:
        text = os.pread(fd, PART_BYTES + LONGEST_LINE, start)
    finally:
        os.close(fd)
    end = text.find(b"\n", PART_BYTES) if len(text) > PART_BYTES else text.rfind(b"\n")
    if end >= 0 or len(text) < PART_BYTES + LONGEST_LINE:  # else nobody who keeps to the limit has written that line
        text = text[: end + 1]
    return list(_lines(text)), start + len(text)


def why_another(session_folder: str, run: int) -> str:
    """Why a run that has just begun is in another conversation than it was to go on with.

    Empty where it is in that one, and where nothing is known.
    """
    try:
        lines, _ = read(session_folder, max(0, _size(os.path.join(session_folder, CHAT)) - BEGINNING_BYTES))
    except (files.CannotRead, OSError):
        return ""
    of_run = [line for line in lines if line.get("run") == run]
    if not any(line["type"] == "begun" and line.get("resumed") is False for line in of_run):
        return ""
    return next((str(line.get("text")) for line in of_run if line["type"] == "notice"), "")


def _lines(text: bytes) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        try:
            found = lightjson.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and isinstance(found.get("type"), str):
            yield found


def _cut(details: dict[str, Any]) -> dict[str, Any]:
    return {name: item[:LONGEST_TEXT] if isinstance(item, str) else item for name, item in details.items()}


def _short(details: dict[str, Any]) -> dict[str, Any]:
    """What is left of details that are too long: names, states, and in place of a long text that it was too long."""
    texts = {name: item for name, item in details.items() if isinstance(item, str)}
    kept = {name: text if len(text) <= SHORT_TEXT else TOO_LONG for name, text in texts.items()}
    return kept if TOO_LONG in kept.values() else {**kept, "output": TOO_LONG}


def _size(path: str) -> int:
    try:
        return os.stat(path, follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0
