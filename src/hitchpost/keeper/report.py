"""What the agent is doing, as far as this keeper has heard: from the agent's own output, and from the watcher."""

from __future__ import annotations

import time

from hitchpost.keeper.scanner import parse_report
from hitchpost.model.attention import DETAILS, OSC, STARTING, STATES, UNKNOWN
from hitchpost.store import files, runfiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.keeper.keeper import Keeper

    Report = dict[str, object]

WRITE_EVERY_S = 0.1
NOT_REPORTED: Report = {
    "state": UNKNOWN,
    "source": "",
    "kind": STARTING,
    "message": "the agent has not reported yet",
}
UNKNOWN_NOW: Report = {"state": UNKNOWN, "source": "", "message": "the process that watches this agent has ended"}


class AgentReport:
    """``current`` is what counts, ``own`` the agent's own newest word, ``seq`` how many of those there were."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self.current: Report | None = _now(NOT_REPORTED) if keeper.spec.reports else None
        self.own: Report | None = None
        self.seq = 0
        self._overruled = False
        self._written_at = 0.0

    @property
    def state(self) -> str | None:
        return str(self.current["state"]) if self.current else None

    def take_over(self) -> None:
        """Go on with what the keeper before this one had written down."""
        self.current = runfiles.read_report(self._keeper.run_folder) or None
        self.own = self.current if self.current and self.current.get("source") == OSC else None

    def on_output(self, body: bytes) -> None:
        """The agent's own words. The watcher may know more, and says so in a moment."""
        fields = parse_report(body)
        if fields is None or "id" in fields:
            return
        self.seq += 1
        self.own = None if fields["state"] == "clear" else {**fields, "source": OSC}
        if not self._overruled:
            self._set(self.own)

    def on_verdict(self, request: dict[str, object]) -> None:
        """What the watcher says. A word of the agent's own that it had not heard by then counts more, unless it knows
        better than those words (``overrules``)."""
        report = request.get("report")
        if report is not None and not (isinstance(report, dict) and report.get("state") in STATES):
            return
        self._overruled = request.get("overrules") is True
        heard_all = request.get("seq") == self.seq
        if report is not None and report.get("source") == OSC and heard_all:
            report = {**_beside(self.own or {}), **report}
        if self._overruled or heard_all:
            self._set(report)

    def on_watcher_lost(self) -> None:
        """What only the watcher knew is not known any more. What the agent said of itself stands.

        Where the watcher knew better than the agent's own words, those count again only when no other watcher comes.
        """
        another_comes = self._keeper.watcher.is_there
        self._overruled = self._overruled and another_comes
        if self.current is not None and not self._keeper.run.exited:
            said = None if another_comes and self.current.get("source") != OSC else self.own
            self._set(said or UNKNOWN_NOW)

    def _set(self, report: Report | None) -> None:
        was = self.current
        if report is not None:
            same = was is not None and {**was, "at": 0, "schema": 0} == {**report, "at": 0, "schema": 0}
            report = was if same else _now(report)
        if report is was:
            return
        self.current = report
        if "report" not in self._keeper.timers:
            self._keeper.timers.at("report", self._written_at + WRITE_EVERY_S, self.pass_on)

    def hurry(self) -> None:
        """Pass a report on that waits for its turn, before something is said that follows from it."""
        if "report" in self._keeper.timers:
            self._keeper.timers.cancel("report")
            self.pass_on(time.monotonic())

    def pass_on(self, now: float) -> None:
        self._written_at = now
        self._keeper.journal.write_report(self.current)
        self._tell_story(now)
        self._keeper.control.clients.tell_all({"event": "attention", "report": self.current})

    def _tell_story(self, now: float) -> None:
        """An agent that changes its mind all the time is not told of each time, but what it came to is told."""
        if (wait_s := self._keeper.journal.tell_report(self.current)) > 0:
            self._keeper.timers.at("story", now + wait_s, self._tell_story)


def _beside(own: Report) -> Report:
    """What the agent says of itself that no verdict has: a report of the same state is the same report."""
    return {name: item for name, item in own.items() if name not in ("state", *DETAILS)}


def _now(report: Report) -> Report:
    """With the time at which it began to count."""
    return {**report, "schema": files.SCHEMA, "at": files.stamp()}
