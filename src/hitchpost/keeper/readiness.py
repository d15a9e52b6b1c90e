"""Whether the agent has come to life: it showed its prompt, or printed and lives on, or has lived for a while."""

from __future__ import annotations

import time

from hitchpost.errors import NOT_READ
from hitchpost.model.attention import IDLE
from hitchpost.store import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hitchpost.keeper.keeper import Keeper

SETTLE_S = 0.02
"""An agent that prints why it cannot run, and leaves, does so within this time."""
MOST_QUEUED_S = 1.0
PROMPT, OUTPUT, ALIVE = "prompt", "output", "alive"


class Readiness:
    """Those who wait for the agent. Who waits for one that ends instead is told of the end, as everybody is."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.began = float("-inf")  # long ago, for a keeper that takes over
        self._printed_at: float | None = None
        self._prompted = False
        self._waiting: list[tuple[Callable[[str], None], bool, float]] = []

    def wait(self, tell: Callable[[str], None], *, for_prompt: bool, within_s: float) -> None:
        """Call ``tell`` with the sign that the agent gave; with ``ALIVE`` when it lives so long after its start."""
        self._waiting.append((tell, for_prompt, self.began + within_s))
        self._look(time.monotonic())

    def printed(self) -> None:
        """Output came, and was looked through for reports and modes.

        A program that reads prompts has its terminal mark what is pasted, or reports that it is idle.
        """
        keeper, now = self.keeper, time.monotonic()
        if self._printed_at is None:
            self._printed_at = now - self._queued_s()
        self._prompted = self._prompted or keeper.report.state == IDLE or keeper.scanner.bracketed_paste
        self._look(now)

    def _look(self, now: float) -> None:
        if not self._waiting:
            return
        self.keeper.source.reap()
        if self.keeper.run.exited:
            return
        queued_s = self._queued_s()
        left, moments = [], []
        for tell, for_prompt, deadline in self._waiting:
            settled = deadline if for_prompt or self._printed_at is None else self._printed_at + SETTLE_S
            due = min(deadline, settled)
            if for_prompt and self._prompted:
                tell(PROMPT)
            elif now - queued_s >= due:
                tell(OUTPUT if settled < deadline else ALIVE)
            else:
                left.append((tell, for_prompt, deadline))
                moments.append(due + queued_s)
        self._waiting = left
        if left:
            self.keeper.timers.at("ready", min(moments), self._look)

    def _queued_s(self) -> float:
        """How long the agent waited for a processor: on a busy machine it has lived for less than the clock says."""
        try:
            waited_ns = int(files.read_bytes(f"/proc/{self.keeper.pid}/schedstat").split()[1])
        except NOT_READ:
            return 0.0
        return min(waited_ns / 1e9, MOST_QUEUED_S)
