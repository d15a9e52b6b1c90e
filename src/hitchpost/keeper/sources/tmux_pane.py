"""The tmux runtime's side of the keeper: it runs in a pane, shows the agent's terminal there, and leaves it to a shell.

The pane is a client like others: it reads the log at its own offset, what is typed into it goes to the agent, and the
size belongs to it when it was typed into last. It answers the terminal queries, because tmux always does.
"""

from __future__ import annotations

import errno
import os
import select
import termios
import time
from _signal import SIGUSR1, pidfd_send_signal
from fcntl import ioctl

from hitchpost import wire
from hitchpost.keeper.clients import Client
from hitchpost.keeper.sources.pty import Pty
from hitchpost.model import run as runs
from hitchpost.runspec import PaneSource, RunSpec
from hitchpost.system import cgroup, process
from hitchpost.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.keeper.keeper import Keeper

READ_BYTES = 65536
MOST_BEHIND_BYTES = 1 << 20
SHOWN_AGAIN_BYTES = 1 << 16
LOSS_CHECK_S = 0.15
LOSS_GRACE_S = 1.0
ASK_S = 2.0
FAREWELL_S = 1.0
RESET = (
    b"\x1b\\\x1b]8;;\x1b\\\x1b[?1049l\x1b[?1;1000;1002;1003;1004;1006;2004l\x1b[?7;25h"
    b"\x1b7\x1b[r\x1b8\x1b[4l\x1b>\x1b(B\x0f\x1b[0 q\x1b[>4;0m\x1b[<u\x1b[0m"
)
"""What a program may have switched on, off again. The screen stays as it is."""


class TmuxPane(Pty):
    """The agent on a PTY below a tmux pane, which is its first client and has its terminal type."""

    answers_queries = True  # tmux does, and a second answer would be typed

    def start(self) -> dict[str, object]:
        keeper, spec = self.keeper, self.keeper.spec
        assert isinstance(spec.source, PaneSource)
        keeper.pane = pane = Pane(keeper, spec.source.tmux)
        cgroup.leave_foreign_group(pane.server_pid)
        term = os.environb.get(b"TERM", spec.env.get(b"TERM", b"screen"))
        cols, rows = pane.client.cols, pane.client.rows
        keeper.spec = replace(spec, env={**spec.env, b"TERM": term}, cols=cols, rows=rows)
        keeper.cols, keeper.rows = cols, rows
        keeper.control.own(pane.client)
        os.chdir(spec.folder)  # new panes and the shell begin where this process is
        return super().start()

    def why_lost(self) -> str | None:
        return None if self.keeper.pane is None else self.keeper.pane.why_lost()


open_source = TmuxPane


class Pane:
    def __init__(self, keeper: Keeper, tmux: str) -> None:
        self.keeper, self.tmux = keeper, tmux
        self.fd = os.open(os.ttyname(0), os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        self.server = os.pidfd_open(os.getppid())
        self.server_pid = os.getppid()
        self.lost = False
        self._why = ""
        self.client = Client(-1)
        self.client.greeted = self.client.attached = True
        self._before = termios.tcgetattr(0)
        self._offset = 0
        self._skipped = 0
        self._stuck = False
        self.client.cols, self.client.rows = self._size()
        _raw(0)
        keeper.watch(self.fd, self.on_event)

    def _size(self) -> tuple[int, int]:
        packed = ioctl(self.fd, termios.TIOCGWINSZ, bytes(8))
        return int.from_bytes(packed[2:4], "little"), int.from_bytes(packed[:2], "little")

    def resized(self) -> None:
        if not self.lost:
            self.client.cols, self.client.rows = self._size()
            if self.keeper.control.owner in (None, self.client):
                self.keeper.control.own(self.client)

    # what is typed and shown ------------------------------------------------------------------------------------

    def on_event(self, events: int) -> None:
        if events & select.EPOLLOUT:
            self.show()
        if events & select.EPOLLIN:
            try:
                typed = os.read(self.fd, READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                typed = b""
            if typed:
                self.keeper.control.typed_by(self.client, typed)
                self.keeper.type(typed)
                return
        if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
            self._lose()

    def show(self) -> None:
        """Write to the pane what the log has beyond what it shows, as far as it takes it now."""
        if self.lost:
            return
        log = self.keeper.log
        behind = log.end - self._offset
        if behind > MOST_BEHIND_BYTES:
            self._skipped += behind - SHOWN_AGAIN_BYTES
            self._offset = log.end - SHOWN_AGAIN_BYTES
        wants = not self._tell_skipped()
        while self._offset < log.end and not wants:
            start, data = log.read(self._offset, READ_BYTES)
            if not data:
                break
            written = self._write(data)
            self._offset = start + written
            if written < len(data):
                wants = not self.lost
                break
        if wants != self._stuck:
            self._stuck = wants
            self.keeper.poll.modify(self.fd, select.EPOLLIN | (select.EPOLLOUT if wants else 0))

    def _tell_skipped(self) -> bool:
        """Say what is not shown, as soon as the pane takes it. False when it does not take it now."""
        if not self._skipped:
            return True
        session = os.path.basename(self.keeper.spec.session_folder)
        told = f"[{self._skipped} bytes of output are not shown here; hitch logs {session} has them]"
        if self._write(b"\x1b\\\x1b[0m\r\n" + told.encode() + b"\r\n"):
            self._skipped = 0
        return not self._skipped or self.lost

    def _write(self, data: bytes) -> int:
        try:
            return os.write(self.fd, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            self._lose()
            return 0

    # losing it --------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """A socket that somebody unlinked is made again by the server itself, when it is asked to."""
        if not self.lost and not os.path.exists(os.path.join(self.keeper.spec.session_folder, wire.TMUX_SOCKET)):
            try:
                pidfd_send_signal(self.server, SIGUSR1)
            except OSError:
                return

    def _lose(self) -> None:
        """tmux has closed the pane. Why is known a moment later: a server that ends closes its panes first."""
        if self.lost:
            return
        self.lost = True
        self.keeper.unwatch(self.fd)
        self.keeper.control.pane_gone(self.client)
        self.keeper.timers.at("pane", time.monotonic() + LOSS_CHECK_S, self._say_why)
        self.keeper.lost(LOSS_GRACE_S)

    def _say_why(self, now: float) -> None:
        self._why = self._find_why()

    def why_lost(self) -> str | None:
        return None if not self.lost else self._why or self._find_why()

    def _find_why(self) -> str:
        """First the session is looked at, then its shell."""
        if self._server_is_gone():
            return runs.TMUX_GONE
        session = "$" + os.environ.get("TMUX", "").rpartition(",")[2]
        return runs.TMUX_GONE if self._ask("has-session", "-t", session) == 1 else runs.SHELL_GONE

    def _server_is_gone(self) -> bool:
        ends = select.poll()
        ends.register(self.server, select.POLLIN)
        return bool(ends.poll(0))

    def _ask(self, *words: str) -> int | None:
        """tmux's own word, by its exit code; None when it does not answer in time."""
        spec = self.keeper.spec
        argv = [self.tmux, "-S", os.path.join(spec.session_folder, wire.TMUX_SOCKET), *words]
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.chdir(spec.session_folder)
            argv[2] = wire.TMUX_SOCKET
            actions = [(os.POSIX_SPAWN_DUP2, null, number) for number in (0, 1, 2)]
            pid = os.posix_spawn(self.tmux, argv, {"LC_ALL": "C.UTF-8"}, file_actions=actions)
        except OSError:
            return None
        finally:
            os.fchdir(folder)
            os.close(null)
            os.close(folder)
        deadline = time.monotonic() + ASK_S
        while time.monotonic() < deadline:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.005)
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        return None

    # leaving it -------------------------------------------------------------------------------------------------

    def leave(self, words: str) -> None:
        """The run is over and written down; the pane is the user's now. Never returns where there is a shell."""
        self.farewell(words)
        self.close_with_us()
        for fd in (self.keeper.spec.lock_fd, *self.keeper.spec.lease_fds):
            os.close(fd)
        if not self.lost:
            self.become_shell()

    def close_with_us(self) -> None:
        """The pane goes when its process ends; until now it would have stayed, to show that it died."""
        if not self.lost:
            self._ask("set-option", "-p", "-t", os.environ.get("TMUX_PANE", ""), "remain-on-exit", "off")

    def farewell(self, words: str) -> None:
        """Show the last output and ``words``, and put the terminal back into the state that a shell expects."""
        deadline = time.monotonic() + FAREWELL_S
        ready = select.poll()
        ready.register(self.fd, select.POLLOUT)
        while not self.lost and self._offset < self.keeper.log.end and time.monotonic() < deadline:
            ready.poll(50)
            self.show()
        if not self.lost:
            self._write(RESET + f"\r\n[{words}]\r\n".encode())
            try:
                termios.tcsetattr(0, termios.TCSADRAIN, self._before)
            except termios.error:
                self.lost = True

    def become_shell(self) -> None:
        """Replace this process by the user's shell, in the workspace. Nothing of the run goes with it."""
        spec = self.keeper.spec
        process.become_subreaper(False)
        process.forget_signals()
        os.dup2(0, 2)
        env = shell_environment(spec)
        for shell in (env.get(b"SHELL", b"/bin/sh"), b"/bin/sh"):
            try:
                os.execve(shell, [os.path.basename(shell)], env)
            except OSError:
                continue


def shell_environment(spec: RunSpec) -> dict[bytes, bytes]:
    """The agent's environment, with the pane's own words and without the run's marks."""
    env = {name: text for name, text in spec.env.items() if name not in wire.MARKS}
    for name in (b"TMUX", b"TMUX_PANE", b"TERM"):
        if name in os.environb:
            env[name] = os.environb[name]
    socket, comma, rest = env.get(b"TMUX", b"").partition(b",")
    if comma and not socket.startswith(b"/"):
        env[b"TMUX"] = os.path.join(os.fsencode(spec.session_folder), socket) + comma + rest
    return env


def _raw(terminal: int) -> None:
    """Every byte as it is, in both directions."""
    attributes = termios.tcgetattr(terminal)
    attributes[0] &= ~(termios.BRKINT | termios.ICRNL | termios.INPCK | termios.ISTRIP | termios.IXON)
    attributes[0] &= ~(termios.INLCR | termios.IGNCR)
    attributes[1] &= ~termios.OPOST
    attributes[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)
