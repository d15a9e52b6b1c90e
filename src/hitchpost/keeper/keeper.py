"""The keeper's life: start the agent, keep its output, watch its folder, write down how it ended."""

from __future__ import annotations

import errno
import fcntl
import os
import resource  # noqa: F401 — wait4 imports it when first called; a failure then would lose the agent's exit status
import select
import termios
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
from hitchpost.keeper import agent
from hitchpost.keeper.complaint import complain
from hitchpost.keeper.control import Desk
from hitchpost.keeper.journal import Journal
from hitchpost.keeper.log import Log
from hitchpost.keeper.pane import Pane
from hitchpost.keeper.readiness import Readiness
from hitchpost.keeper.spec import Spec
from hitchpost.keeper.stopping import Stopping, asked_end
from hitchpost.keeper.terminal import Scanner, parse_report
from hitchpost.keeper.timers import Timers
from hitchpost.keeper.tree import Tree
from hitchpost.keeper.typing_queue import TypingQueue
from hitchpost.model import run as runs
from hitchpost.store import files, marks, runfiles
from hitchpost.system import cgroup, process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

READ_BYTES = 65536
READS_PER_TURN = 32
FOLDER_CHECK_S = 1.0
SIGN_EVERY_S = 10.0
FOLDER_RECHECK_S = 0.2
ACTIVITY_EVERY_S = 10.0
ACTIVITY_BYTES = 1024
REPORT_EVERY_S = 0.1
DRAIN_S = 1.0
LATE_S = 0.5
FAREWELL_S = 1.0
LONGEST_SIDE = 10_000
IGNORED = (SIGHUP, SIGINT, SIGPIPE, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2)


class Keeper:
    def __init__(self, spec: Spec, run_folder: str) -> None:
        self.spec, self.run_folder = spec, run_folder
        self.cols, self.rows = spec.cols, spec.rows
        self.pid = 0
        self.master = self.slave = -1
        self.wait_status: int | None = None
        self.report: dict[str, object] | None = None
        self.pane: Pane | None = None
        self.error: str | None = None
        self.last_words = ""
        self.done = False
        self.poll = select.epoll()
        self.scanner = Scanner()
        self.cage = cgroup.ControlGroups([])
        self.tree = Tree(self.cage)
        self.journal = Journal(spec, run_folder)
        self.stopping = Stopping(self)
        self.timers = Timers()
        self.readiness = Readiness(self)
        self._last_output = 0.0
        self._died = float("inf")
        self._ended_at = self._missed_end = ""
        self._report_written = 0.0
        self._sign_due = 0.0
        self._folder_missing = False
        self._typing_stuck = False
        self._deaf = False

    # starting ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the agent and say ``running``. Raises ``StartFailed``, ``NotWritten`` or ``OSError``."""
        self.prepare()
        if self.spec.tmux:
            self._move_in()
        name = marks.group_name(self.spec.session_folder, self.spec.run)
        self.cage = cgroup.build(name, self.spec.pids_max, self.spec.memory_max_bytes)
        self.tree = Tree(self.cage)
        try:
            self.pid, self.master, self.slave = agent.start(self.spec, self.cage)
        except BaseException:
            self.cage.remove()
            raise
        self.typing = TypingQueue(self.master)
        self.poll.register(self.master, select.EPOLLIN)
        self.begin(self.cage.tier, "the agent runs", {"pid": self.pid})

    def prepare(self) -> None:
        """Everything that is there before an agent is: the log, the socket, room on the disk for its end."""
        agent.become_subreaper()
        cgroup.leave_foreign_group()
        runfiles.reserve(self.run_folder)
        takes_over = self.spec.takes_over
        self.log = Log(os.path.join(self.run_folder, wire.OUTPUT), self.spec.log_cap_bytes, goes_on=takes_over)
        self.log.mark(wire.AT_SIZE, self.cols << 32 | self.rows)
        self._listen_to_signals()
        self.desk = Desk(self)
        self.journal.tell = self.desk.clients.tell_all

    def begin(self, tier: str, reason: str, evidence: dict[str, object], **more: object) -> None:
        """The agent runs: write that down, or that this keeper goes on where another was lost."""
        if self.spec.takes_over:
            self.journal.take_over()
            self.report = runfiles.read_report(self.run_folder) or None
            self.timers.at("intent", 0.0, self._go_on_stopping)
        else:
            self.journal.write_run(self.pid, tier, **more)
            self.journal.change(runs.RUNNING, reason, evidence)
        self._give_sign_of_life(time.monotonic())
        self.timers.at("folder", time.monotonic() + FOLDER_CHECK_S, self._check_folder)

    def _go_on_stopping(self, now: float) -> None:
        """An end that somebody asked the keeper before this one for."""
        if asked := self._asked_end():
            self.stopping.stop(*asked)

    def _asked_end(self) -> tuple[str, str, float] | None:
        intent = runfiles.read_intent(self.run_folder)
        return asked_end(intent, self.spec.grace_s) if intent else None

    def _move_in(self) -> None:
        """This process runs in a tmux pane, which is the agent's first client. Its terminal type is the pane's."""
        self.pane = Pane(self)
        cgroup.leave_foreign_group(self.pane.server_pid)
        self.spec.env[b"TERM"] = os.environb.get(b"TERM", self.spec.env.get(b"TERM", b"screen"))
        self.cols, self.rows = self.spec.cols, self.spec.rows = self.pane.client.cols, self.pane.client.rows
        self.desk.own(self.pane.client)
        os.chdir(self.spec.folder)  # new panes and the shell begin where this process is

    def _listen_to_signals(self) -> None:
        self.wakeup, write = os.pipe()
        for fd in (self.wakeup, write):
            os.set_blocking(fd, False)
        for number in IGNORED:
            signal(number, SIG_IGN)
        for number in (SIGCHLD, SIGTERM, SIGWINCH):
            signal(number, _only_wake)
        signal(SIGCONT, self._on_continued)
        set_wakeup_fd(write, warn_on_full_buffer=False)
        self.poll.register(self.wakeup, select.EPOLLIN)

    # the loop ---------------------------------------------------------------------------------------------------

    def keep(self) -> None:
        """Until the agent has ended and everything about it is written down."""
        while not self.done:
            for fd, events in self.poll.poll(self.timers.next_in_s(time.monotonic())):
                if fd == self.master:
                    self._on_terminal(events)
                elif fd == self.wakeup:
                    self._on_wakeup()
                elif self.pane is not None and fd == self.pane.fd:
                    self.pane.on_event(events)
                elif fd == self.desk.clients.fd:
                    self.desk.clients.accept()
                elif (client := self.desk.clients.by_fd.get(fd)) is not None:
                    self.desk.on_event(client, events)
                else:
                    self.other_event(fd)
            self._on_time()

    def _on_time(self) -> None:
        now = time.monotonic()
        for call in self.timers.due(now):
            if not self.done:
                call(now)

    def _on_wakeup(self) -> None:
        signals = os.read(self.wakeup, 512)
        if self.pane is not None and SIGWINCH in signals:
            self.pane.resized()
        if SIGTERM in signals:
            unasked = (runs.SHUTDOWN, "the keeper was asked to end by SIGTERM", self.spec.grace_s)
            self.stopping.stop(*(self._asked_end() or unasked))
        self.reap()

    def _on_continued(self, number: int, frame: object) -> None:
        """A signal had stopped this process. An agent that is gone by now has ended meanwhile: nobody saw when, and all
        that is known is when it last gave a sign of life."""
        if self.pid and not self._missed_end and not self._ended_at and not process.has_live_thread(self.pid):
            sign = os.fstat(self.spec.lock_fd).st_mtime
            self._missed_end = files.stamp(max(sign, self._last_output))

    def note_end(self) -> None:
        """The agent is seen to have ended."""
        self._died, self._ended_at = time.monotonic(), self._missed_end or files.stamp()

    def reap(self) -> None:
        """Collect the dead: the agent's status is kept, those of its orphans are nobody's."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.pid and self.wait_status is None:
                self.desk.give_receipts(time.monotonic())
                self.wait_status, self._usage = status, usage
                self.note_end()
                os.close(self.slave)
                self.timers.at("drain", time.monotonic() + DRAIN_S, self._drained)

    # the terminal -----------------------------------------------------------------------------------------------

    def _on_terminal(self, events: int) -> None:
        if events & select.EPOLLOUT:
            self.type()
        if not events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
            return
        parts = []
        over = False
        for _ in range(READS_PER_TURN):
            try:
                part = os.read(self.master, READ_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                part = b""
            if not part:
                over = True
                break
            parts.append(part)
        if parts:
            self._on_output(parts[0] if len(parts) == 1 else b"".join(parts))
        if over:
            self._terminal_over()

    def _on_output(self, data: bytes) -> None:
        self.log.append(data, self.desk.clients.poke)
        if self.pane is not None:
            self.pane.show()
        self._last_output = time.time()
        if "activity" not in self.timers:
            self.timers.at("activity", time.monotonic() + ACTIVITY_EVERY_S, self._record_activity)
        for kind, body in self.scanner.feed(data):
            if kind == "report":
                self._on_report(body)
            elif kind == "query":
                self.type(b"\x1b]7501;?\x1b\\")
            else:
                self.answer(body)
        self.readiness.printed()

    def answer(self, body: bytes) -> None:
        """Answer a query that the agent asks its terminal, when no client is there to do so."""
        if self.desk.owner is None:
            self.type(body)

    @property
    def tmux_answers(self) -> bool:
        """Whether a tmux between us and the agent answers its queries: a second answer would be typed."""
        return self.pane is not None

    def other_event(self, fd: int) -> None:
        """Something was heard that is not a keeper's usual: one with more to watch takes it."""

    @property
    def reads_lines(self) -> bool:
        """Whether the agent gets its input line by line, which limits their length."""
        return bool(termios.tcgetattr(self.master)[3] & termios.ICANON)

    @property
    def unread_bytes(self) -> int:
        """What the terminal holds that the agent could read and has not; whole lines, where it reads by lines."""
        if self.wait_status is not None or self.slave < 0:
            return 0
        return int.from_bytes(fcntl.ioctl(self.slave, termios.FIONREAD, bytes(4)), "little")

    def type(self, *items: bytes | float | Callable[[], None]) -> bool:
        """Type into the terminal what was waiting and then ``items``. False when they find no room."""
        if self.master < 0:
            return False
        taken = self.typing.put(*items)
        try:
            self.typing.flush()
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return taken
        if self.typing.resume_at is not None:
            self.timers.at("typing", self.typing.resume_at, self._type_on)
        if self._typing_stuck != self.typing.blocked:
            self._typing_stuck = self.typing.blocked
            self.wait_for_room(self._typing_stuck)
        return taken

    def wait_for_room(self, wanted: bool) -> None:
        self.poll.modify(self.master, select.EPOLLIN | (select.EPOLLOUT if wanted else 0))

    def _type_on(self, now: float) -> None:
        self.type()

    def resize(self, cols: int, rows: int) -> None:
        if (cols, rows) == (self.cols, self.rows) or max(cols, rows) > LONGEST_SIDE or self.master < 0:
            return
        self.cols, self.rows = cols, rows
        self.set_size(cols, rows)
        self.log.mark(wire.AT_OFFSET, self.log.end)
        self.log.mark(wire.AT_SIZE, cols << 32 | rows)
        self.desk.clients.tell_all({"event": "resize", "cols": cols, "rows": rows, "offset": self.log.end})

    def set_size(self, cols: int, rows: int) -> None:
        agent.set_size(self.master, cols, rows)

    @property
    def output_is_complete(self) -> bool:
        return self.master < 0

    def _drained(self, now: float) -> None:
        """The agent is gone and its terminal was not hung up: a survivor holds it open. Its last words are in."""
        self._on_terminal(select.EPOLLIN)
        self._terminal_over()

    def _terminal_over(self) -> None:
        """The agent is gone and nobody has its terminal open: everything that was written to it has been read."""
        if self.master >= 0:
            self.poll.unregister(self.master)
            os.close(self.master)
            self.master = -1
            self.timers.cancel("drain", "folder", "activity")
            self.stopping.leader_ended()

    # what is noticed --------------------------------------------------------------------------------------------

    def _on_report(self, body: bytes) -> None:
        fields = parse_report(body)
        if fields is None or "id" in fields:
            return
        cleared = fields["state"] == "clear"
        self.report = None if cleared else {**fields, "schema": files.SCHEMA, "at": files.stamp(), "source": "osc7501"}
        if "report" not in self.timers:
            self.timers.at("report", self._report_written + REPORT_EVERY_S, self._pass_report_on)

    def _pass_report_on(self, now: float) -> None:
        self._report_written = now
        self.journal.write_report(self.report)
        self.desk.clients.tell_all({"event": "attention", "report": self.report})

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
        self.reap()  # a wake-up that was lost must not hide the agent's end for ever
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
        if missing and self._folder_missing and self.journal.state == runs.RUNNING:
            self.journal.change(runs.ORPHANED, runs.WORKSPACE_GONE, {"folder": spec.folder})
        again_s = FOLDER_RECHECK_S if missing and not self._folder_missing else FOLDER_CHECK_S
        self._folder_missing = missing
        self.timers.at("folder", now + again_s, self._check_folder)

    def _check_socket(self) -> None:
        try:
            self.desk.clients.check()
        except OSError as error:
            if not self._deaf:
                complain(f"nobody can reach this keeper: {error}")
            self._deaf = True
        else:
            self._deaf = False

    # ending -----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Write the end down, in the order of its weight: the exit, the state, the word to the clients, the log."""
        if self.done:
            return
        self.done = True
        if "report" in self.timers:
            self._pass_report_on(time.monotonic())
        ending = runfiles.Ending(
            wait_status=self.wait_status,
            intent=self.stopping.intent,
            error=self._why_lost(),
            ended_at=self._ended_at,
            ended_at_known=not self._missed_end,
            survivors=sum(not process.is_dying(pid) for pid in self.tree.pids()),
            attention=str(self.report["state"]) if self.report else None,
            lost_bytes=None if self.log.uncounted else self.log.lost_bytes,
            oom_kills=self.cage.oom_kills(),
            usage=self._usage,
        )
        self.desk.give_receipts(time.monotonic(), over=True)
        self.log.mark(wire.AT_EXIT, ending.shell_code)
        ending.write(self.run_folder)
        self.cage.remove()  # before the state: nobody looks for the groups of a run that has ended
        new, reason = ending.verdict()
        # the agent alone ended, a while ago, and what it left behind held its terminal open
        late = bool(self._missed_end) or time.monotonic() - self._died >= LATE_S
        late = late and self.journal.state == runs.RUNNING
        self.journal.change(new, reason, ending.evidence(), since=self._ended_at if late else None)
        self.last_words = f"{self.journal.state}: {reason}" if self.journal.state == runs.FAILED else self.journal.state
        self.desk.clients.tell_all(
            {
                "event": "exit",
                "state": self.journal.state,
                "reason": reason,
                "changed_at": self.journal.changed_at,
                "written_at": self.log.written_at(),
                "end": self.log.end,
                "exit": ending.fields(),
            }
        )
        self._say_farewell()
        self.log.close()
        runfiles.give_back(self.run_folder)

    def _why_lost(self) -> str | None:
        """Why the agent had to end, when it was because its pane was lost."""
        if self.pane is None or not self.pane.lost or self.stopping.intent is not None:
            return None
        return self.error or self.pane.why_lost()

    def _say_farewell(self) -> None:
        clients = self.desk.clients
        deadline = time.monotonic() + FAREWELL_S
        while clients.unread() and time.monotonic() < deadline:
            for fd, events in self.poll.poll(0.05):
                client = clients.by_fd.get(fd)
                if client is not None and events & select.EPOLLOUT:
                    clients.flush(client)
        clients.close_all()


def _only_wake(number: int, frame: object) -> None:
    """The byte in the wake-up pipe says which signal came."""
