"""The title that the agent gives its window, read from its log: a light look at the bytes, without an emulator."""

from __future__ import annotations

import os
import re

from hitchpost import wire
from hitchpost.terminal import output

MOST_BEHIND_BYTES = 1 << 20
"""A look that is further behind begins here: what was said earlier is left out."""
LONGEST, MOST_TITLES = 1024, 16
_TITLE = re.compile(rb"\x1b\][02];([^\x00-\x1f]*)(?:\x07|\x1b\\)")


class LogTitle:
    """Looks go on where the last one ended."""

    def __init__(self, run_folder: str) -> None:
        self._folder = os.path.join(run_folder, wire.OUTPUT)
        self._reader = output.Reader(self._folder)
        self._rest = b""

    def read(self) -> list[str]:
        """The titles since the last look, oldest first. Of many, the newest ones."""
        titles: list[str] = []
        end = output.bounds(self._folder)[1]
        if end - self._reader.offset > MOST_BEHIND_BYTES:
            self._reader.offset, self._rest = end - MOST_BEHIND_BYTES, b""
        while (chunk := self._reader.read()).data:
            titles += self._feed(chunk.data if chunk.lost else self._rest + chunk.data)
        return titles[-MOST_TITLES:]

    def _feed(self, data: bytes) -> list[str]:
        found = list(_TITLE.finditer(data))
        begun = data.rfind(b"\x1b]", max(0, len(data) - LONGEST))
        unfinished = begun >= 0 and (not found or begun >= found[-1].end())
        self._rest = data[begun:] if unfinished else b"\x1b" if data.endswith(b"\x1b") else b""
        return [title[1][:LONGEST].decode("utf-8", "replace").strip() for title in found[-MOST_TITLES:]]

    def close(self) -> None:
        self._reader.close()
