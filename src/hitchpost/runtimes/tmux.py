"""The tmux runtime: the keeper runs in a pane of a tmux server that belongs to this session alone.

No text of a user reaches an argument that tmux expands: names and targets are ours, folders are entered by the
keeper, and the environment goes through an anonymous file. The socket is named relative to the session's folder, so
no home is too long for it.
"""

from __future__ import annotations

import _signal
import os
import time
from _socket import AF_UNIX, SO_PEERCRED, SOCK_STREAM, SOL_SOCKET, socket

from hitchpost import wire
from hitchpost.errors import HitchpostError, Refused, RuntimeMissing
from hitchpost.model import run as runs
from hitchpost.runspec import PaneSource, RunSpec
from hitchpost.runtimes import keepers, local
from hitchpost.runtimes.base import Health, OwnClient, Sandbox, Started
from hitchpost.store import files
from hitchpost.store.home import run_folder
from hitchpost.store.runfiles import read_run
from hitchpost.system import process
from hitchpost.system.programs import absolute
from hitchpost.system.readable import readable
from hitchpost.system.shortpath import ShortPath
from hitchpost.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subprocess import CompletedProcess

OLDEST = (3, 2)
ANSWER_S = 5.0
ARRIVAL_S = 20.0
LEAVE_S = 2.0
NAME = "agent"
PASSED_ON = ("PATH", "HOME", "SHELL", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TMUX_TMPDIR")
CONFIGURATION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tmux.conf")


class TmuxSilent(HitchpostError):
    """Raised when tmux does not answer in time."""

    http_status = 503
    code = "busy"


class Tmux(local.Local):
    name = "tmux"
    has_own_screen = True

    def check(self, session_folder: str = "") -> None:
        program()

    def start(self, spec: RunSpec, sandbox: Sandbox | None = None) -> Started:
        folder = run_folder(spec.session_folder, spec.run)
        try:
            tmux = program()
        except RuntimeMissing as error:
            return Started(None, str(error))
        ready, ready_write = os.pipe()
        written = os.memfd_create("hitchpost-spec")
        waiting = _listen(folder)
        try:
            files.write_all(written, replace(spec, source=PaneSource(tmux)).to_bytes())
            handed = (written, spec.lock_fd, ready_write, *spec.lease_fds)
            wrong = _open_pane(spec, folder) or _hand_over(waiting, handed)
            if wrong is not None:
                return Started(None, wrong)
        except TmuxSilent as silent:
            return Started(None, str(silent))
        finally:
            waiting.close()
            files.discard(os.path.join(folder, wire.START_SOCKET))
            os.close(written)
            os.close(ready_write)
        try:
            return local.answer(ready, folder)
        finally:
            os.close(ready)

    def health(self, session_folder: str, run: int, *, session: str) -> Health:
        """The session is looked at first, then its shell. Nothing is forked: a connection tells of the server."""
        seen = super().health(session_folder, run, session=session)
        if seen.keeper_alive is not False:
            return seen
        is_open = server_pid(session_folder) is not None
        return replace(seen, lost=runs.SHELL_GONE if is_open else runs.TMUX_GONE)

    def attach_command(self, session_folder: str, run: int, read_only: bool) -> OwnClient | None:
        """tmux's own client. Its server is asked first: a stopped one would hang the client."""
        if server_pid(session_folder) is None:
            return None
        try:
            ask(session_folder, "list-sessions")
        except TmuxSilent as silent:
            raise Refused(str(silent)) from None
        argv = (program(), "-u", "-S", wire.TMUX_SOCKET, "attach-session", *(("-r",) if read_only else ()))
        return OwnClient(argv, client_environment(session_folder))

    def explain(self, session_folder: str, run: int, *, over: bool) -> list[tuple[str, str, str]]:
        """Session, shell and command, each looked at on its own, in this order."""
        server = server_pid(session_folder)
        written = read_run(run_folder(session_folder, run))
        alive = written is not None and written.keeper is not None and written.keeper.is_alive
        who = "the user's own now" if over else "the keeper"
        return [
            ("tmux session", f"open (server {server})" if server else "closed", wire.TMUX_SOCKET),
            ("shell", f"running ({who})" if alive else "exited", f"runs/{run}/{wire.RUN}"),
        ]

    def tear_down(self, session_folder: str) -> None:
        self.clear_away(session_folder)

    def clear_away(self, session_folder: str) -> None:
        """End the session's tmux server and everything in its panes."""

        pid = server_pid(session_folder)
        if pid is None:
            return
        below = process.below(pid)
        starts = {member: process.start_time(member) for member in (*below, pid)}
        try:
            ask(session_folder, "kill-server")
        except HitchpostError:
            process.send(pid, _signal.SIGKILL)
        deadline = time.monotonic() + LEAVE_S
        while left := [member for member, start in starts.items() if _is_there(member, start)]:
            if time.monotonic() > deadline:
                for member in left:
                    process.send(member, _signal.SIGKILL)
                return
            time.sleep(0.01)


def _is_there(pid: int, start: int | None) -> bool:
    return process.has_live_thread(pid) and process.start_time(pid) == start


def program() -> str:
    """The path of tmux. Raises ``RuntimeMissing`` when there is none, or one that is too old."""
    import shutil
    import subprocess

    path = shutil.which("tmux", path=absolute(os.environ.get("PATH", os.defpath)))
    if path is None:
        raise RuntimeMissing("tmux is not installed", "install the package tmux, or use the local runtime")
    try:
        said = subprocess.run([path, "-V"], capture_output=True, text=True, timeout=ANSWER_S, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeMissing(f"{path} cannot be used: {error}") from None
    version = version_of(said)
    if version is not None and version < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise RuntimeMissing(f"{said.strip()} is too old", f"{wanted} or newer is needed, or use the local runtime")
    return path


def version_of(said: str) -> tuple[int, int] | None:
    """(3, 3) of ``tmux 3.3a``; None where no number is told (``tmux master``)."""
    number = said.split()[-1].removeprefix("next-") if said.split() else ""
    major, dot, rest = number.partition(".")
    minor = "".join(letter for letter in rest if letter.isdigit())
    return (int(major), int(minor)) if dot and major.isdigit() and minor else None


def server_pid(session_folder: str) -> int | None:
    """The process that listens at the session's tmux socket; None when nobody does."""
    sock = socket(AF_UNIX, SOCK_STREAM)
    sock.settimeout(ANSWER_S)
    try:
        with ShortPath(session_folder, wire.TMUX_SOCKET) as path:
            sock.connect(path)
        credentials = sock.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)
    except OSError:
        return None
    finally:
        sock.close()
    return int.from_bytes(credentials[:4], "little")


def ask(session_folder: str, *words: str) -> CompletedProcess[str]:
    """tmux's answer. Raises ``TmuxSilent`` when it takes too long: a stopped server would hang the call."""
    import subprocess

    argv = [program(), "-S", wire.TMUX_SOCKET, "-f", CONFIGURATION, *words]
    try:
        return subprocess.run(
            argv,
            cwd=session_folder,
            env=_environment(session_folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TmuxSilent(f"tmux does not answer within {ANSWER_S:g} s; its server may be stopped") from None


def client_environment(session_folder: str) -> dict[str, str]:
    return {**_environment(session_folder), "TERM": os.environ.get("TERM", "xterm-256color")}


def _environment(session_folder: str) -> dict[str, str]:
    """All that a server has of its starter's: the agent's own goes another way, and no secret stays here."""
    env = {name: os.environ[name] for name in (*PASSED_ON, *keepers.PASSED_ON) if name in os.environ}
    return env | {wire.TMUX_MARK: session_folder}


def _open_pane(spec: RunSpec, folder: str) -> str | None:
    """Start the keeper in a pane; what went wrong, or None. A pane with nothing to lose in it is used again."""
    keeper = [*keepers.program(), folder, wire.IN_PANE]
    mark = ("-e", f"{wire.KEEPER_MARK}={folder}")
    size = ("-x", str(spec.cols), "-y", str(spec.rows))
    if server_pid(spec.session_folder) is None:
        words = ("new-session", "-d", "-s", NAME, *size, *mark, "--", *keeper)
    elif (pane := _free_pane(spec.session_folder)) is not None:
        words = ("respawn-pane", "-k", "-t", pane, *mark, "--", *keeper)
    else:
        words = ("new-window", *mark, "--", *keeper)
    done = ask(spec.session_folder, *words)
    if done.returncode == 0:
        return None
    return f"tmux refused: {(done.stderr or done.stdout).strip().splitlines()[-1:] or done.returncode}"


def _free_pane(session_folder: str) -> str | None:
    """A pane whose process is dead, or a shell that runs nothing."""

    panes = ask(session_folder, "list-panes", "-a", "-F", "#{pane_id} #{pane_dead} #{pane_pid}")
    for line in panes.stdout.splitlines():
        pane, dead, pid = line.split()
        if dead == "1" or not process.below(int(pid)):
            return pane
    return None


def _listen(folder: str) -> socket:
    files.discard(os.path.join(folder, wire.START_SOCKET))
    sock = socket(AF_UNIX, SOCK_STREAM)
    with ShortPath(folder, wire.START_SOCKET) as path:
        sock.bind(path)
    sock.listen(1)
    return sock


def _hand_over(waiting: socket, fds: tuple[int, ...]) -> str | None:
    """Give the keeper its descriptors when it comes; what went wrong, or None."""
    if not readable([waiting], ARRIVAL_S):
        return f"the keeper did not start in its tmux pane within {ARRIVAL_S:g} s"
    fd, _ = waiting._accept()  # type: ignore[attr-defined]
    keeper = socket(AF_UNIX, SOCK_STREAM, 0, fd)
    try:
        keepers.send_descriptors(keeper, fds)
    finally:
        keeper.close()
    return None
