"""Ending the agent and all that it started: politely, then its whole tree, then with force."""

from __future__ import annotations

import os
import time
from _signal import SIGCONT, SIGHUP, SIGTERM

from hitchpost.model import run as runs
from hitchpost.system import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.keeper.keeper import Keeper

POLITE_S = 3.0
ROUND_S = 0.02
LONGEST_ROUND_S = 1.0


class Stopping:
    """``intent`` is who asked; None while nobody has."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.intent: str | None = None
        self.kill_survivors = keeper.spec.survivors == "kill"
        self._deadline = 0.0
        self._round_s = ROUND_S / 2

    def stop(self, by: str, reason: str, grace_s: float) -> None:
        """Ask the agent to end. Asked again, only a shorter grace time changes anything."""
        now = time.monotonic()
        if self.intent is not None:
            if now + grace_s < self._deadline:
                self._force_at(now + grace_s)
            return
        if self.keeper.wait_status is not None:
            self.kill_survivors = True
            return
        self.intent = by
        self.keeper.journal.write_intent(by, reason, grace_s)
        if self.keeper.journal.state == runs.RUNNING:
            self.keeper.journal.change(runs.STOPPING, reason or f"asked by {by}", {"by": by, "grace_s": grace_s})
        self._force_at(now + grace_s)
        if grace_s > 0:
            self.keeper.timers.at("term", now + min(POLITE_S, grace_s / 2), self._ask_everyone)
            self._ask_politely()

    def abandon(self, grace_s: float) -> None:
        """End the agent although nobody asked: it has lost what it ran in."""
        if self.intent is not None or self.keeper.wait_status is not None:
            return
        now = time.monotonic()
        self.kill_survivors = True
        self._force_at(now + grace_s)
        self.keeper.timers.at("term", now + grace_s / 2, self._ask_everyone)
        self._ask_politely()

    def leader_ended(self) -> None:
        """The agent is gone and its output is complete. Its tree follows where that was asked for."""
        wanted = self.intent is not None or self.kill_survivors
        if not wanted or not self.keeper.tree.pids():
            self.keeper.finish()
            return
        now = time.monotonic()
        self._ask_everyone(now)
        self._force_at(self._deadline if self.intent is not None else now + self.keeper.spec.grace_s)
        self._wait_for_tree(now)

    def _wait_for_tree(self, now: float) -> None:
        self.keeper.reap()
        if self.keeper.tree.pids():
            self.keeper.timers.at("tree", now + ROUND_S, self._wait_for_tree)
        else:
            self.keeper.finish()

    def _ask_politely(self) -> None:
        keeper = self.keeper
        try:
            if keeper.spec.quit_group:
                os.killpg(keeper.pid, keeper.spec.quit_signal)
            else:
                process.send(keeper.pid, keeper.spec.quit_signal)
        except OSError:
            process.send(keeper.pid, keeper.spec.quit_signal)
        process.send(keeper.pid, SIGCONT)

    def _ask_everyone(self, now: float) -> None:
        """SIGTERM to each, once: a second one, or a hang-up, cuts short what the first one began.

        Interactive shells ignore SIGTERM and leave when they are hung up.
        """
        keeper = self.keeper
        for pid in keeper.tree.pids():
            if process.ignores(pid, SIGTERM):
                process.send(pid, SIGHUP)
            elif pid != keeper.pid or keeper.spec.quit_signal != SIGTERM:
                process.send(pid, SIGTERM)
            process.send(pid, SIGCONT)

    def _force_at(self, moment: float) -> None:
        self._deadline = moment
        self.keeper.timers.at("force", moment, self._use_force)

    def _use_force(self, now: float) -> None:
        """Rounds of force until nothing is left. The rounds grow rare for what the kernel will not let go."""
        self.keeper.reap()
        if not self.keeper.tree.kill() and self.keeper.output_is_complete:
            self.keeper.finish()
            return
        self._round_s = min(self._round_s * 2, LONGEST_ROUND_S)
        self.keeper.timers.at("force", now + self._round_s, self._use_force)


def asked_end(asked: dict[str, object], usual_s: float) -> tuple[str, str, float] | None:
    """Who asks for the end, why, and how long it may take; None when that is no time to wait."""
    by, grace = asked.get("by"), asked.get("grace_s", usual_s)
    if not isinstance(grace, (int, float)) or not 0 <= grace <= max(runs.LONGEST_GRACE_S, usual_s):
        return None
    return str(by) if by in runs.INTENTS else runs.USER, str(asked.get("reason", "")), float(grace)
