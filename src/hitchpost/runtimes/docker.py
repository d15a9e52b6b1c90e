"""The docker runtime: the agent in a container of its session, its keeper on this side (``keeper/boxed.py``).

The container lives as long as nobody stops the session: an agent that leaves by itself makes it stale, and the next
run goes on in it. It is found by its label and full id; what it shares with us is one folder, the workspace and the
programs in ``inside``.
"""

from __future__ import annotations

import os
from typing import Any

from hitchpost import wire
from hitchpost.errors import HitchpostError, RuntimeMissing, UsageError
from hitchpost.runtimes import engine, local
from hitchpost.runtimes.base import Health, Launch, Started
from hitchpost.runtimes.engine import Box, EngineFailed
from hitchpost.state import files
from hitchpost.state.home import new_id
from hitchpost.values import asdict, replace

PIDS_LIMIT = 1024
MEMORY_BYTES = 4 << 30
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), wire.INSIDE)
PLACES = {"workspace": "/workspace", "config": "/config", "programs": "/hitchpost/bin", "shared": "/hitchpost/run"}
PASSED_ON = ("TERM", "COLORTERM", "LANG", "LC_ALL", "CLAUDE_PERMISSION_MODE", wire.SESSION_MARK, wire.RUN_MARK)
SAFE = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,")


class Docker(local.Local):
    name = "docker"
    has_sandbox = True

    def check(self) -> None:
        try:
            engine.ask(engine.address(), lambda docker: docker.version(), engine.PROBE_S)
        except EngineFailed as error:
            raise RuntimeMissing(str(error)) from None

    def start(self, launch: Launch) -> Started:
        before = read_box(launch.session_folder)
        try:
            box = ensure(launch, before)
            folder = _make_place(launch)
        except (HitchpostError, OSError) as error:
            return Started(None, str(error), kept=False)
        inside = f"{PLACES['shared']}/{os.path.basename(folder)}"
        argv = ["sh", f"{PLACES['programs']}/begin.sh", inside, str(launch.cols), str(launch.rows)]

        def enter() -> None:
            try:
                engine.ask(
                    box.engine,
                    lambda docker: engine.execute(docker, box.id, argv, user=_user(launch), env=_environment(launch)),
                )
            except HitchpostError as error:
                files.replace_file(os.path.join(folder, "failed"), str(error).encode(), durable=False)

        started = self.spawn(launch, enter, container=box.id, box=folder)
        if started.error is not None and box != before and not (launch.sandbox or {}).get("keep_failed"):
            return replace(started, error="; ".join(filter(None, (started.error, self._removed(launch)))))
        return started

    def _removed(self, launch: Launch) -> str:
        """Nothing of a failed start stays. What could not be removed, if so."""
        try:
            self.tear_down(launch.session_folder)
        except HitchpostError as error:
            return f"its container could not be removed: {error}"
        return ""

    def health(self, session_folder: str, run: int, *, session: str) -> Health:
        """Nobody is asked: the container's first process is one of this machine's."""
        seen = super().health(session_folder, run, session=session)
        box = read_box(session_folder)
        if box is None:
            return replace(seen, sandbox_alive=False, session_alive=False)
        alive = box.alive
        return replace(
            seen,
            sandbox_alive=alive,
            session_alive=seen.keeper_alive and alive,
            sandbox_paused=alive and box.paused,
            process_stopped=seen.process_stopped,
        )

    def tear_down(self, session_folder: str) -> None:
        """Remove the container. Raises ``EngineFailed`` when the engine does not."""
        box = read_box(session_folder)
        if box is None:
            return
        try:
            engine.ask(box.engine, lambda docker: engine.remove(docker, box.id))
        except EngineFailed:
            if box.alive:
                raise  # what is left of a container that does not run is the engine's own business
        files.discard(os.path.join(session_folder, wire.BOX))

    def clear_away(self, session_folder: str) -> None:
        self.tear_down(session_folder)


def ensure(launch: Launch, box: Box | None) -> Box:
    """The session's container, made when there is none that lives."""
    if box is not None and box.alive and not box.paused:
        return box
    url = box.engine if box is not None else engine.address()
    home = _home(launch.session_folder)

    async def renew(docker: Any) -> Box:
        for old in await engine.find(docker, home, launch.session):
            await engine.remove(docker, old.id)
        return await engine.create(docker, f"agent-{launch.session}", configuration(launch), url)

    os.makedirs(_shared(launch.session_folder), mode=0o700, exist_ok=True)
    made = engine.ask(url, renew, engine.ANSWER_S * 3)
    write_box(launch.session_folder, made)
    return made


def configuration(launch: Launch) -> dict[str, Any]:
    """What the engine is told. Nothing secret is in it, and nothing of the engine's own reaches the container."""
    wanted = launch.sandbox or {}
    mounts = [
        _mount(launch.folder, PLACES["workspace"]),
        _mount(_shared(launch.session_folder), PLACES["shared"]),
        _mount(PROGRAMS, PLACES["programs"], read_only=True),
        *_git_mounts(launch.folder, wanted.get("git")),
    ]
    if isinstance(config := wanted.get("config"), str):
        mounts.append(_mount(config, PLACES["config"], read_only=True))
    for text in _texts(wanted, "mounts"):
        mounts.append(parse_mount(text))
    memory, cpus = wanted.get("memory_bytes"), wanted.get("cpus")
    return {
        "Image": str(wanted.get("image")),
        "Entrypoint": [],
        "Cmd": ["sleep", "infinity"],
        "User": _user(launch),
        "WorkingDir": PLACES["workspace"],
        "Labels": {engine.SESSION_LABEL: launch.session, engine.HOME_LABEL: _home(launch.session_folder)},
        "HostConfig": {
            "Init": True,
            "Mounts": mounts,
            "NetworkMode": str(wanted.get("network")),
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "PidsLimit": PIDS_LIMIT,
            "Memory": memory if isinstance(memory, int) else MEMORY_BYTES,
            "NanoCpus": int(float(cpus) * 1e9) if isinstance(cpus, (int, float)) else 0,
        },
    }


def parse_mount(text: str) -> dict[str, Any]:
    """``/host:/inside`` or ``/host:/inside:ro``. Raises ``UsageError``, for an engine's socket too."""
    source, _, rest = text.partition(":")
    target, _, how = rest.partition(":")
    if not source.startswith("/") or not target.startswith("/") or how not in ("", "ro", "rw"):
        raise UsageError(f"expected --mount /HOST/PATH:/INSIDE[:ro], but got {text!r}")
    if target in PLACES.values() or target.startswith("/hitchpost"):
        raise UsageError(f"--mount {text}: {target} is Hitchpost's own place in the container")
    if not os.path.exists(source):
        raise UsageError(f"--mount {text}: {source} is not there")
    if is_engine_socket(source):
        raise UsageError(f"--mount {text}: with the engine's socket inside, the container would be none")
    return _mount(source, target, read_only=how == "ro")


def is_engine_socket(path: str) -> bool:
    import stat

    real = os.path.realpath(path)
    named = os.path.basename(real) in ("docker.sock", "podman.sock", "containerd.sock")
    return named or (stat.S_ISSOCK(os.stat(real).st_mode) and f"unix://{real}" == os.environ.get("DOCKER_HOST"))


def read_box(session_folder: str) -> Box | None:
    try:
        value = files.read_object(os.path.join(session_folder, wire.BOX))
        return Box(**{name: value[name] for name in ("engine", "id", "pid", "start", "boot_id")})  # type: ignore[arg-type]
    except (OSError, KeyError, files.Unreadable, files.NewerSchema):
        return None


def write_box(session_folder: str, box: Box) -> None:
    files.write_object(os.path.join(session_folder, wire.BOX), {"schema": files.SCHEMA, **asdict(box)})


def _make_place(launch: Launch) -> str:
    """A folder for this run that nobody inside can have prepared, with the agent's words and the pipes."""
    folder = os.path.join(_shared(launch.session_folder), f"{launch.run}-{new_id()}")
    os.mkdir(folder, 0o700)
    for name in ("out", "keys", "go"):
        os.mkfifo(os.path.join(folder, name), 0o600)
    words = "".join(f"{escaped(os.fsencode(word))}\n" for word in launch.argv)
    files.replace_file(os.path.join(folder, "argv"), words.encode(), durable=False)
    if os.getuid() == 0 and _user(launch) != "0:0":
        for name in ("", *os.listdir(folder)):
            os.chown(os.path.join(folder, name), *map(int, _user(launch).split(":")))
    return folder


def escaped(word: bytes) -> str:
    """For ``printf %b``: every byte that could mean something is written in octal digits."""
    return "".join(chr(byte) if byte in SAFE else f"\\0{byte:03o}" for byte in word)


def _environment(launch: Launch) -> dict[str, str]:
    """The settings' and those that the person named; nothing else of the caller's is meant for a container."""
    wanted = set(PASSED_ON) | set(_texts(launch.sandbox or {}, "env_names"))
    env = {name: text for name, text in launch.env.items() if name in wanted}
    return env | {"HOME": f"{PLACES['shared']}/home", "PWD": PLACES["workspace"], "TERM": "xterm-256color"}


def _user(launch: Launch) -> str:
    return f"{os.getuid()}:{os.getgid()}"


def _home(session_folder: str) -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(session_folder)))


def _shared(session_folder: str) -> str:
    return os.path.join(session_folder, wire.INSIDE)


def _mount(source: str, target: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only}


def _git_mounts(folder: str, common: object) -> list[dict[str, Any]]:
    """A worktree's history is in its repository, under the same path inside. Its hooks and settings run on this side
    too, so they stay as they are."""
    if not isinstance(common, str) or common.startswith(os.path.join(folder, "")):
        return []
    mounts = [_mount(common, common)]
    for name in ("hooks", "config"):
        if os.path.exists(os.path.join(common, name)):
            mounts.append(_mount(os.path.join(common, name), os.path.join(common, name), read_only=True))
    return mounts


def _texts(wanted: dict[str, object], key: str) -> list[str]:
    found = wanted.get(key)
    return [str(one) for one in found] if isinstance(found, (list, tuple)) else []
