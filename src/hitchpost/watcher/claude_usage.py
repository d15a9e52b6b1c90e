"""What Claude Code has used, as its own file of a conversation has it."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, field
from glob import escape, glob
from typing import Any

from hitchpost.errors import FAILURES, MALFORMED
from hitchpost.model.usage import NOTHING, Tokens
from hitchpost.store import files
from hitchpost.watcher.usage import Usage

MOST_BYTES = 64 << 20
"""Of one look: the rest is read at the next."""


WRITTEN_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""The file is written a little later than the hook is called: after so long it is read again."""


@dataclass
class Read:
    """Up to ``end``, a whole line, this was used, by model; ``last`` is what the agent said last."""

    end: int
    used: dict[str, Tokens] = field(default_factory=dict)
    last: str = ""


def read(path: str, start: int, since: str) -> Read:
    """What was used in the lines behind ``start``, and not before ``since``. A message has several lines, alike."""
    fd = files.open_file(path, follow=True)
    try:
        size = os.fstat(fd).st_size
        start = start if start <= size else 0
        text = os.pread(fd, min(size - start, MOST_BYTES), start)
    finally:
        os.close(fd)
    text = text[: text.rfind(b"\n") + 1]
    found = Read(start + len(text))
    messages: dict[str, tuple[str, Tokens]] = {}
    for line in text.splitlines():
        try:
            entry = json.loads(line)
            if entry["type"] != "assistant" or str(entry["timestamp"]) < since:
                continue
            message = entry["message"]
            found.last = said(message) or found.last
            messages[str(message["id"])] = (str(message["model"]), tokens(message["usage"]))
        except MALFORMED:
            continue
    for model, used in messages.values():
        found.used[model] = found.used.get(model, NOTHING) + used
    return found


def said(message: dict[str, Any]) -> str:
    return "".join(str(part["text"]) for part in message["content"] if part["type"] == "text")


def tokens(used: dict[str, Any]) -> Tokens:
    return Tokens(
        int(used.get("input_tokens") or 0),
        int(used.get("cache_read_input_tokens") or 0),
        int(used.get("cache_creation_input_tokens") or 0),
        int(used.get("output_tokens") or 0),
    )


class Counting:
    """Counts at the end of each turn. What an agent used that was interrupted or killed counts with its next turn."""

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._alone = asyncio.Lock()

    async def count(self, told: dict[str, Any]) -> None:
        path, last = str(told.get("transcript_path") or ""), str(told.get("last_assistant_message") or "")
        async with self._alone:
            for pause_s in WRITTEN_S:
                await asyncio.sleep(pause_s)
                if await asyncio.to_thread(self._look, path, last):
                    break
            await asyncio.to_thread(self._write, path)

    def _look(self, path: str, last: str) -> bool:
        """Whether the end of the turn is in the file."""
        try:
            return read(path, self._start(path), self._usage.began()).last.strip() == last.strip()
        except FAILURES:
            return False

    def _start(self, path: str) -> int:
        mark = self._usage.mark(os.path.basename(path))
        return mark if isinstance(mark, int) and mark >= 0 else 0

    def _write(self, path: str) -> None:
        """Its helpers have files of their own."""
        helpers = os.path.join(escape(path.removesuffix(".jsonl")), "subagents", "*.jsonl")
        for each in (path, *glob(helpers)):
            try:
                found = read(each, self._start(each), self._usage.began())
                if found.end != self._start(each):
                    self._usage.count(os.path.basename(each), found.end, found.used)
            except FAILURES:
                continue
