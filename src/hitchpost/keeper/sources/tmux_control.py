"""A program that is already running, in a pane of somebody's tmux: the keeper watches it, and is not its parent.

One tmux client in control mode brings the pane's output and takes what is typed. That the program lives and when it
ends is known from its pidfd; its exit status is known only when tmux still tells it, and tmux often does not.
"""

from __future__ import annotations

import os
import time
from _signal import SIGKILL

from hitchpost.keeper.sources import StartFailed
from hitchpost.keeper.sources.commands import Commands
from hitchpost.keeper.sources.pty import hides_input
from hitchpost.keeper.tree import Tree
from hitchpost.runspec import ControlSource
from hitchpost.system import process
from hitchpost.system.cgroup import ControlGroups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.keeper.keeper import Keeper

READ_BYTES = 65536
LAST_OUTPUT_S = 0.2
CLIENT_ENDS_S = 1.0


class TmuxControl:
    tier = "adopted"
    wait_status: int | None = None
    usage: object = None
    answers_queries = True  # tmux does

    def __init__(self, keeper: Keeper) -> None:
        assert isinstance(keeper.spec.source, ControlSource)
        self.keeper, self.spec = keeper, keeper.spec.source
        self.pid = 0
        self.tree: Tree = Watched(0)
        self.input_fd = -1
        self._line = b""

    def start(self) -> dict[str, object]:
        pid = self.spec.pid
        self._pidfd = os.pidfd_open(pid)
        self.pid, self.tree = pid, Watched(pid)
        if process.start_time(pid) != self.spec.start:
            raise StartFailed("the program in the pane has ended")
        control = self._open_client()
        self._commands = Commands(self.keeper, control)
        self._commands.pane = self.spec.pane
        self.input_fd = self._commands.input_fd
        return {"socket": self.spec.socket, "pane": self.spec.pane}

    def listen(self) -> None:
        self.keeper.watch(self._pidfd, self._on_end)
        self.keeper.watch(self._said, self._on_said)
        self._commands.listen()
        if self.keeper.spec.takes_over:
            self.keeper.log.miss()
        self.keeper.on_output(self.spec.screen.encode())

    def _open_client(self) -> int:
        """Start the client that brings the output. Where it takes commands."""
        said, said_end = os.pipe()
        told, told_end = os.pipe()
        spec = self.spec
        argv = [spec.tmux, "-S", spec.socket, "-C", "attach-session", "-f", "ignore-size", "-t", spec.pane]
        actions = [(os.POSIX_SPAWN_DUP2, told, 0), (os.POSIX_SPAWN_DUP2, said_end, 1)]
        self._client = os.posix_spawn(spec.tmux, argv, {"LC_ALL": "C.UTF-8"}, file_actions=actions)
        os.close(told)
        os.close(said_end)
        for fd in (said, told_end):
            os.set_blocking(fd, False)
        self._said = said
        return told_end

    def _on_said(self, events: int) -> None:
        try:
            said = os.read(self._said, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if not said:
            self.keeper.unwatch(self._said)
            return
        *lines, self._line = (self._line + said).split(b"\n")
        beginning = b"%output " + self.spec.pane.encode() + b" "
        output = b"".join(unescaped(line[len(beginning) :]) for line in lines if line.startswith(beginning))
        if output:
            self.keeper.on_output(output)

    def _on_end(self, events: int) -> None:
        self.keeper.unwatch(self._pidfd)
        self.keeper.agent_exited()
        self.keeper.timers.at("drain", time.monotonic() + LAST_OUTPUT_S, self._drained)

    def _drained(self, now: float) -> None:
        self.keeper.unwatch(self._said)
        os.close(self._said)
        self.input_fd = -1
        self._end_client()
        self.keeper.output_closed()

    def _end_client(self) -> None:
        os.close(self._commands.control)
        deadline = time.monotonic() + CLIENT_ENDS_S
        while time.monotonic() < deadline:
            try:
                if os.waitpid(self._client, os.WNOHANG)[0]:
                    return
            except ChildProcessError:
                return
            time.sleep(0.01)
        process.send(self._client, SIGKILL)

    def want_room(self, wanted: bool) -> None:
        """Who empties our pipe types on."""

    def reads_lines(self) -> bool:
        return False

    def hides_input(self) -> bool:
        """Its terminal is looked up each time, and not kept open: its end would be noticed too late."""
        number = process.terminal(self.pid)
        try:
            terminal = os.open(f"/dev/pts/{os.minor(number)}", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return os.fstat(terminal).st_rdev == number and hides_input(terminal)
        finally:
            os.close(terminal)

    def unread_bytes(self) -> int:
        return self._commands.unread_bytes()

    def set_size(self, cols: int, rows: int) -> bool:
        return False  # it is tmux's

    def reap(self) -> None:
        reap_all()

    def why_lost(self) -> str | None:
        return None

    def oom_kills(self) -> int:
        return 0

    def release(self) -> None:
        """Nothing holds the program but its own tmux."""


open_source = TmuxControl


class Watched(Tree):
    """A program that is not ours, and what is below it now. Who left its tree cannot be found."""

    def __init__(self, pid: int) -> None:
        super().__init__(ControlGroups([]))
        self.pid, self.started = pid, process.start_time(pid)

    def pids(self) -> list[int]:
        if not process.has_live_thread(self.pid) or process.start_time(self.pid) != self.started:
            return []
        return [self.pid, *process.below(self.pid)]


def reap_all() -> None:
    """Helpers of ours, and none of them the agent."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def unescaped(text: bytes) -> bytes:
    """tmux writes a backslash and what is below a space as a backslash and three octal digits."""
    first, *rest = text.split(b"\\")
    return first + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in rest)
