"""The delivery log: what was noted, what was begun to be told, and what became of it, one JSON object a line.

It is written before each step, and synced to the disk, so whatever a killed hub was doing is known to the next one:

- ``noted`` and neither ``begun`` nor ``dropped``: nobody was told. It is looked at again.
- ``begun`` without an outcome of a channel: it may have been told there, or not.
- an outcome: it was told, or not, and why.

The file holds texts of notifications and names of channels, and never an address, a key or a token.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from hitchpost.errors import MALFORMED
from hitchpost.notify.message import Message
from hitchpost.store import files

FOLDER, FILE = "notify", "log.jsonl"
MOST_BYTES = 1 << 20
UP, DOWN, NOTED, DROPPED, BEGUN, OUTCOME = "up", "down", "noted", "dropped", "begun", "outcome"
SENT, FAILED, NOBODY, UNKNOWN = "sent", "failed", "nobody", "unknown"

Line = dict[str, Any]


@dataclass(slots=True)
class Past:
    """What the log says about earlier hubs. ``noted`` and ``known`` are keys of news."""

    noted: set[str] = field(default_factory=set)
    known: dict[str, None] = field(default_factory=dict)
    unfinished: dict[str, tuple[Message, list[str]]] = field(default_factory=dict)
    """By their ids, messages with the channels whose outcome is not known."""
    up_at: str = ""
    """When the last hub began."""
    was_killed: bool = False
    """Whether it ended without a word."""

    def add(self, line: Line) -> None:
        what = line["what"]
        if what == UP:
            self.up_at, self.was_killed = line["at"], True
        elif what == DOWN:
            self.was_killed = False
        elif what == NOTED:
            self.noted.add(line["key"])
        elif what == DROPPED:
            self._handled(line["key"])
        elif what == BEGUN:
            for key in line["keys"]:
                self._handled(key)
            if line["channels"]:
                self.unfinished[line["id"]] = (Message.from_json(line), list(line["channels"]))
        elif what == OUTCOME and line["id"] in self.unfinished:
            channels = self.unfinished[line["id"]][1]
            if line["channel"] in channels:
                channels.remove(line["channel"])
            if not channels:
                del self.unfinished[line["id"]]

    def _handled(self, key: str) -> None:
        self.noted.discard(key)
        self.known[key] = None


class Journal:
    """Its methods wait for the disk. Only one hub writes it: the one that has the home."""

    def __init__(self, home: str) -> None:
        self.path = os.path.join(home, FOLDER, FILE)

    def open(self) -> Past:
        """Make the file where it is not there, and say what it holds."""
        folder = make_folder(os.path.dirname(os.path.dirname(self.path)))
        if not os.path.lexists(self.path):
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            files.sync_folder(folder)
        self._shorten()
        return _past(lines(self.path))

    def write(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Durable when it returns."""
        text = "\n".join(json.dumps({"at": files.stamp(), **entry}) for entry in entries)
        if text:
            files.append_line(self.path, text)
            if os.stat(self.path).st_size > MOST_BYTES:
                self._shorten()

    def _shorten(self) -> None:
        """Keep the newest lines, and those that still decide something: what is open, and when the last hub began."""
        if os.stat(self.path).st_size <= MOST_BYTES // 2:
            return
        every = lines(self.path)
        past, texts = _past(every), [f"{json.dumps(line)}\n" for line in every]
        sizes = accumulate(map(len, reversed(texts)))
        newest = len(every) - sum(size <= MOST_BYTES // 2 for size in sizes)
        kept = [
            text
            for line, text in zip(every[:newest], texts, strict=False)
            if (line.get("what") == NOTED and line.get("key") in past.noted)
            or (line.get("what") == BEGUN and line.get("id") in past.unfinished)
            or (line.get("what") == UP and line.get("at") == past.up_at)
        ]
        text = "".join((*kept, *texts[newest:]))
        files.replace_file(self.path, text.encode())


def _past(every: Iterable[Line]) -> Past:
    """A line that makes no sense is passed over."""
    past = Past()
    for line in every:
        try:
            past.add(line)
        except MALFORMED:
            continue
    return past


def make_folder(home: str) -> str:
    """Where everything about notifications is, in a home."""
    folder = os.path.join(home, FOLDER)
    os.makedirs(folder, 0o700, exist_ok=True)
    return folder


def lines(path: str) -> list[Line]:
    """The oldest first; none when there is no file. What is torn or no object is passed over."""
    try:
        text = files.read_bytes(path)
    except FileNotFoundError:
        return []
    found = []
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except MALFORMED:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found
