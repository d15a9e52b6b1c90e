"""The docker runtime: the agent in a container of its session, its keeper on this side.

The container lives as long as nobody stops the session: an agent that leaves by itself makes it stale, and the next
run goes on in it. It is found by its label and full id; what it shares with us is one folder, the workspace and the
programs in ``inside``.
"""

from __future__ import annotations

import os
import time
from typing import Any

from hitchpost import wire
from hitchpost.errors import FAILURES, HitchpostError, RuntimeMissing
from hitchpost.model.compat import container_name
from hitchpost.model.facts import Exit
from hitchpost.model.run import TMUX_GONE
from hitchpost.runspec import ContainerSource, RunSpec
from hitchpost.runtimes import engine, local, mount_sources
from hitchpost.runtimes.base import Health, Sandbox, Started
from hitchpost.runtimes.container_config import HOME, PLACES, configuration, environment, mounted, shared_folder
from hitchpost.runtimes.container_file import GOING, is_of_copy, read_box, write_box
from hitchpost.runtimes.container_removal import left_folder, remove_aside, remove_left, set_aside
from hitchpost.runtimes.engine import Box, EngineFailed
from hitchpost.runtimes.kept import agent_lives
from hitchpost.store import files, locks, runfiles
from hitchpost.store.home import home_of, new_id, run_folder
from hitchpost.system import process
from hitchpost.values import replace

SILENCE_S = 10.0
_silent: dict[str, float] = {}
SAFE = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,")


class Docker(local.Local):
    name = "docker"
    ends_with_keeper = False

    def check(self, session_folder: str = "") -> None:
        box = read_box(session_folder) if session_folder else None
        try:
            engine.ask(engine.address() if box is None else box.engine, engine.check, engine.PROBE_S)
        except EngineFailed as error:
            raise RuntimeMissing(str(error)) from None

    def start(self, spec: RunSpec, sandbox: Sandbox | None = None) -> Started:
        from hitchpost.runtimes.freeze import in_motion

        if sandbox is None:
            return Started(None, "its container is not described anywhere", kept=False)
        before = read_box(spec.session_folder)
        try:
            with in_motion(spec.session_folder):
                box = ensure(spec, sandbox, before)
            folder = _make_place(spec, sandbox)
        except FAILURES as error:
            if before is None:
                self._removed(spec)
            return Started(None, str(error), kept=False, field=getattr(error, "field", ""))
        inside = f"{PLACES['shared']}/{os.path.basename(folder)}"
        argv = ["sh", f"{PLACES['programs']}/begin.sh", inside, str(spec.cols), str(spec.rows)]
        env = environment(spec, sandbox)

        def enter() -> None:
            try:
                with in_motion(spec.session_folder):
                    engine.ask(box.engine, lambda docker: engine.execute(docker, box, argv, env=env))
            except HitchpostError as error:
                _tell_failure(folder, str(error))

        source = ContainerSource(box.id, box.pid, box.start, box.engine, folder)
        started = self.spawn(replace(spec, source=source), enter)
        if started.error is not None and box != before and not sandbox.keep_failed:
            return replace(started, error="; ".join(filter(None, (started.error, self._removed(spec)))))
        return started

    def _removed(self, spec: RunSpec) -> str:
        """Nothing of a failed start stays. What could not be removed, if so."""
        try:
            set_aside(spec.session_folder)
            remove_aside(spec.session_folder)
        except HitchpostError as error:
            return f"its container could not be removed: {error}"
        return ""

    def health(self, session_folder: str, run: int, *, session: str) -> Health:
        """Nobody is asked: the container's first process is one of this machine's. One that is being removed is there
        until it is not."""
        seen = super().health(session_folder, run, session=session)
        box = read_box(session_folder) or read_box(session_folder, GOING)
        if box is None:
            written = os.path.exists(os.path.join(session_folder, wire.BOX)) and not is_of_copy(session_folder)
            unclear = seen.keeper_alive is True or written
            gone = None if unclear else False
            return replace(seen, sandbox_alive=gone, session_alive=seen.keeper_alive if unclear else False)
        from hitchpost.runtimes.freeze import is_ours

        alive = box.alive
        runs = alive or box.restarted
        where = run_folder(session_folder, run)
        lives = agent_lives(where) if seen.keeper_alive is False else seen.keeper_alive
        return replace(
            seen,
            lost="" if alive or seen.keeper_alive is not False else _why_gone(box, where),
            sandbox_alive=runs,
            session_alive=lives and alive,
            sandbox_paused=runs and box.paused and not is_ours(session_folder),
            exit=_written_exit(session_folder, where) if alive and lives is False else None,
        )

    def take_over(self, spec: RunSpec) -> Started:
        box, run = read_box(spec.session_folder), runfiles.read_run(run_folder(spec.session_folder, spec.run))
        if box is None or run is None or not run.container_folder:
            return Started(None, "there is no record of where the agent runs", kept=False)
        folder = os.path.join(shared_folder(spec.session_folder), run.container_folder)
        agent = run.agent
        source = ContainerSource(box.id, box.pid, box.start, box.engine, folder, run.pane, agent.pid, agent.start)
        return self.spawn(replace(spec, source=source, takes_over=True))

    def tear_down(self, session_folder: str) -> None:
        """Remove the container. Raises ``EngineFailed`` when the engine does not, and the container still runs."""
        with locks.SessionLock(session_folder):
            if locks.is_held(_keeper_lock(session_folder)) is True:
                return  # the next run has begun in it meanwhile
            set_aside(session_folder)
        remove_aside(session_folder)

    def clear_away(self, session_folder: str) -> None:
        """The caller holds the session's lock. What the engine keeps while it is away is written down for later."""
        set_aside(session_folder)
        remove_aside(session_folder)
        going = os.path.join(session_folder, GOING)
        if os.path.exists(going):
            left = left_folder(home_of(session_folder))
            os.makedirs(left, mode=0o700, exist_ok=True)
            os.replace(going, os.path.join(left, f"{os.path.basename(session_folder)}.json"))
            files.sync_folder(left)

    def unpause(self, session_folder: str) -> None:
        box = read_box(session_folder)
        if box is not None and box.alive and box.paused:
            engine.ask(box.engine, lambda docker: engine.unpause(docker, box.id))


def _why_gone(box: Box, folder: str) -> str:
    """Why a container has ended that nobody watches any more. Empty when it is known how its run ended."""
    if box.boot_id != process.boot_id() or runfiles.has_exit(folder):
        return ""
    from hitchpost.keeper.sources.container_end import ANSWER_S, why_ended
    from hitchpost.model.run import CONTAINER_STOPPED

    began = time.monotonic()
    if began < _silent.get(box.engine, 0.0):
        return CONTAINER_STOPPED
    why = why_ended(box.engine, box.id, box.pid)
    if time.monotonic() - began >= ANSWER_S:
        _silent[box.engine] = time.monotonic() + SILENCE_S  # one that hangs keeps nobody waiting for every session
    return why


def _written_exit(session_folder: str, where: str) -> Exit | None:
    """How the agent ended, as its parent inside wrote it down. What is there can be altered from inside."""
    from datetime import UTC, datetime

    run = runfiles.read_run(where)
    if run is None or not run.container_folder:
        return None
    folder = os.path.join(shared_folder(session_folder), run.container_folder)
    path = os.path.join(folder, wire.EXIT_STATUS)
    hung_up = os.path.lexists(os.path.join(folder, wire.HUNG_UP)) and not runfiles.read_intent(where)
    try:
        status = runfiles.status_of(files.read_bytes(path).decode("utf-8", "replace"))
        ended_at = min(os.stat(path, follow_symlinks=False).st_mtime, time.time())
    except OSError:
        return None
    if status is None:
        return None
    end = runfiles.Ending(wait_status=status)
    at, error = datetime.fromtimestamp(ended_at, UTC), TMUX_GONE if hung_up else None
    return Exit(end.code, end.signal, end.signal_number, end.core_dumped, error=error, ended_at=at)


def ensure(spec: RunSpec, sandbox: Sandbox, box: Box | None) -> Box:
    """The session's container, made when there is none that lives and has the right folders in it."""
    from hitchpost.runtimes.freeze import still

    made_for = mounted(spec, sandbox)
    if box is not None and box.alive and not box.paused and box.made_for == made_for:
        return box
    url = box.engine if box is not None else engine.address()
    home = home_of(spec.session_folder)

    async def renew(docker: Any) -> Box:
        await engine.remove_all(docker, home, spec.session)
        mount_sources.compare(sandbox.sources, spec.folder)
        config = configuration(spec, sandbox, await engine.users(docker, url))
        return await engine.create(docker, container_name(spec.session), config, url, made_for)

    os.makedirs(shared_folder(spec.session_folder), mode=0o700, exist_ok=True)
    # before there is one: whoever finds this and no more looks for the container by its label
    files.write_object(os.path.join(spec.session_folder, wire.BOX), {"schema": files.SCHEMA, "engine": url})
    places = [source.path for source in sandbox.sources]
    try:
        with still(home, *places, but=spec.session):
            made = engine.ask(url, renew, engine.ANSWER_S * 3)
    except EngineFailed as error:
        if "no such image" not in str(error).lower():
            raise
        how = "build one as docs/containers.md says, pull it, or name another one"
        raise EngineFailed(f"the engine has no image {sandbox.image}; {how}", field="sandbox.image") from None
    write_box(spec.session_folder, made)
    remove_left(home)
    return made


def _make_place(spec: RunSpec, sandbox: Sandbox) -> str:
    """A folder for this run that nobody inside can have prepared, with the agent's words and the pipes."""
    shared = shared_folder(spec.session_folder)
    folder = os.path.join(shared, f"{spec.run}-{new_id()}")
    os.mkdir(folder, 0o700)
    try:
        os.mkdir(os.path.join(shared, HOME), 0o700)
    except FileExistsError:
        pass  # an earlier run's
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for name in ("out", "keys", "go"):
            os.mkfifo(name, 0o600, dir_fd=place)
        words = "".join(f"{escaped(word)}\n" for word in spec.argv)
        _put(place, "argv", words.encode())
        _put(place, "flags", "".join(f"{name} {flag}\n" for name, flag in sandbox.env_flags).encode())
    finally:
        os.close(place)
    return folder


def _put(folder: int, name: str, data: bytes) -> None:
    """A new file, never through a link that was there before."""
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        files.write_all(fd, data)
    finally:
        os.close(fd)


def _tell_failure(folder: str, why: str) -> None:
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _put(place, "failed", f"{why}\n".encode())
    except FileExistsError:
        pass  # the container has said it already
    finally:
        os.close(place)


def escaped(word: bytes) -> str:
    """For ``printf %b``: every byte that could mean something is written in octal digits."""
    return "".join(chr(byte) if byte in SAFE else f"\\0{byte:03o}" for byte in word)


def _keeper_lock(session_folder: str) -> str:
    """Of the current run."""
    run = files.read_object(os.path.join(session_folder, files.STATE)).get("run")
    return os.path.join(run_folder(session_folder, run if isinstance(run, int) else 1), wire.KEEPER_LOCK)
