"""What is typed into the agent, in order: bytes, pauses between keys, and receipts."""

from __future__ import annotations

import errno
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MOST_WAITING_BYTES = 4 * 1024 * 1024
LONGEST_LINE_BYTES = 4094
PASTE_BEGIN, PASTE_END = b"\x1b[200~", b"\x1b[201~"


class TypingQueue:
    """Writes to the PTY as fast as the agent reads. When ``MOST_WAITING_BYTES`` wait, further input is refused."""

    def __init__(self, master: int) -> None:
        self.master = master
        self.waiting_bytes = 0
        self.resume_at: float | None = None
        self._items: list[bytes | float | Callable[[], None]] = []

    def put(self, *items: bytes | float | Callable[[], None]) -> bool:
        """Queue bytes, pauses (seconds) and calls. False when there is no room; nothing is queued then."""
        size = sum(len(item) for item in items if isinstance(item, bytes))
        if self.waiting_bytes + size > MOST_WAITING_BYTES:
            return False
        self.waiting_bytes += size
        self._items.extend(items)
        return True

    @property
    def blocked(self) -> bool:
        """Whether bytes wait for the agent to read."""
        return bool(self._items) and self.resume_at is None

    def flush(self) -> bool:
        """Type what can be typed now. False when the terminal is gone."""
        if self.resume_at is not None:
            if time.monotonic() < self.resume_at:
                return True
            self.resume_at = None
        while self._items:
            item = self._items[0]
            if isinstance(item, bytes):
                try:
                    written = os.write(self.master, item)
                except BlockingIOError:
                    return True
                except OSError as error:
                    if error.errno != errno.EIO:
                        raise
                    return False
                self.waiting_bytes -= written
                if written < len(item):
                    self._items[0] = item[written:]
                    continue
                self._items.pop(0)
            elif isinstance(item, float):
                self._items.pop(0)
                self.resume_at = time.monotonic() + item
                return True
            else:
                self._items.pop(0)
                item()
        return True
