"""An agent in a container. The container is on this machine, so its processes are ours to see.

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
from hitchpost.keeper.sources import StartFailed
from hitchpost.keeper.sources.commands import Commands
from hitchpost.keeper.sources.container_end import why_ended
from hitchpost.keeper.sources.tmux_control import reap_all
from hitchpost.keeper.tree import Tree
from hitchpost.model import run as runs
from hitchpost.runspec import ContainerSource
from hitchpost.store import runfiles
from hitchpost.system import process
from hitchpost.system.cgroup import ControlGroups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.keeper.keeper import Keeper

READ_BYTES = 65536
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


class Container:
    tier = "container"
    usage: object = None
    answers_queries = True  # the tmux inside does

    def __init__(self, keeper: Keeper) -> None:
        assert isinstance(keeper.spec.source, ContainerSource)
        self.keeper, self.spec = keeper, keeper.spec.source
        self.pid = 0
        self.wait_status: int | None = None
        self.tree = self.inside = Inside(self.spec.id, self.spec.first_pid, self.spec.first_start)
        self.input_fd = -1
        self._pane = self.spec.pane
        self._pidfd = self._server_pidfd = -1
        self._error: str | None = None
        self._ended_at = 0.0
        self._hung_up = False
        self._container_died = False
        self._waiter = runfiles.Process(0, 0)
        self._pipe_pause_s = 0.1
        self._pipe_due = 0.0

    # starting ---------------------------------------------------------------------------------------------------

    def start(self) -> dict[str, object]:
        self._folder = os.open(self.spec.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._output = self._open_pipe("out", os.O_RDONLY)
        control = self._open_pipe("keys", os.O_RDWR)  # open for reading too: it is never without a reader
        self._commands = Commands(self.keeper, control)
        if self.keeper.spec.takes_over:
            self._find_again()
        else:
            self._find_agent()
        self._commands.pane = self._pane
        self.input_fd = self._commands.input_fd
        return {"place": os.path.basename(self.spec.folder), "pane": self._pane}

    def listen(self) -> None:
        self._commands.listen()
        for fd, handler in ((self._pidfd, self._on_end), (self._server_pidfd, self._on_server_end)):
            if fd >= 0:
                self.keeper.watch(fd, handler)
        if self._ended_at:
            self.keeper.agent_exited()
            self.keeper.timers.at("status", self._ended_at, self._wait_for_status)
        if self.keeper.spec.takes_over:
            self._listen_again()
        else:
            self.keeper.watch(self._output, self._on_output)

    def _find_again(self) -> None:
        """Watch the agent of a keeper that is gone."""
        pid = self.spec.pid
        if process.start_time(pid) != self.spec.start or not self._watch(pid):
            raise StartFailed("the agent has ended")
        if not _comm(process.parent(process.parent(pid))).startswith("tmux"):
            raise StartFailed("its tmux is gone, so it can no longer be reached")

    def _listen_again(self) -> None:
        """Who brought the output to a keeper that is gone may have ended with it, then it is brought again."""
        os.close(self._open_pipe("out", os.O_WRONLY))  # from now on the kernel tells whether somebody has it open
        if self._has_writer():
            self.keeper.log.miss()
            self.keeper.watch(self._output, self._on_output)
        else:
            self._hung_up = True
            self._pipe_again(time.monotonic())

    def _open_pipe(self, name: str, how: int) -> int:
        fd = os.open(name, how | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder)
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            raise StartFailed(f"{name} in {self.spec.folder} is no longer a pipe")
        return fd

    def _find_agent(self) -> None:
        """Wait until the agent runs, and watch it; one that has ended by then is as good. Raises ``StartFailed``."""
        deadline = time.monotonic() + START_S
        container_ended = ""
        while time.monotonic() < deadline:
            if why := self._said("failed"):
                raise StartFailed(why.strip())
            if not container_ended and not self.inside.container_runs:
                container_ended = self._why_container_ended()
                deadline = time.monotonic() + LAST_WORD_S  # who started it may know more
            self._let_go()
            inside = self._said("pid").strip()
            if inside and self._watch_inside(inside):
                return
            if (status := runfiles.status_of(self._said("exit_status"))) is not None:
                self.wait_status, self._ended_at = status, time.monotonic()
                return
            time.sleep(ROUND_S)
        raise StartFailed(container_ended or f"the agent did not start within {START_S:g} s")

    def _let_go(self) -> None:
        """tmux is ready, and so are we: now the agent may begin. One whose keeper has given up never does."""
        pane = self._said("ready").strip()
        if self._pane or not (pane.startswith("%") and pane[1:].isdigit()):
            return
        try:
            fd = os.open("go", os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder)
        except OSError:
            return  # nobody reads it yet
        self._pane = pane
        os.write(fd, b"\n")
        os.close(fd)

    def _watch_inside(self, inside: str) -> bool:
        """Whether the process was still there. Its grandparent is tmux: between the two is who waits for its end."""
        pid = self.inside.outside(inside)
        return pid is not None and self._watch(pid)

    def _watch(self, pid: int) -> bool:
        waiter = process.parent(pid)
        server = process.parent(waiter)
        if not server:
            return False
        self._waiter = runfiles.Process(waiter, process.start_time(waiter) or 0)
        try:
            self._server_pidfd = os.pidfd_open(server)
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        self.pid = pid
        return True

    def _said(self, name: str) -> str:
        """A small file from inside; empty while it is not there, is not written to its end, or is something else."""
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._folder)
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

    def _on_output(self, events: int) -> None:
        try:
            data = os.read(self._output, READ_BYTES)
        except BlockingIOError:
            return
        if data:
            self.keeper.on_output(data)
        else:
            self.keeper.unwatch(self._output)
            self._hung_up = True
            self._pipe_again(time.monotonic())

    def _pipe_again(self, now: float) -> None:
        """Who brings the output has ended inside, and the agent lives: tmux starts it again."""
        if self._ended_at or not process.has_live_thread(self.pid):
            return
        if self._has_writer():
            self.keeper.log.miss()
            self._hung_up = False
            self.keeper.watch(self._output, self._on_output)
            return
        if not self._commands.waiting and now >= self._pipe_due:
            self._pipe_due = now + PIPE_PATIENCE_S  # a second one would draw the screen a second time
            out = f"{wire.SHARED}/{os.path.basename(self.spec.folder)}/out"
            follow = f"exec sh {wire.PROGRAMS}/follow.sh {self._pane} >{out}"
            self._commands.send(f"pipe-pane -t {self._pane} '{follow}'")
        self._pipe_pause_s = min(2 * self._pipe_pause_s, LONGEST_PIPE_PAUSE_S)
        self.keeper.timers.at("pipe", now + self._pipe_pause_s, self._pipe_again)

    def _has_writer(self) -> bool:
        """Whether somebody has the pipe open for writing: the kernel says when nobody has."""
        pipe = select.poll()
        pipe.register(self._output, select.POLLIN)
        return not any(events & select.POLLHUP for _, events in pipe.poll(0))

    def want_room(self, wanted: bool) -> None:
        """Who empties our pipe types on."""

    def reads_lines(self) -> bool:
        return False

    def hides_input(self) -> bool:
        return False  # its terminal is inside

    def unread_bytes(self) -> int:
        return self._commands.unread_bytes()

    def set_size(self, cols: int, rows: int) -> bool:
        if self.input_fd >= 0:
            self._commands.send(f"resize-window -t {self._pane} -x {cols} -y {rows}")
        return self.input_fd >= 0

    def reap(self) -> None:
        reap_all()

    # ending -----------------------------------------------------------------------------------------------------

    def _on_end(self, events: int) -> None:
        self.keeper.unwatch(self._pidfd)
        self.keeper.agent_exited()
        self._ended_at = time.monotonic()
        self._container_died = not self.inside.container_runs
        self._wait_for_status(self._ended_at)

    def _on_server_end(self, events: int) -> None:
        self.keeper.unwatch(self._server_pidfd)
        if process.has_live_thread(self.pid) and self.inside.container_runs:
            self._error = runs.TMUX_GONE
            self.keeper.lost(self.keeper.spec.grace_s)

    def _wait_for_status(self, now: float) -> None:
        """The agent's parent inside writes how it ended, and its last output comes: both a moment after its end."""
        container_runs = self.inside.container_runs
        # first this, then the file: nobody else writes it
        waited_for = process.is_running(self._waiter.pid, self._waiter.start)
        if self.wait_status is None:
            self.wait_status = runfiles.status_of(self._said("exit_status"))
        known = self.wait_status is not None or not waited_for
        patience_s = STATUS_S if not known else LAST_OUTPUT_S if container_runs or self.wait_status is not None else 0.0
        if not (known and self._hung_up) and now - self._ended_at < patience_s:
            self.keeper.timers.at("status", now + ROUND_S, self._wait_for_status)
        else:
            self._drained()

    def _drained(self) -> None:
        self.keeper.timers.cancel("pipe")
        self.keeper.unwatch(self._output)
        try:
            if data := os.read(self._output, READ_BYTES):
                self.keeper.on_output(data)
        except BlockingIOError:
            pass
        if self._error is None and self._said(wire.HUNG_UP):
            self._error = runs.TMUX_GONE
        for fd in (self._output, self._commands.control, self._folder):
            os.close(fd)
        self.input_fd = -1
        self._blame_container()
        self.keeper.output_closed()

    def _blame_container(self) -> None:
        """An agent that was killed with all that was in its container has no end of its own, even where one was written
        down: whether there was time for that is chance."""
        unseen = self.wait_status is None and not self.inside.container_runs
        if unseen or (self._container_died and self.wait_status in KILLED):
            self.wait_status = None
            self._error = self._why_container_ended() if self.keeper.run.intent is None else None

    def _why_container_ended(self) -> str:
        return why_ended(self.spec.engine, self.spec.id, self.spec.first_pid)

    def why_lost(self) -> str | None:
        return self._error

    def oom_kills(self) -> int:
        return 0

    def release(self) -> None:
        """The container stays: the next run goes on in it."""


open_source = Container


class Inside(Tree):
    """What the agent started, wherever it went in its container."""

    def __init__(self, container: str, first: int, started: int) -> None:
        super().__init__(ControlGroups([]))
        self._container, self._first, self._started = container.encode(), first, started

    @property
    def container_runs(self) -> bool:
        return process.is_running(self._first, self._started)

    def pids(self) -> list[int]:
        return [pid for pid in self._processes() if process.has_live_thread(pid) and _is_marked(pid)]

    def outside(self, inside: str) -> int | None:
        """The process that has the id ``inside`` in the container, as seen from here."""
        for pid in self._processes():
            try:
                lines = process.read(f"/proc/{pid}/status").splitlines()
            except OSError:
                continue
            ids = next((line.split()[1:] for line in lines if line.startswith(b"NSpid:")), [])
            if len(ids) > 1 and ids[-1] == inside.encode():
                return pid
        return None

    def _processes(self) -> list[int]:
        """Of its control group, or, where the engine cannot make any, of its first process' namespace."""
        namespace = _namespace(self._first) if self.container_runs else ""
        found = []
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                ours = self._container in process.read(f"/proc/{pid}/cgroup")
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
        return MARK in process.read(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return False


def _comm(pid: int) -> str:
    try:
        return process.read(f"/proc/{pid}/comm").decode("utf-8", "replace")
    except OSError:
        return ""
