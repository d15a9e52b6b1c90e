"""A program that was started by somebody else in a tmux pane, and is watched from now on."""

from __future__ import annotations

import os

from hitchpost.errors import FAILURES, Refused
from hitchpost.model.run import UNSEEN
from hitchpost.runspec import ControlSource, RunSpec
from hitchpost.runtimes import local, tmux
from hitchpost.runtimes.base import Health, Leftovers, OwnClient, Sandbox, Started
from hitchpost.runtimes.kept import agent_lives, is_kept
from hitchpost.store.home import run_folder
from hitchpost.store.runfiles import Run, read_run
from hitchpost.system import process
from hitchpost.values import replace, value

FORMAT = "\t".join(
    (
        "#{pane_id}",
        "#{pane_pid}",
        "#{pane_dead}",
        "#{pane_width}",
        "#{pane_height}",
        "#{cursor_x}",
        "#{cursor_y}",
        "#{socket_path}",
    )
)
MARK = "adopted pane"
ADOPT_AGAIN = "start the program yourself, then hitch adopt --tmux TARGET watches it"


@value
class Target:
    """A pane and the program in it, named so that no other can be taken for it."""

    socket: str
    pane: str
    pid: int
    start: int
    cols: int
    rows: int
    folder: str
    command: str
    screen: str

    def source(self) -> ControlSource:
        return ControlSource(tmux.program(), self.socket, self.pane, self.pid, self.start, self.screen)


class AdoptedPane(local.Local):
    name = "adopted"
    ends_with_keeper = False
    cannot_start_again = ADOPT_AGAIN
    has_own_screen = True

    def attach_command(self, session_folder: str, run: int, read_only: bool) -> OwnClient | None:
        where = run_folder(session_folder, run)
        socket, pane = _pane(read_run(where))
        if not pane or is_kept(where) is not True:
            return None
        words = ("attach-session", *(("-r",) if read_only else ()), "-t", pane)
        return OwnClient((tmux.program(), "-u", "-S", socket, *words), tmux.client_environment(session_folder))

    def start(self, spec: RunSpec, sandbox: Sandbox | None = None) -> Started:
        if not isinstance(spec.source, ControlSource):
            return Started(None, f"it was adopted, so its command is unknown; {ADOPT_AGAIN}")
        return self.spawn(spec)

    def health(self, session_folder: str, run: int, *, session: str) -> Health:
        seen = super().health(session_folder, run, session=session)
        if seen.keeper_alive is not False:
            return seen
        lives = agent_lives(run_folder(session_folder, run))
        return replace(seen, session_alive=lives, lost=UNSEEN if lives is False else "")

    def take_over(self, spec: RunSpec) -> Started:
        """The pane must still be there, with the same program in it."""
        run = read_run(run_folder(spec.session_folder, spec.run))
        socket, pane = _pane(run)
        if run is None or not pane:
            return Started(None, "there is no record of the pane that the program runs in", kept=False)
        try:
            target = find(pane, socket)
        except FAILURES as error:
            return Started(None, str(error), kept=False)
        if (target.pid, target.start) != (run.agent.pid, run.agent.start):
            return Started(None, "its pane now runs another program", kept=False)
        return self.spawn(replace(spec, source=target.source(), cols=target.cols, rows=target.rows, takes_over=True))

    def leftovers(self, session_folder: str, run: int) -> Leftovers:
        return Leftovers(0)

    def end_leftovers(self, session_folder: str, run: int, *, session: str) -> Leftovers:
        """The program was never the keeper's: it goes on when its keeper is gone, and is not ended."""
        return Leftovers(0, "the adopted program was not started by hitchpost and was left alone")


def _pane(run: Run | None) -> tuple[str, str]:
    """Socket and pane that a run is about; empty when they are not written down. Older files have them as a command."""
    if run is None:
        return "", ""
    return run.argv[1:3] if run.argv[:1] == (MARK,) else (run.socket, run.pane)  # type: ignore[return-value]


def find(name: str, socket: str | None) -> Target:
    """The pane that ``name`` names to tmux. Raises ``Refused`` when there is none, or its program has ended."""
    words = ("-S", socket) if socket else ()
    exact_name = exact(name)
    _said(words, "capture-pane", "-p", "-t", exact_name)  # refuses what display-message would take for the current pane
    line = _said(words, "display-message", "-p", "-t", exact_name, FORMAT)
    pane, pid, dead, cols, rows, left, top, path = line.rstrip("\n").split("\t")
    start = process.start_time(int(pid)) if pid.isdigit() else None
    if dead == "1" or start is None:
        raise Refused(f"the program in pane {name!r} has ended")
    here = ("-S", path)
    text = _said(here, "capture-pane", "-p", "-e", "-t", pane).rstrip("\n").replace("\n", "\r\n")
    return Target(
        socket=path,
        pane=pane,
        pid=int(pid),
        start=start,
        cols=int(cols),
        rows=int(rows),
        folder=os.readlink(f"/proc/{pid}/cwd"),
        command=_said(here, "display-message", "-p", "-t", pane, "#{pane_current_command}").strip(),
        screen=f"\x1b[H\x1b[2J{text}\x1b[{int(top) + 1};{int(left) + 1}H",
    )


def exact(target: str) -> str:
    """``target`` such that tmux takes names for themselves only, and not for the beginning of others.

    Ids (``$1``, ``@2``, ``%3``) and what already says what it means are left as they are.
    """
    if target[:1] in ("", "$", "@", "%", "=", ":", "{"):
        return target
    session, colon, rest = target.partition(":")
    if not colon:
        name, dot, pane = target.partition(".")
        return f"={name}:{dot}{pane}"
    is_name = rest[:1] not in ("", "@", "%", "=", ".", "{", "+", "-", "!", "^", "$")
    return f"={session}:{'=' if is_name else ''}{rest}"


def _said(words: tuple[str, ...], *command: str) -> str:
    import subprocess

    try:
        done = subprocess.run(
            [tmux.program(), *words, *command],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=tmux.ANSWER_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Refused(f"tmux does not answer within {tmux.ANSWER_S:g} s; its server may be stopped") from None
    if done.returncode != 0:
        raise Refused(f"tmux: {done.stderr.strip() or 'it refused'}")
    return done.stdout
