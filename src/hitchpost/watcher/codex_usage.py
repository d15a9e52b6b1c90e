"""What Codex has used, as its app-server tells it: the sums of a conversation, again with each answer of the model."""

from __future__ import annotations

import asyncio
from typing import Any

from hitchpost.errors import FAILURES, MALFORMED
from hitchpost.model.usage import NOTHING, Tokens
from hitchpost.values import asdict
from hitchpost.watcher.usage import Usage


class Counting:
    """``_from`` has the sums up to which a conversation was counted, ``_now`` those that were told last."""

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._from: dict[str, Tokens] = {}
        self._now: dict[str, Tokens] = {}
        self._alone = asyncio.Lock()

    def begin(self, conversation: str) -> None:
        """It is new: nothing was used before."""
        self._from.setdefault(conversation, NOTHING)

    def hear(self, conversation: str, told: Any, *, busy: bool) -> None:
        """``busy``: in a turn. Else it is what a conversation had used when it was opened."""
        try:
            total, last = _tokens(told["total"]), _tokens(told["last"])
        except MALFORMED:
            return
        counted = self._from[conversation] if conversation in self._from else self._kept(conversation)
        if counted is None or counted.total > total.total:
            counted = total - last if busy else total
        self._from[conversation], self._now[conversation] = counted, total

    def _kept(self, conversation: str) -> Tokens | None:
        try:
            return Tokens(**self._usage.mark(conversation))
        except MALFORMED:
            return None

    async def count(self, conversation: str, model: str) -> None:
        """At the end of a turn."""
        async with self._alone:
            now = self._now.get(conversation)
            if now is None or now == self._from[conversation]:
                return
            used, self._from[conversation] = {model: now - self._from[conversation]}, now
            try:
                await asyncio.to_thread(self._usage.count, conversation, asdict(now), used)
            except FAILURES:
                return  # a disk that is full: what was used is told with the sums, and not twice


def _tokens(told: dict[str, Any]) -> Tokens:
    """Its input has in it what was read from the cache, or put there."""
    cached, written = int(told.get("cachedInputTokens") or 0), int(told.get("cacheWriteInputTokens") or 0)
    return Tokens(max(0, int(told["inputTokens"]) - cached - written), cached, written, int(told["outputTokens"]))
