"""The keeper: keeps the agent's output, watches its folder, and feeds the run's machine."""

from __future__ import annotations

import os
import select
import time
from _signal import (
    SIG_IGN,
    SIGCHLD,
    SIGCONT,
    SIGHUP,
    SIGINT,
    SIGPIPE,
    SIGTERM,
    SIGTTIN,
    SIGTTOU,
    SIGUSR1,
    SIGUSR2,
    SIGWINCH,
    set_wakeup_fd,
    signal,
)

from hitchpost import wire
from hitchpost.keeper import own_log
from hitchpost.keeper.control import Control
from hitchpost.keeper.effects import EFFECTS
from hitchpost.keeper.journal import Journal, NotWritten
from hitchpost.keeper.log import Log
from hitchpost.keeper.readiness import Readiness
from hitchpost.keeper.scanner import Scanner, parse_report
from hitchpost.keeper.sources import open_source
from hitchpost.keeper.timers import Timers
from hitchpost.keeper.typing_queue import TypingQueue
from hitchpost.keeper.watcher import Watcher
from hitchpost.model import machine
from hitchpost.model import run as runs
from hitchpost.model.attention import STATES
from hitchpost.store import files, runfiles
from hitchpost.system import process
from hitchpost.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hitchpost.keeper.sources import Source
    from hitchpost.keeper.sources.tmux_pane import Pane
    from hitchpost.runspec import RunSpec

FOLDER_CHECK_S = 1.0
SIGN_EVERY_S = 10.0
FOLDER_RECHECK_S = 0.2
ACTIVITY_EVERY_S = 10.0
ACTIVITY_BYTES = 1024
REPORT_EVERY_S = 0.1
LONGEST_SIDE = 10_000
IGNORED = (SIGHUP, SIGINT, SIGPIPE, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2)


class Keeper:
    """One run. ``run`` is its life so far, ``source`` is where its agent lives."""

    def __init__(self, spec: RunSpec, run_folder: str) -> None:
        self.spec, self.run_folder = spec, run_folder
        self.cols, self.rows = spec.cols, spec.rows
        self.run = machine.Run(grace_s=spec.grace_s, ends_survivors=spec.survivors == "kill")
        self.pane: Pane | None = None
        self.report: dict[str, object] | None = NOT_REPORTED if spec.reports else None
        self.report_seq = 0
        self.own_report: dict[str, object] | None = None
        self._overruled = False
        self.last_words = ""
        self.done = False
        self.poll = select.epoll()
        self.scanner = Scanner()
        self.journal = Journal(spec, run_folder)
        self.control = Control(self)
        self.timers = Timers()
        self.readiness = Readiness(self)
        self.source: Source = open_source(self)
        self.watcher = Watcher(self)
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._events: list[machine.Event] = []
        self.ending = runfiles.Ending()
        self._last_output = 0.0
        self.died = float("inf")
        self.ended_at = self.missed_end = ""
        self._report_written = 0.0
        self._sign_due = 0.0
        self._folder_missing = False
        self._typing_stuck = False
        self.begun = self._deaf = False

    @property
    def pid(self) -> int:
        return self.source.pid

    # starting ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the agent and say ``running``. Raises ``StartFailed``, ``NotWritten`` or ``OSError``."""
        self.prepare()
        self.listen_to_signals()
        more = self.source.start()
        self.begin(more)

    def prepare(self) -> None:
        """Everything that is there before an agent is: the log, the socket, room on the disk for its end."""
        runfiles.reserve(self.run_folder)
        takes_over = self.spec.takes_over
        self.log = Log(os.path.join(self.run_folder, wire.OUTPUT), self.spec.log_cap_bytes, goes_on=takes_over)
        self.log.mark(wire.AT_SIZE, self.cols << 32 | self.rows)
        self.control.clients.open()

    def begin(self, more: dict[str, object]) -> None:
        """The agent runs: write that down, or that this keeper goes on where another was lost."""
        self.begun = True
        self.typing = TypingQueue(self.source.input_fd)
        if self.spec.takes_over:
            state = self.journal.take_over()
            self.run = replace(self.run, state=state)
            self.report = runfiles.read_report(self.run_folder) or None
            self.own_report = self.report if self.report and self.report.get("source") == OWN else None
            self.timers.at("intent", 0.0, self._go_on_stopping)
        else:
            self.journal.write_run(self.pid, self.source.tier, more)
        where = {key: text for key, text in (("container", getattr(self.spec.source, "id", "")),) if text}
        self.feed(machine.AgentStarted(evidence={"pid": self.pid, **where}))
        self._give_sign_of_life(time.monotonic())
        self.timers.at("folder", time.monotonic() + FOLDER_CHECK_S, self._check_folder)
        self.source.listen()
        if self.report is not None:
            self.pass_report_on(time.monotonic())
        if self.watcher.is_there:
            self.timers.at("watcher", 0.0, self.watcher.start)

    def fail(self, why: str) -> None:
        """No agent ran, or one runs and nobody could find it again: end what there is and write the reason."""
        while self.pid and self.source.tree.kill():
            self.source.reap()
            time.sleep(machine.ROUND_S)
        self.source.release()
        self.ending = runfiles.Ending(error=why, ended_at=files.stamp())
        self.feed(machine.StartFailed(why))
        runfiles.give_back(self.run_folder)
        files.discard(os.path.join(self.run_folder, wire.SOCKET))

    def _go_on_stopping(self, now: float) -> None:
        """An end that somebody asked the keeper before this one for."""
        if asked := self._asked_end():
            self.stop(*asked)

    def _asked_end(self) -> tuple[str, str, float] | None:
        intent = runfiles.read_intent(self.run_folder)
        return self.asked_end(intent) if intent else None

    def asked_end(self, asked: dict[str, object]) -> tuple[str, str, float] | None:
        """Who asks for the end, why, and how long it may take; None when that is no time to wait."""
        by, grace_s = asked.get("by"), asked.get("grace_s", self.spec.grace_s)
        if not isinstance(grace_s, (int, float)) or not 0 <= grace_s <= max(runs.LONGEST_GRACE_S, self.spec.grace_s):
            return None
        return str(by) if by in runs.INTENTS else runs.USER, str(asked.get("reason", "")), float(grace_s)

    def listen_to_signals(self) -> None:
        wakeup, write = os.pipe()
        for fd in (wakeup, write):
            os.set_blocking(fd, False)
        for number in IGNORED:
            signal(number, SIG_IGN)
        for number in (SIGCHLD, SIGTERM, SIGWINCH):
            signal(number, _only_wake)
        signal(SIGCONT, self._on_continued)
        set_wakeup_fd(write, warn_on_full_buffer=False)
        self.watch(wakeup, lambda events: self._on_signals(os.read(wakeup, 512)))

    # the loop ---------------------------------------------------------------------------------------------------

    def watch(self, fd: int, handler: Callable[[int], None], events: int = select.EPOLLIN) -> None:
        self.poll.register(fd, events)
        self._handlers[fd] = handler

    def unwatch(self, fd: int) -> None:
        if self._handlers.pop(fd, None) is not None:
            self.poll.unregister(fd)

    def keep(self) -> None:
        """Until the agent has ended and everything about it is written down."""
        while not self.done:
            for fd, events in self.poll.poll(self.timers.next_in_s(time.monotonic())):
                if (handler := self._handlers.get(fd)) is not None:
                    handler(events)
                else:
                    self.control.on_event(fd, events)
            now = time.monotonic()
            for call in self.timers.due(now):
                if not self.done:
                    call(now)

    def _on_signals(self, signals: bytes) -> None:
        if self.pane is not None and SIGWINCH in signals:
            self.pane.resized()
        if SIGTERM in signals:
            unasked = (runs.SHUTDOWN, "the keeper was asked to end by SIGTERM", self.spec.grace_s)
            self.stop(*(self._asked_end() or unasked))
        self.source.reap()

    def _on_continued(self, number: int, frame: object) -> None:
        """A signal had stopped this process. An agent that is gone by now has ended meanwhile: nobody saw when, and all
        that is known is when it last gave a sign of life."""
        if self.pid and not self.missed_end and not self.ended_at and not process.has_live_thread(self.pid):
            sign = os.fstat(self.spec.lock_fd).st_mtime
            self.missed_end = files.stamp(max(sign, self._last_output))

    # the machine ------------------------------------------------------------------------------------------------

    def feed(self, event: machine.Event) -> None:
        """Apply an event and carry out what follows. Events that effects bring are applied after them."""
        self._events.append(event)
        if len(self._events) > 1:
            return
        try:
            while self._events:
                before = self.run
                self.run, effects = machine.handle(self.run, self._events[0])
                try:
                    for effect in effects:
                        EFFECTS[type(effect)](self, effect)
                except NotWritten:
                    self.run = before
                    raise
                self._events.pop(0)
        finally:
            self._events.clear()
            if self.run.next_at < machine.NEVER:
                self.timers.at("deadline", self.run.next_at, lambda now: self.feed(machine.DeadlinePassed(now)))
            else:
                self.timers.cancel("deadline")

    def stop(self, by: str, reason: str, grace_s: float) -> None:
        self.feed(machine.StopRequested(by, reason, grace_s, time.monotonic()))

    # what a source tells ----------------------------------------------------------------------------------------

    def on_output(self, data: bytes) -> None:
        self.log.append(data, self.control.clients.poke)
        if self.pane is not None:
            self.pane.show()
        self._last_output = time.time()
        if "activity" not in self.timers:
            self.timers.at("activity", time.monotonic() + ACTIVITY_EVERY_S, self._record_activity)
        reports = self.report_seq
        for kind, body in self.scanner.feed(data):
            if kind == "report":
                self._on_report(body)
            elif kind == "query":
                self.type(b"\x1b]7501;?\x1b\\")
            elif self.control.owner is None and not self.source.answers_queries:
                self.type(body)
        if self.report_seq > reports:
            self.watcher.tell_report()
        self.watcher.pulse()
        self.readiness.printed()

    def agent_exited(self) -> None:
        """The agent's first process has ended."""
        self.control.give_receipts(time.monotonic())
        self.died, self.ended_at = time.monotonic(), self.missed_end or files.stamp()
        self.feed(machine.AgentExited())

    def output_closed(self) -> None:
        """The agent has ended, and all of its output has been told."""
        self.timers.cancel("folder", "activity")
        self.feed(machine.TerminalClosed(time.monotonic()))

    def lost(self, grace_s: float) -> None:
        """The agent has lost what it ran in."""
        self.feed(machine.SourceLost(grace_s, time.monotonic()))

    # the terminal -----------------------------------------------------------------------------------------------

    def type(self, *items: bytes | float | Callable[[], None]) -> bool:
        """Type into the terminal what was waiting and then ``items``. False when they find no room."""
        if self.source.input_fd < 0:
            return False
        taken = self.typing.put(*items)
        if not self.typing.flush():
            return taken
        if self.typing.resume_at is not None:
            self.timers.at("typing", self.typing.resume_at, self._type_on)
        if self._typing_stuck != self.typing.blocked:
            self._typing_stuck = self.typing.blocked
            self.source.want_room(self._typing_stuck)
        return taken

    def _type_on(self, now: float) -> None:
        self.type()

    def resize(self, cols: int, rows: int) -> None:
        if (cols, rows) == (self.cols, self.rows) or max(cols, rows) > LONGEST_SIDE:
            return
        if not self.source.set_size(cols, rows):
            return
        self.cols, self.rows = cols, rows
        self.log.mark(wire.AT_OFFSET, self.log.end)
        self.log.mark(wire.AT_SIZE, cols << 32 | rows)
        self.control.clients.tell_all({"event": "resize", "cols": cols, "rows": rows, "offset": self.log.end})

    # what is noticed --------------------------------------------------------------------------------------------

    def _on_report(self, body: bytes) -> None:
        """The agent's own words. The watcher may know more, and says so in a moment."""
        fields = parse_report(body)
        if fields is None or "id" in fields:
            return
        self.report_seq += 1
        self.own_report = None if fields["state"] == "clear" else {**fields, "source": OWN}
        if not self._overruled:
            self.set_report(self.own_report)

    def verdict(self, request: dict[str, object]) -> None:
        """What the watcher says. A word of the agent's own that it had not heard by then counts more, unless it knows
        better than those words (``overrules``)."""
        report = request.get("report")
        if report is not None and not (isinstance(report, dict) and report.get("state") in STATES):
            return
        self._overruled = request.get("overrules") is True
        if self._overruled or request.get("seq") == self.report_seq:
            self.set_report(report)

    def watcher_lost(self) -> None:
        """What only the watcher knew is not known any more. What the agent said of itself stands."""
        self._overruled = False
        if self.report is not None and not self.run.exited:
            said = self.own_report if self.report.get("source") == OWN else None
            self.set_report(said or UNKNOWN_NOW)

    def set_report(self, report: dict[str, object] | None) -> None:
        was = self.report
        if report is not None:
            same = was is not None and {**was, "at": 0, "schema": 0} == {**report, "at": 0, "schema": 0}
            report = was if same else {**report, "schema": files.SCHEMA, "at": files.stamp()}
        if report is was:
            return
        self.report = report
        if "report" not in self.timers:
            self.timers.at("report", self._report_written + REPORT_EVERY_S, self.pass_report_on)

    def hurry_report(self) -> None:
        """Pass a report on that waits for its turn, before something is said that follows from it."""
        if "report" in self.timers:
            self.timers.cancel("report")
            self.pass_report_on(time.monotonic())

    def pass_report_on(self, now: float) -> None:
        self._report_written = now
        self.journal.write_report(self.report)
        self.control.clients.tell_all({"event": "attention", "report": self.report})

    def _record_activity(self, now: float) -> None:
        self.journal.record_activity(self._last_output, self.log.tail(ACTIVITY_BYTES))

    def _give_sign_of_life(self, now: float) -> None:
        """Touch the lock: should this process be killed, its run is known to have lived until about then."""
        if now >= self._sign_due:
            self._sign_due = now + SIGN_EVERY_S
            try:
                os.utime(self.spec.lock_fd)
            except OSError:
                return  # then the sign is missing, and nothing is false

    def _check_folder(self, now: float) -> None:
        """Whether the workspace is still the same folder. One bad look is looked at again before it counts."""
        spec = self.spec
        self.source.reap()  # a wake-up that was lost must not hide the agent's end for ever
        self._give_sign_of_life(now)
        self._check_socket()
        if self.pane is not None:
            self.pane.check()
        try:
            here = os.stat(spec.folder)
            missing = (here.st_dev, here.st_ino) != (spec.folder_dev, spec.folder_ino)
        except (FileNotFoundError, NotADirectoryError):
            missing = True
        except OSError:
            missing = False
        if missing and self._folder_missing:
            self.feed(machine.WorkspaceGone({"folder": spec.folder}))
        again_s = FOLDER_RECHECK_S if missing and not self._folder_missing else FOLDER_CHECK_S
        self._folder_missing = missing
        self.timers.at("folder", now + again_s, self._check_folder)

    def _check_socket(self) -> None:
        try:
            self.control.clients.check()
        except OSError as error:
            if not self._deaf:
                own_log.note(f"nobody can reach this keeper: {error}")
            self._deaf = True
        else:
            self._deaf = False


OWN = "osc7501"
"""The source of what the agent itself says, in its output."""
NOT_REPORTED: dict[str, object] = {"state": "unknown", "source": "", "message": "the agent has not reported yet"}
UNKNOWN_NOW: dict[str, object] = {"state": "unknown", "source": "", "message": "what knows this agent has ended"}


def _only_wake(number: int, frame: object) -> None:
    """The byte in the wake-up pipe says which signal came."""
