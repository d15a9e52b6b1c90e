"""A keeper for a program that is already running, in a pane of somebody's tmux: it watches, and is not its parent.

One tmux client in control mode brings the pane's output and takes what is typed. That the program lives and when it
ends is known from its pidfd; its exit status is known only when tmux still tells it, and tmux often does not.
"""

from __future__ import annotations

import os
import select
import time
from _signal import SIGKILL

from hitchpost.keeper.agent import StartFailed
from hitchpost.keeper.keeper import DRAIN_S, Keeper
from hitchpost.keeper.tree import Tree
from hitchpost.keeper.typing_queue import TypingQueue
from hitchpost.system import cgroup, process

READ_BYTES = 65536
KEYS_AT_ONCE = 512
LAST_OUTPUT_S = 0.2


class Adopted(Keeper):
    control = -1
    pidfd = -1
    _waiting = b""

    def start(self) -> None:
        spec = self.spec
        self.prepare()
        self.watch(spec.adopt_pid)
        if process.start_time(self.pid) != spec.adopt_start:
            raise StartFailed("the program in the pane has ended")
        self._open_control()
        self.take_keys()
        self.begin("adopted", "adopted while it runs", {"pid": self.pid})
        if spec.takes_over:
            self.log.miss()
        self._on_output(spec.adopt_screen.encode())

    def watch(self, pid: int) -> None:
        self.pid = pid
        self.tree = Watched(pid)
        self._usage = None  # type: ignore[assignment]
        self.pidfd = os.pidfd_open(pid)
        self.poll.register(self.pidfd, select.EPOLLIN)

    def take_keys(self) -> None:
        """What is typed goes through a pipe of our own: tmux takes it in commands."""
        self._keys, self.slave = os.pipe()
        for fd in (self._keys, self.slave):
            os.set_blocking(fd, False)
        self.typing = TypingQueue(self.slave)
        self.poll.register(self._keys, select.EPOLLIN)

    def _open_control(self) -> None:
        """Start the client that brings the output; ``master`` is what it says, ``control`` what it is told."""
        spec = self.spec
        said, said_end = os.pipe()
        told, told_end = os.pipe()
        argv = [spec.tmux, "-S", spec.adopt_socket, "-C", "attach-session", "-f", "ignore-size", "-t", spec.adopt_pane]
        actions = [(os.POSIX_SPAWN_DUP2, told, 0), (os.POSIX_SPAWN_DUP2, said_end, 1)]
        self._client = os.posix_spawn(spec.tmux, argv, {"LC_ALL": "C.UTF-8"}, file_actions=actions)
        os.close(told)
        os.close(said_end)
        self.master, self.control = said, told_end
        self._line = b""
        for fd in (said, told_end):
            os.set_blocking(fd, False)
        self.poll.register(self.master, select.EPOLLIN)

    def other_event(self, fd: int) -> None:
        if fd == self.pidfd:
            self.poll.unregister(self.pidfd)
            self.wait_status = None
            self.note_end()
            self.timers.at("drain", time.monotonic() + LAST_OUTPUT_S, self._drained)
        else:
            self.on_keys(fd)

    def on_keys(self, fd: int) -> None:
        """Something was typed, or tmux takes commands again."""
        if fd == self._keys:
            typed = os.read(self._keys, KEYS_AT_ONCE)
            self.command(f"send-keys -t {self.spec.adopt_pane} -H " + " ".join(f"{byte:02x}" for byte in typed))
            self.type()
        elif fd == self.control:
            self.poll.unregister(self.control)
            self.poll.register(self._keys, select.EPOLLIN)
            waiting, self._waiting = self._waiting, b""
            self._write(waiting)

    def wait_for_room(self, wanted: bool) -> None:
        """Who empties our pipe types on."""

    def command(self, line: str) -> None:
        self._write(line.encode() + b"\n")

    def _write(self, commands: bytes) -> None:
        """Nothing more is taken from who types while tmux does not take this. A line is written whole, or not."""
        if self._waiting:
            self._waiting += commands
            return
        try:
            os.write(self.control, commands)
        except BlockingIOError:
            self._waiting = commands
            self.poll.unregister(self._keys)
            self.poll.register(self.control, select.EPOLLOUT)
        except OSError:
            return  # the client is gone: the program's end tells the rest

    def _on_terminal(self, events: int) -> None:
        try:
            said = os.read(self.master, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if not said:
            self.poll.unregister(self.master)
            return
        *lines, self._line = (self._line + said).split(b"\n")
        beginning = b"%output " + self.spec.adopt_pane.encode() + b" "
        output = b"".join(unescaped(line[len(beginning) :]) for line in lines if line.startswith(beginning))
        if output:
            self._on_output(output)

    def answer(self, body: bytes) -> None:
        """tmux answers the program's queries itself."""

    @property
    def tmux_answers(self) -> bool:
        return True

    @property
    def reads_lines(self) -> bool:
        return False

    def resize(self, cols: int, rows: int) -> None:
        """The size is tmux's."""

    def reap(self) -> None:
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    return
            except ChildProcessError:
                return

    def _drained(self, now: float) -> None:
        self.timers.cancel("folder", "activity")
        os.close(self.master)
        self.master = -1
        self._end_client()
        self.stopping.leader_ended()

    def _end_client(self) -> None:
        os.close(self.control)
        deadline = time.monotonic() + DRAIN_S
        while time.monotonic() < deadline:
            try:
                if os.waitpid(self._client, os.WNOHANG)[0]:
                    return
            except ChildProcessError:
                return
            time.sleep(0.01)
        process.send(self._client, SIGKILL)


class Watched(Tree):
    """A program that is not ours, and what is below it now. Who left its tree cannot be found."""

    def __init__(self, pid: int) -> None:
        super().__init__(cgroup.ControlGroups([]))
        self.pid, self.started = pid, process.start_time(pid)

    def pids(self) -> list[int]:
        if not process.has_live_thread(self.pid) or process.start_time(self.pid) != self.started:
            return []
        return [self.pid, *process.below(self.pid)]


def unescaped(text: bytes) -> bytes:
    """tmux writes a backslash and what is below a space as a backslash and three octal digits."""
    first, *rest = text.split(b"\\")
    return first + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in rest)
