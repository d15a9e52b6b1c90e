"""The agent on a PTY of the keeper's own: a session leader, in exactly the folder that was meant."""

from __future__ import annotations

import errno
import fcntl
import os
import resource  # noqa: F401 — wait4 imports it when first called; a failure then would lose the agent's exit status
import select
import termios
import time
from _signal import SIGKILL

from hitchpost.keeper.sources import StartFailed
from hitchpost.keeper.tree import Tree
from hitchpost.runspec import RunSpec
from hitchpost.store import process_marks
from hitchpost.system import cgroup, process
from hitchpost.system.cgroup import ControlGroups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.keeper.keeper import Keeper

CHUNK_BYTES = 4095
"""The most that the kernel gives of a terminal at once. After less, there was no more."""
READS_PER_TURN = 32
DRAIN_S = 1.0
IUTF8 = 0o40000
OOM_SCORE = b"300"


class Pty:
    tier = ""
    input_fd = -1
    answers_queries = False

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.pid = 0
        self.wait_status: int | None = None
        self.usage: object = None
        self.tree = Tree(ControlGroups([]))
        self._slave = -1

    def start(self) -> dict[str, object]:
        spec = self.keeper.spec
        name = process_marks.group_name(spec.session_folder, spec.run)
        groups = cgroup.build(name, spec.pids_max, spec.memory_max_bytes)
        self.tree, self.tier = Tree(groups), groups.tier
        try:
            self.pid, self.input_fd, self._slave = start_agent(spec, groups)
        except BaseException:
            groups.remove()
            raise
        return {}

    def listen(self) -> None:
        self.keeper.watch(self.input_fd, self._on_event)

    def _on_event(self, events: int) -> None:
        if events & select.EPOLLOUT:
            self.keeper.type()
        if not events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
            return
        parts = []
        over = False
        for _ in range(READS_PER_TURN):
            try:
                part = os.read(self.input_fd, CHUNK_BYTES)
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
            if len(part) < CHUNK_BYTES:
                break
        if parts:
            self.keeper.on_output(parts[0] if len(parts) == 1 else b"".join(parts))
        if over:
            self._hung_up()

    def want_room(self, wanted: bool) -> None:
        self.keeper.poll.modify(self.input_fd, select.EPOLLIN | (select.EPOLLOUT if wanted else 0))

    def reads_lines(self) -> bool:
        return bool(termios.tcgetattr(self.input_fd)[3] & termios.ICANON)

    def hides_input(self) -> bool:
        return hides_input(self.input_fd)

    def unread_bytes(self) -> int:
        return unread_bytes(self._slave) if self._slave >= 0 else 0

    def set_size(self, cols: int, rows: int) -> bool:
        if self.input_fd >= 0:
            set_size(self.input_fd, cols, rows)
        return self.input_fd >= 0

    def reap(self) -> None:
        """The agent's status is kept, those of its orphans are nobody's."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.pid and self.wait_status is None:
                self.wait_status, self.usage = status, usage
                self.keeper.agent_exited()
                os.close(self._slave)
                self._slave = -1
                self.keeper.timers.at("drain", time.monotonic() + DRAIN_S, self._drained)

    def _drained(self, now: float) -> None:
        """The agent is gone and its terminal was not hung up: a survivor holds it open. Its last words are in."""
        self._on_event(select.EPOLLIN)
        self._hung_up()

    def _hung_up(self) -> None:
        """The agent is gone and nobody has its terminal open: everything that was written to it has been read."""
        if self.input_fd >= 0:
            self.keeper.unwatch(self.input_fd)
            os.close(self.input_fd)
            self.input_fd = -1
            self.keeper.timers.cancel("drain")
            self.keeper.output_closed()

    def why_lost(self) -> str | None:
        return None

    def oom_kills(self) -> int:
        return self.tree.groups.oom_kills()

    def release(self) -> None:
        self.tree.groups.remove()


open_source = Pty


def set_size(fd: int, cols: int, rows: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, rows.to_bytes(2, "little") + cols.to_bytes(2, "little") + bytes(4))


def unread_bytes(slave: int) -> int:
    """What a terminal holds for who reads it.

    The kernel hands over what was typed a while after the write, later where much else runs. A poll waits for that.
    """
    terminal = select.poll()
    terminal.register(slave, select.POLLIN)
    terminal.poll(0)
    return int.from_bytes(fcntl.ioctl(slave, termios.FIONREAD, bytes(4)), "little")


def hides_input(terminal: int) -> bool:
    """Lines without echo. What takes the whole screen has no echo either, but reads every key."""
    try:
        modes = termios.tcgetattr(terminal)[3]
    except termios.error:
        return False
    return bool(modes & termios.ICANON) and not modes & termios.ECHO


def open_folder(spec: RunSpec) -> int:
    """The working folder, opened, and checked to be the one that was meant."""
    try:
        fd = os.open(spec.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.stat(os.path.join(spec.folder, "."))  # a folder that may be read and not entered
    except OSError as error:
        raise StartFailed(f"cannot enter the folder {spec.folder}: {os.strerror(error.errno or 0)}") from None
    here = os.fstat(fd)
    if (here.st_dev, here.st_ino) != (spec.folder_dev, spec.folder_ino):
        os.close(fd)
        raise StartFailed(f"{spec.folder} is not the folder that the session was created in")
    return fd


def start_agent(spec: RunSpec, groups: ControlGroups) -> tuple[int, int, int]:
    """Start the agent. Returns its pid, the PTY's master side, which does not block, and its slave side.

    While the slave side stays open here, an agent that closes its terminal for a while does not lose it.
    """
    folder = open_folder(spec)
    master, slave = os.openpty()
    report, result = os.pipe()
    try:
        attributes = termios.tcgetattr(slave)
        attributes[0] |= IUTF8
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        set_size(master, spec.cols, spec.rows)
        keeper = os.getpid()
        pid = os.fork()
        if pid == 0:
            _become_agent(spec, groups, keeper, folder, slave, result)
        os.close(result)
        result = -1
        failure = os.read(report, 16)
        if failure:
            os.waitpid(pid, 0)
            raise StartFailed(_failure_text(spec, int(failure)))
    except BaseException:
        os.close(master)
        os.close(slave)
        raise
    finally:
        for fd in (folder, report, result):
            if fd >= 0:
                os.close(fd)
    os.set_blocking(master, False)
    return pid, master, slave


def _become_agent(spec: RunSpec, groups: ControlGroups, keeper: int, folder: int, slave: int, result: int) -> None:
    """In the child: never returns."""
    try:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for fd in (0, 1, 2):
            os.dup2(slave, fd)
        groups.enter()
        _prefer_for_oom()
        process.die_with_parent(SIGKILL)
        if os.getppid() != keeper:
            os._exit(127)
        process.forget_signals()
        os.fchdir(folder)
        _exec(spec)
    except OSError as error:
        os.write(result, str(error.errno).encode())
    finally:
        os._exit(127)


def _prefer_for_oom() -> None:
    """When memory runs out, the kernel takes an agent before it takes a keeper."""
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(fd, OOM_SCORE)
        os.close(fd)
    except OSError:
        return


def _exec(spec: RunSpec) -> None:
    """Replace this process. Raises ``OSError`` with the most telling reason when no candidate could be executed."""
    program = spec.argv[0]
    if b"/" in program:
        os.execve(program, spec.argv, spec.env)
    telling = OSError(errno.ENOENT, "")
    for place in spec.env.get(b"PATH", b"/usr/local/bin:/usr/bin:/bin").split(b":"):
        try:
            os.execve(os.path.join(place or b".", program), spec.argv, spec.env)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                telling = error
    raise telling


def _failure_text(spec: RunSpec, number: int) -> str:
    program = os.fsdecode(spec.argv[0])
    if number == errno.ENOENT:
        if "/" in program and os.path.isfile(os.path.join(spec.folder, program)):
            return f"the interpreter named in the first line was not found: {program}"
        where = "" if "/" in program else " on PATH"
        return f"program not found{where}: {program}"
    if number == errno.EACCES:
        return f"program is not executable: {program}"
    if number == errno.ENOEXEC:
        return f"program has no executable format (is the first line #!… missing?): {program}"
    return f"cannot execute {program}: {os.strerror(number)}"
