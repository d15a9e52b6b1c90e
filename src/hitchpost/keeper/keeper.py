"""The keeper: keeps the agent's output, and feeds the run's machine."""

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
    SIGIO,
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
from hitchpost.keeper.checks import Checks
from hitchpost.keeper.control import Control
from hitchpost.keeper.effects import EFFECTS
from hitchpost.keeper.journal import Journal, NotWritten
from hitchpost.keeper.log import Log
from hitchpost.keeper.readiness import Readiness
from hitchpost.keeper.report import AgentReport
from hitchpost.keeper.scanner import Scanner
from hitchpost.keeper.sources import open_source
from hitchpost.keeper.timers import Timers
from hitchpost.keeper.typing_queue import TypingQueue
from hitchpost.keeper.watcher import Watcher
from hitchpost.model import machine
from hitchpost.model import run as runs
from hitchpost.store import files, runfiles
from hitchpost.system import process
from hitchpost.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hitchpost.keeper.sources import Source
    from hitchpost.keeper.sources.tmux_pane import Pane
    from hitchpost.runspec import RunSpec

ACTIVITY_EVERY_S = 10.0
ACTIVITY_BYTES = 1024
LONGEST_SIDE = 10_000
IGNORED = (SIGHUP, SIGINT, SIGPIPE, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2)


class Keeper:
    """One run. ``run`` is its life so far, ``source`` is where its agent lives."""

    def __init__(self, spec: RunSpec, run_folder: str) -> None:
        self.spec, self.run_folder = spec, run_folder
        self.cols, self.rows = spec.cols, spec.rows
        self.run = machine.Run(
            grace_s=spec.grace_s, ends_survivors=spec.survivors == "kill", ends_orphans=bool(spec.watcher.argv)
        )
        self.pane: Pane | None = None
        self.last_words = ""
        self.done = False
        self.poll = select.epoll()
        self.scanner = Scanner()
        self.journal = Journal(spec, run_folder)
        self.control = Control(self)
        self.timers = Timers()
        self.readiness = Readiness(self)
        self.report = AgentReport(self)
        self.checks = Checks(self)
        self.source: Source = open_source(self)
        self.watcher = Watcher(self)
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._events: list[machine.Event] = []
        self.ending = runfiles.Ending()
        self._last_output = 0.0
        self.died = float("inf")
        self.ended_at = self.missed_end = ""
        self._typing_stuck = False
        self.begun = False

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
            self.report.take_over()
            self.timers.at("intent", 0.0, self._go_on_stopping)
        else:
            self.journal.write_run(self.pid, self.source.tier, more)
        where = {key: text for key, text in (("container", getattr(self.spec.source, "id", "")),) if text}
        self.feed(machine.AgentStarted(evidence={"pid": self.pid, **where}))
        self.checks.begin()
        self.source.listen()
        if self.report.current is not None:
            self.report.pass_on(time.monotonic())
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
        for number in (SIGCHLD, SIGIO, SIGTERM, SIGWINCH):
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
        if SIGIO in signals:
            self.checks.soon()
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
        reports = self.report.seq
        for kind, body in self.scanner.feed(data):
            if kind == "report":
                self.report.on_output(body)
            elif kind == "query":
                self.type(b"\x1b]7501;?\x1b\\")
            elif self.control.owner is None and not self.source.answers_queries:
                self.type(body)
        if self.report.seq > reports:
            self.watcher.tell_report()
        self.watcher.pulse()
        self.readiness.printed()

    def agent_exited(self) -> None:
        """The agent's first process has ended."""
        self.control.give_receipts(time.monotonic())
        self.died, self.ended_at = time.monotonic(), self.missed_end or files.stamp()
        self.feed(machine.AgentExited(self.died, self._was_killed()))

    def output_closed(self) -> None:
        """The agent has ended, and all of its output has been told."""
        self.checks.end()
        self.timers.cancel("activity", "story")
        self.feed(machine.TerminalClosed(time.monotonic(), self._was_killed()))

    def _was_killed(self) -> bool:
        status = self.source.wait_status
        return status is not None and os.WIFSIGNALED(status)

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

    def _record_activity(self, now: float) -> None:
        self.journal.record_activity(self._last_output, self.log.tail(ACTIVITY_BYTES))


def _only_wake(number: int, frame: object) -> None:
    """The byte in the wake-up pipe says which signal came."""
