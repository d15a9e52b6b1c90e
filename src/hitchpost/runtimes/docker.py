"""The docker runtime: the agent in a container of its session, its keeper on this side.

The container lives as long as nobody stops the session: an agent that leaves by itself makes it stale, and the next
run goes on in it. It is found by its label and full id; what it shares with us is one folder, the workspace and the
programs in ``inside``.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

from hitchpost import wire
from hitchpost.errors import HitchpostError, RuntimeMissing, UsageError
from hitchpost.model.compat import container_name
from hitchpost.model.facts import Exit
from hitchpost.runspec import ContainerSource, RunSpec
from hitchpost.runtimes import engine, local, mount_sources
from hitchpost.runtimes.base import GitFolder, Health, Sandbox, Started
from hitchpost.runtimes.engine import Box, EngineFailed, Users
from hitchpost.runtimes.kept import agent_lives, is_copied
from hitchpost.store import files, runfiles
from hitchpost.store.home import home_of, is_id, new_id, run_folder, session_folder
from hitchpost.system import process
from hitchpost.values import asdict, fields, replace

GOING, LEFT, HOME = "box-going.json", "containers", "home"
PIDS_LIMIT = 1024
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), wire.INSIDE)
PLACES = {"workspace": "/workspace", "config": "/config", "programs": wire.PROGRAMS, "shared": wire.SHARED}
MARKS = (wire.SESSION_MARK, wire.RUN_MARK, wire.HOME_MARK)
PASSED_ON = ("TERM", "COLORTERM", "LANG", "LC_ALL", "CLAUDE_PERMISSION_MODE", *MARKS)
SILENCE_S = 10.0
_silent: dict[str, float] = {}
SAFE = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,")


class Docker(local.Local):
    name = "docker"
    ends_with_keeper = False

    def check(self) -> None:
        try:
            engine.ask(engine.address(), engine.check, engine.PROBE_S)
        except EngineFailed as error:
            raise RuntimeMissing(str(error)) from None

    def start(self, spec: RunSpec, sandbox: Sandbox | None = None) -> Started:
        from hitchpost.runtimes.freeze import in_motion

        assert sandbox is not None, "a container is described by its sandbox"
        before = read_box(spec.session_folder)
        try:
            with in_motion(spec.session_folder):
                box = ensure(spec, sandbox, before)
            folder = _make_place(spec, sandbox)
        except (HitchpostError, OSError) as error:
            if before is None:
                self._removed(spec)
            return Started(None, str(error), kept=False, field=getattr(error, "field", ""))
        inside = f"{PLACES['shared']}/{os.path.basename(folder)}"
        argv = ["sh", f"{PLACES['programs']}/begin.sh", inside, str(spec.cols), str(spec.rows)]
        env = _environment(spec, sandbox)

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
            _set_aside(spec.session_folder)
            _remove_aside(spec.session_folder)
        except HitchpostError as error:
            return f"its container could not be removed: {error}"
        return ""

    def health(self, session_folder: str, run: int, *, session: str) -> Health:
        """Nobody is asked: the container's first process is one of this machine's. One that is being removed is there
        until it is not."""
        seen = super().health(session_folder, run, session=session)
        box = read_box(session_folder) or read_box(session_folder, GOING)
        if box is None:
            written = os.path.exists(os.path.join(session_folder, wire.BOX)) and not _is_copied(session_folder)
            unclear = seen.keeper_alive is True or written
            gone = None if unclear else False
            return replace(seen, sandbox_alive=gone, session_alive=seen.keeper_alive if unclear else False)
        from hitchpost.runtimes.freeze import is_ours

        alive = box.alive
        where = run_folder(session_folder, run)
        lives = agent_lives(where) if seen.keeper_alive is False else seen.keeper_alive
        return replace(
            seen,
            lost="" if alive or seen.keeper_alive is not False else _why_gone(box, where),
            sandbox_alive=alive,
            session_alive=lives and alive,
            sandbox_paused=alive and box.paused and not is_ours(session_folder),
            exit=_written_exit(session_folder, where) if alive and lives is False else None,
        )

    def take_over(self, spec: RunSpec) -> Started:
        box, run = read_box(spec.session_folder), runfiles.read_run(run_folder(spec.session_folder, spec.run))
        if box is None or run is None or not run.container_folder:
            return Started(None, "it is not written down where the agent runs", kept=False)
        folder = os.path.join(_shared(spec.session_folder), run.container_folder)
        agent = run.agent
        source = ContainerSource(box.id, box.pid, box.start, box.engine, folder, run.pane, agent.pid, agent.start)
        return self.spawn(replace(spec, source=source, takes_over=True))

    def tear_down(self, session_folder: str) -> None:
        """Remove the container. Raises ``EngineFailed`` when the engine does not, and the container still runs."""
        with files.SessionLock(session_folder):
            if files.is_held(_keeper_lock(session_folder)) is True:
                return  # the next run has begun in it meanwhile
            _set_aside(session_folder)
        _remove_aside(session_folder)

    def clear_away(self, session_folder: str) -> None:
        """The caller holds the session's lock. What the engine keeps while it is away is written down for later."""
        _set_aside(session_folder)
        _remove_aside(session_folder)
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


def left_folder(home: str) -> str:
    """One file for each container that outlived its session, because its engine was away when that was removed."""
    return os.path.join(home, LEFT)


def left(home: str) -> list[str]:
    """The sessions of these containers."""
    try:
        return sorted(name.removesuffix(".json") for name in os.listdir(left_folder(home)) if name.endswith(".json"))
    except FileNotFoundError:
        return []


def remove_left(home: str) -> list[str]:
    """Remove them, where their engine is back. Which ones are gone now."""
    gone: list[str] = []
    away: set[str] = set()
    for session in left(home):
        path = os.path.join(left_folder(home), f"{session}.json")
        url = _engine_of(path)
        if url is None or url in away:
            continue
        try:
            _remove(path, url, home, session, engine.PROBE_S)
        except HitchpostError:
            away.add(url)
            continue
        files.discard(path)
        gone.append(session)
    return gone


def strays(home: str) -> list[str]:
    """Sessions whose folder was deleted and whose container is still there, as far as the engine tells."""
    try:
        found = engine.ask(engine.address(), lambda docker: engine.sessions(docker, home), engine.PROBE_S)
    except HitchpostError:
        return []
    known = set(left(home))
    return sorted(name for name in found if is_id(name) and name not in known and not _has_folder(home, name))


def remove_strays(home: str) -> list[str]:
    """Remove their containers. Which sessions have none any more; the engine may refuse some."""
    gone = []
    for session in strays(home):
        try:
            engine.ask(engine.address(), partial(engine.remove_all, home=home, session=session))
        except HitchpostError:
            continue
        gone.append(session)
    return gone


def _has_folder(home: str, session: str) -> bool:
    return os.path.isdir(session_folder(home, session))


def _remove(path: str, url: str, home: str, session: str, timeout_s: float = engine.ANSWER_S) -> None:
    """The container that a file names by its id; by its label when somebody was killed before it was written down."""
    box = read_box(os.path.dirname(path), os.path.basename(path))

    async def gone(docker: Any) -> None:
        if box is not None:
            await engine.remove(docker, box.id)
        else:
            await engine.remove_all(docker, home, session)

    engine.ask(url, gone, timeout_s)


def _written_exit(session_folder: str, where: str) -> Exit | None:
    """How the agent ended, as its parent inside wrote it down. What is there can be altered from inside."""
    from datetime import UTC, datetime

    run = runfiles.read_run(where)
    if run is None or not run.container_folder:
        return None
    path = os.path.join(_shared(session_folder), run.container_folder, wire.EXIT_STATUS)
    try:
        status = runfiles.status_of(files.read_bytes(path).decode("utf-8", "replace"))
        ended_at = min(os.stat(path, follow_symlinks=False).st_mtime, time.time())
    except (OSError, files.NotAFile):
        return None
    if status is None:
        return None
    end = runfiles.Ending(wait_status=status)
    return Exit(
        end.code, end.signal, end.signal_number, end.core_dumped, ended_at=datetime.fromtimestamp(ended_at, UTC)
    )


def _engine_of(path: str) -> str | None:
    try:
        return str(files.read_object(path)["engine"])
    except (OSError, KeyError, files.Unreadable, files.NewerSchema):
        return None


def _set_aside(session_folder: str) -> None:
    """From now on no run begins in the container."""
    path = os.path.join(session_folder, wire.BOX)
    if os.path.exists(path):
        os.replace(path, os.path.join(session_folder, GOING))


def _remove_aside(session_folder: str) -> None:
    path, going = (os.path.join(session_folder, name) for name in (wire.BOX, GOING))
    if not os.path.exists(going):
        return
    from hitchpost.runtimes.freeze import in_motion

    try:
        url = _engine_of(going) or engine.address()
        with in_motion(session_folder):
            _remove(going, url, home_of(session_folder), os.path.basename(session_folder))
    except BaseException as error:
        box = read_box(session_folder, GOING)
        if isinstance(error, EngineFailed) and box is not None and not box.alive:
            return  # tried again when the session is removed
        os.replace(going, path)
        raise
    files.discard(going)


def ensure(spec: RunSpec, sandbox: Sandbox, box: Box | None) -> Box:
    """The session's container, made when there is none that lives and has the right folders in it."""
    from hitchpost.runtimes.freeze import still

    made_for = _mounted(spec, sandbox)
    if box is not None and box.alive and not box.paused and box.made_for == made_for:
        return box
    url = box.engine if box is not None else engine.address()
    home = home_of(spec.session_folder)

    async def renew(docker: Any) -> Box:
        await engine.remove_all(docker, home, spec.session)
        mount_sources.compare(sandbox.sources, spec.folder)
        config = configuration(spec, sandbox, await engine.users(docker, url))
        return await engine.create(docker, container_name(spec.session), config, url, made_for)

    os.makedirs(_shared(spec.session_folder), mode=0o700, exist_ok=True)
    # before there is one: whoever finds this and no more looks for the container by its label
    files.write_object(os.path.join(spec.session_folder, wire.BOX), {"schema": files.SCHEMA, "engine": url})
    places = [source.path for source in sandbox.sources]
    try:
        with still(home, *places, but=spec.session):
            made = engine.ask(url, renew, engine.ANSWER_S * 3)
    except EngineFailed as error:
        if "no such image" not in str(error).lower():
            raise
        how = "build one as docs/containers.md says, pull it, or name another: --image"
        raise EngineFailed(f"the engine has no image {sandbox.image}; {how}", field="sandbox.image") from None
    write_box(spec.session_folder, made)
    remove_left(home)
    return made


def _mounted(spec: RunSpec, sandbox: Sandbox) -> str:
    more = [] if sandbox.git is None else [sandbox.git.folder]
    places = [os.stat(path) for path in (spec.folder, PROGRAMS, *more)]
    return " ".join(f"{place.st_dev}:{place.st_ino}" for place in places)


def configuration(spec: RunSpec, sandbox: Sandbox, users: Users) -> dict[str, Any]:
    """What the engine is told. Nothing secret is in it, and nothing of the engine's own reaches the container."""
    mounts = [
        _mount(spec.folder, PLACES["workspace"]),
        _mount(_shared(spec.session_folder), PLACES["shared"]),
        _mount(PROGRAMS, PLACES["programs"], read_only=True),
        *_git_mounts(sandbox.git),
    ]
    for source in sandbox.sources:
        if source.target:
            mounts.append(parse_mount(f"{source.path}{source.target}"))
        else:
            mounts.append(_mount(source.path, PLACES["config"], read_only=True))
    return {
        "Image": sandbox.image,
        "Entrypoint": [],
        "Cmd": list(engine.FIRST_PROGRAM),
        "User": users.inside,
        "WorkingDir": PLACES["workspace"],
        "Labels": {engine.SESSION_LABEL: spec.session, engine.HOME_LABEL: home_of(spec.session_folder)},
        "HostConfig": {
            "Init": True,
            "Mounts": mounts,
            "NetworkMode": sandbox.network,
            "UsernsMode": users.namespace,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "PidsLimit": PIDS_LIMIT,
            "Memory": sandbox.memory_bytes,
            "NanoCpus": int((sandbox.cpus or 0.0) * 1e9),
        },
    }


def parse_mount(text: str) -> dict[str, Any]:
    """``/host:/inside`` or ``/host:/inside:ro``. Raises ``UsageError``; ``mounts`` says what may be mounted."""
    source, _, rest = text.partition(":")
    target, _, how = rest.partition(":")
    if not source.startswith("/") or not target.startswith("/") or how not in ("", "ro", "rw"):
        raise UsageError(f"expected --mount /HOST/PATH:/INSIDE[:ro], but got {text!r}")
    if target in PLACES.values() or target.startswith("/hitchpost"):
        raise UsageError(f"--mount {text}: {target} is Hitchpost's own place in the container")
    if not os.path.exists(source):
        raise UsageError(f"--mount {text}: {source} is not there")
    return _mount(source, target, read_only=how == "ro")


def read_box(session_folder: str, name: str = wire.BOX) -> Box | None:
    """None where there is none, and in a copy of a home: the container is the original's."""
    try:
        value = files.read_object(os.path.join(session_folder, name))
        if name in (wire.BOX, GOING) and is_copied(str(value.get("home", "")), session_folder):
            return None
        return Box(**{key: value[key] for key in fields(Box)})  # type: ignore[arg-type]
    except (OSError, KeyError, files.Unreadable, files.NewerSchema):
        return None


def _is_copied(session_folder: str) -> bool:
    try:
        value = files.read_object(os.path.join(session_folder, wire.BOX))
    except (OSError, files.Unreadable, files.NewerSchema):
        return False
    return is_copied(str(value.get("home", "")), session_folder)


def write_box(session_folder: str, box: Box) -> None:
    value = {"schema": files.SCHEMA, "home": files.home_id(session_folder), **asdict(box)}
    files.write_object(os.path.join(session_folder, wire.BOX), value)


def _make_place(spec: RunSpec, sandbox: Sandbox) -> str:
    """A folder for this run that nobody inside can have prepared, with the agent's words and the pipes."""
    shared = _shared(spec.session_folder)
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


def _environment(spec: RunSpec, sandbox: Sandbox) -> dict[str, str]:
    """The settings' and those that the person named; nothing else of the caller's is meant for a container."""
    names = {*PASSED_ON, *sandbox.env_names}
    env = {os.fsdecode(name): os.fsdecode(text) for name, text in spec.env.items()}
    env = {name: text for name, text in env.items() if name in names}
    return env | {"HOME": f"{PLACES['shared']}/{HOME}", "PWD": PLACES["workspace"], "TERM": "xterm-256color"}


def _keeper_lock(session_folder: str) -> str:
    """Of the current run."""
    run = files.read_object(os.path.join(session_folder, files.STATE)).get("run")
    return os.path.join(run_folder(session_folder, run if isinstance(run, int) else 1), wire.KEEPER_LOCK)


def _shared(session_folder: str) -> str:
    return os.path.join(session_folder, wire.INSIDE)


def _mount(source: str, target: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only}


def _git_mounts(git: GitFolder | None) -> list[dict[str, Any]]:
    """The session's own git folder, in the place of the repository's, and the repository's objects to read."""
    if git is None:
        return []
    mounts = [_mount(git.folder, git.at), _mount(git.objects, git.objects_at, read_only=True)]
    return [*mounts, _mount(git.pointer, f"{PLACES['workspace']}/.git", read_only=True)] if git.pointer else mounts
