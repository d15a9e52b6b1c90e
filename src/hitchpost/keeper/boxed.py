"""A keeper for an agent in a container. The container is on this machine, so its processes are ours to see.

Inside, tmux's session ``agent`` runs the agent below ``runtimes/inside/agent.sh``. Two named pipes in a folder that
the container shares with us bring its output and take commands for tmux; a file there says how the agent ended. No
engine is asked for anything while the container lives: one that hangs or is gone changes nothing about what is known
here. How a container ended is known to its engine alone (``container_end.py``).

Everything in that folder can be altered from inside. It is opened without following links, and read a little of.
"""

from __future__ import annotations

import os
import select
import stat
import time
from _signal import SIGKILL

from hitchpost import wire
from hitchpost.keeper.adopted import READ_BYTES, Adopted
from hitchpost.keeper.agent import StartFailed
from hitchpost.keeper.container_end import why_ended
from hitchpost.keeper.keeper import Keeper
from hitchpost.keeper.tree import Tree
from hitchpost.model import run as runs
from hitchpost.store import files, runfiles
from hitchpost.system import process
from hitchpost.system.cgroup import ControlGroups

START_S = 25.0
LAST_WORD_S = 2.0
ROUND_S = 0.005
STATUS_S = 10.0
LAST_OUTPUT_S = 5.0
LONGEST_PIPE_PAUSE_S = 5.0
PIPE_PATIENCE_S = 4.0
"""How long who brings the output may take to open the pipe."""
SMALL_BYTES = 4096
KILLED = (SIGKILL, 128 + SIGKILL << 8)
"""Wait statuses of an agent that was killed, as a program and as a shell tell them."""
MARK = b"HITCHPOST_INSIDE=agent"
"""In the environment of the agent and of what it starts, and of nothing else in the container."""


class Boxed(Adopted):
    server_pidfd = -1
    _ended = 0.0
    _hung_up = False
    _box_died = False
    _waiter = 0, 0
    _pipe_pause_s = 0.1
    _pipe_due = 0.0

    def start(self) -> None:
        self.prepare()
        self.tree = self.inside = Inside(self.spec.container, self.spec.container_pid, self.spec.container_start)
        self._place = os.open(self.spec.box, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self.master = self._pipe("out", os.O_RDONLY)
        self.control = self._pipe("keys", os.O_RDWR)  # open for reading too: it is never without a reader
        if self.spec.takes_over:
            self._find_again()
        else:
            self._find_agent()
        self.take_keys()
        evidence: dict[str, object] = {"pid": self.pid, "container": self.spec.container}
        place = {"place": os.path.basename(self.spec.box), "pane": self.spec.adopt_pane}
        self.begin("container", "the agent runs", evidence, **place)
        if self.spec.takes_over:
            self._listen_again()
        else:
            self.poll.register(self.master, select.EPOLLIN)

    def _find_again(self) -> None:
        """Watch the agent of a keeper that is gone."""
        spec = self.spec
        if process.start_time(spec.adopt_pid) != spec.adopt_start or not self._watch(spec.adopt_pid):
            raise StartFailed("the agent has ended")
        if not _comm(process.parent(process.parent(spec.adopt_pid))).startswith("tmux"):
            raise StartFailed("its tmux is gone, and nobody can reach it any more")

    def _listen_again(self) -> None:
        """Who brought the output to a keeper that is gone may have ended with it, then it is brought again."""
        os.close(self._pipe("out", os.O_WRONLY))  # from now on the kernel tells whether somebody inside has it open
        if self._has_writer():
            self.log.miss()
            self.poll.register(self.master, select.EPOLLIN)
        else:
            self._hung_up = True
            self._pipe_again(time.monotonic())

    def _pipe(self, name: str, how: int) -> int:
        fd = os.open(name, how | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._place)
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            raise StartFailed(f"{name} in {self.spec.box} is not a pipe any more")
        return fd

    def _find_agent(self) -> None:
        """Wait until the agent runs, and watch it; one that has ended by then is as good. Raises ``StartFailed``."""
        deadline = time.monotonic() + START_S
        box_ended = ""
        while time.monotonic() < deadline:
            if why := self._said("failed"):
                raise StartFailed(why.strip())
            if not box_ended and not self.inside.box_lives:
                box_ended = self._why_box_ended()
                deadline = time.monotonic() + LAST_WORD_S  # who started it may know more
            self._let_go()
            inside = self._said("pid").strip()
            if inside and self._watch_inside(inside):
                return
            if (status := runfiles.status_of(self._said("exit_status"))) is not None:
                self.wait_status, self._usage = status, None  # type: ignore[assignment]
                self._ended = time.monotonic()
                self.note_end()
                self.timers.at("status", self._ended, self._wait_for_status)
                return
            time.sleep(ROUND_S)
        raise StartFailed(box_ended or f"the agent did not begin within {START_S:g} s")

    def _let_go(self) -> None:
        """tmux is ready, and so are we: now the agent may begin. One whose keeper has given up never does."""
        pane = self._said("ready").strip()
        if self.spec.adopt_pane or not (pane.startswith("%") and pane[1:].isdigit()):
            return
        try:
            fd = os.open("go", os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._place)
        except OSError:
            return  # nobody reads it yet
        self.spec.adopt_pane = pane
        os.write(fd, b"\n")
        os.close(fd)

    def _watch_inside(self, inside: str) -> bool:
        """Whether the process was still there. Its grandparent is tmux: between the two is who waits for its end."""
        found = self.inside.outside(inside)
        return found is not None and self._watch(found)

    def _watch(self, pid: int) -> bool:
        waiter = process.parent(pid)
        server = process.parent(waiter)
        if not server:
            return False
        self._waiter = waiter, process.start_time(waiter) or 0
        try:
            self.server_pidfd = os.pidfd_open(server)
            self.watch(pid)
        except ProcessLookupError:
            return False
        self.tree = self.inside
        self.poll.register(self.server_pidfd, select.EPOLLIN)
        return True

    def _said(self, name: str) -> str:
        """A small file from inside; empty while it is not there, is not written to its end, or is something else."""
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._place)
        except OSError:
            return ""
        try:
            regular = stat.S_ISREG(os.fstat(fd).st_mode)
            text = os.read(fd, SMALL_BYTES) if regular else b""
            return text.decode("utf-8", "replace") if text.endswith(b"\n") or len(text) == SMALL_BYTES else ""
        except OSError:
            return ""
        finally:
            os.close(fd)

    # the terminal -----------------------------------------------------------------------------------------------

    def _on_terminal(self, events: int) -> None:
        try:
            data = os.read(self.master, READ_BYTES)
        except BlockingIOError:
            return
        if data:
            self._on_output(data)
        else:
            self.poll.unregister(self.master)
            self._hung_up = True
            self._pipe_again(time.monotonic())

    def _pipe_again(self, now: float) -> None:
        """Who brings the output has ended inside, and the agent lives: tmux starts it again."""
        if self._ended or not process.has_live_thread(self.pid):
            return
        if self._has_writer():
            self.log.miss()
            self._hung_up = False
            self.poll.register(self.master, select.EPOLLIN)
            return
        if not self._waiting and now >= self._pipe_due:
            self._pipe_due = now + PIPE_PATIENCE_S  # a second one would draw the screen a second time
            pane, out = self.spec.adopt_pane, f"{wire.SHARED}/{os.path.basename(self.spec.box)}/out"
            self.command(f"pipe-pane -t {pane} 'exec sh {wire.PROGRAMS}/follow.sh {pane} >{out}'")
        self._pipe_pause_s = min(2 * self._pipe_pause_s, LONGEST_PIPE_PAUSE_S)
        self.timers.at("pipe", now + self._pipe_pause_s, self._pipe_again)

    def _has_writer(self) -> bool:
        """Whether somebody has the pipe open for writing: the kernel says when nobody has."""
        looked = select.poll()
        looked.register(self.master, select.POLLIN)
        return not any(events & select.POLLHUP for _, events in looked.poll(0))

    def resize(self, cols: int, rows: int) -> None:
        Keeper.resize(self, cols, rows)

    def set_size(self, cols: int, rows: int) -> None:
        self.command(f"resize-window -t {self.spec.adopt_pane} -x {cols} -y {rows}")

    # ending -----------------------------------------------------------------------------------------------------

    def other_event(self, fd: int) -> None:
        if fd == self.pidfd:
            self.poll.unregister(self.pidfd)
            self.note_end()
            self._ended = time.monotonic()
            self._box_died = not self.inside.box_lives
            self._wait_for_status(self._ended)
        elif fd == self.server_pidfd:
            self.poll.unregister(self.server_pidfd)
            if process.has_live_thread(self.pid) and self.inside.box_lives:
                self.error = runs.TMUX_GONE
                self.stopping.abandon(self.spec.grace_s)
        else:
            self.on_keys(fd)

    def _wait_for_status(self, now: float) -> None:
        """The agent's parent inside writes how it ended, and its last output comes: both a moment after its end."""
        box_lives = self.inside.box_lives
        waited_for = process.is_running(*self._waiter)  # first this, then the file: nobody else writes it
        if self.wait_status is None:
            self.wait_status = runfiles.status_of(self._said("exit_status"))
        known = self.wait_status is not None or not waited_for
        patience_s = STATUS_S if not known else LAST_OUTPUT_S if box_lives or self.wait_status is not None else 0.0
        if not (known and self._hung_up) and now - self._ended < patience_s:
            self.timers.at("status", now + ROUND_S, self._wait_for_status)
        else:
            self._drained(now)

    def _drained(self, now: float) -> None:
        self.timers.cancel("folder", "activity", "pipe")
        try:
            if data := os.read(self.master, READ_BYTES):
                self._on_output(data)
        except BlockingIOError:
            pass
        for fd in (self.master, self.control, self._place):
            os.close(fd)
        self.master = -1
        self._blame_box()
        self.stopping.leader_ended()

    def _blame_box(self) -> None:
        """An agent that was killed with all that was in its container has no end of its own, even where one was written
        down: whether there was time for that is chance."""
        unseen = self.wait_status is None and not self.inside.box_lives
        if unseen or (self._box_died and self.wait_status in KILLED):
            self.wait_status = None
            self.error = self._why_box_ended() if self.stopping.intent is None else None

    def _why_box_ended(self) -> str:
        return why_ended(self.spec.engine, self.spec.container, self.spec.container_pid)

    def _why_lost(self) -> str | None:
        return self.error if self.stopping.intent is None else None


class Inside(Tree):
    """What the agent started, wherever it went in its container."""

    def __init__(self, container: str, first: int, started: int) -> None:
        super().__init__(ControlGroups([]))
        self._container, self._first, self._started = container.encode(), first, started

    @property
    def box_lives(self) -> bool:
        return process.is_running(self._first, self._started)

    def pids(self) -> list[int]:
        return [pid for pid in self._processes() if process.has_live_thread(pid) and _is_marked(pid)]

    def outside(self, inside: str) -> int | None:
        """The process that has the id ``inside`` in the container, as seen from here."""
        for pid in self._processes():
            try:
                lines = files.read_bytes(f"/proc/{pid}/status").splitlines()
            except OSError:
                continue
            ids = next((line.split()[1:] for line in lines if line.startswith(b"NSpid:")), [])
            if len(ids) > 1 and ids[-1] == inside.encode():
                return pid
        return None

    def _processes(self) -> list[int]:
        """Of its control group, or, where the engine cannot make any, of its first process' namespace."""
        namespace = _namespace(self._first) if self.box_lives else ""
        found = []
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                ours = self._container in files.read_bytes(f"/proc/{pid}/cgroup")
            except OSError:
                continue
            if ours or (namespace and _namespace(pid) == namespace):
                found.append(pid)
        return found


def _namespace(pid: int) -> str:
    """Empty for a process that is gone, or that is not ours to see."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def _is_marked(pid: int) -> bool:
    try:
        return MARK in files.read_bytes(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return False


def _comm(pid: int) -> str:
    try:
        return files.read_bytes(f"/proc/{pid}/comm").decode("utf-8", "replace")
    except OSError:
        return ""
