"""The container engine, Docker's or Podman's, through its socket. All that Hitchpost knows of aiodocker is here."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from hitchpost.errors import HitchpostError, RuntimeMissing
from hitchpost.store import files
from hitchpost.system import process
from hitchpost.values import value

T = TypeVar("T")
ANSWER_S = 20.0
PROBE_S = 5.0
NO_CONNECTION = 900
"""What aiodocker gives for an HTTP status when there was no answer."""
NO_PROGRAM = 127
FIRST_PROGRAM = ("sleep", "infinity")
"""What every container of ours runs below its init."""
EVENTS = ("start", "die", "destroy", "pause", "unpause")
FREEZERS = ("freezer.state", "cgroup.freeze")
"""The files of a control group that say whether it is frozen: of the older and the newer generation."""
SESSION_LABEL, HOME_LABEL = "hitchpost.session", "hitchpost.home"


class EngineFailed(HitchpostError):
    """Raised when the engine refuses, or does not answer: nothing is known then, neither life nor death."""

    http_status = 502
    code = "engine_failed"


@value
class Users:
    """Who we are in a container (``uid:gid``), and what the engine is told so that files there are ours."""

    inside: str
    namespace: str = ""


@value
class Box:
    """A container of ours, named so that no other can be taken for it. ``pid`` is its first process, here."""

    engine: str
    id: str
    pid: int
    start: int
    boot_id: str
    user: str
    """Who we are inside."""
    made_for: str
    """What is mounted in it, by device and inode: one for another folder, or of an older version, is of no use."""
    group: str = ""
    """The folder of its control group, which it has again when somebody starts it again; empty where none is known."""

    @property
    def alive(self) -> bool:
        return self.boot_id == process.boot_id() and process.is_running(self.pid, self.start)

    @property
    def restarted(self) -> bool:
        """Whether it has ended and somebody has started it again. Nothing that we started runs in it."""
        return not self.alive and self.group != "" and any(map(_runs, _read(f"{self.group}/cgroup.procs").split()))

    @property
    def paused(self) -> bool:
        """Whether the kernel has its processes frozen; both generations of control groups say it in their own way."""
        paths = _freezers(self.pid) if self.alive else [f"{self.group}/{name}" for name in FREEZERS]
        return any(_read(path).strip() in (b"1", b"FROZEN") for path in paths)


def address() -> str:
    """Where the engine listens. Raises ``RuntimeMissing``."""
    if named := os.environ.get("DOCKER_HOST"):
        if not named.startswith("unix://"):
            raise RuntimeMissing(f"DOCKER_HOST is {named}: only an engine on this machine (unix://…) can be used")
        return named
    own = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    places = ("/run/docker.sock", f"{own}/docker.sock", f"{own}/podman/podman.sock", "/run/podman/podman.sock")
    for place in places:
        if os.path.exists(place):
            return f"unix://{place}"
    raise RuntimeMissing(
        "no container engine was found",
        "start Docker or Podman, name its socket in DOCKER_HOST, or use the local runtime",
    )


def sockets() -> list[str]:
    """Where engines listen on this machine, as far as is known: none of these may get into a container."""
    named = os.environ.get("DOCKER_HOST", "").removeprefix("unix://")
    own = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    usual = [f"{place}/{name}" for place in ("/run", own) for name in ("docker.sock", "podman/podman.sock")]
    return [os.path.realpath(path) for path in (*usual, "/run/containerd/containerd.sock", named) if path]


def ask(url: str, question: Callable[[Any], Awaitable[T]], timeout_s: float = ANSWER_S) -> T:
    """The engine's answer, for who does not run an event loop. Raises ``EngineFailed`` or ``RuntimeMissing``."""
    return asyncio.run(answer(url, question, timeout_s))


def load() -> None:
    """Import the library, which takes a while. Raises ``RuntimeMissing``."""
    try:
        import aiodocker  # noqa: F401
    except ImportError:
        raise RuntimeMissing("containers need the package aiodocker: pip install 'hitchpost[docker]'") from None


async def answer(url: str, question: Callable[[Any], Awaitable[T]], timeout_s: float = ANSWER_S) -> T:
    await asyncio.to_thread(load)
    import aiodocker
    import aiohttp

    try:
        async with asyncio.timeout(timeout_s), _client(url) as docker:
            return await question(docker)
    except aiodocker.DockerError as error:
        if error.status == NO_CONNECTION:
            raise EngineFailed(f"the container engine cannot be reached at {url}; is it running?") from None
        raise EngineFailed(f"the container engine refused: {error.message}") from None
    except TimeoutError:
        raise EngineFailed(f"the container engine did not answer within {timeout_s:g} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise EngineFailed(f"the container engine cannot be reached at {url}: {error}") from None


@asynccontextmanager
async def _client(url: str) -> AsyncIterator[Any]:
    """Raises what aiodocker raises.

    It would ask each engine for its version first, and that is slow: Docker runs two programs for the answer, and
    Podman a package manager, for most of a second. What a ping tells is enough.
    """
    import aiodocker

    async with aiodocker.Docker(url=url) as docker:
        if known := (await _ping(docker)).get("Api-Version"):
            docker.api_version = f"v{known}"
        yield docker


async def _ping(docker: Any) -> Mapping[str, str]:
    """What the engine says about itself in the head of any answer."""
    async with docker._query("_ping", versioned_api=False) as answer:
        await answer.read()
        return answer.headers  # type: ignore[no-any-return]


# what is asked --------------------------------------------------------------------------------------------------


def _labelled(home: str, session: str | None = None, **more: tuple[str, ...]) -> str:
    import json

    labels = [f"{HOME_LABEL}={home}", f"{SESSION_LABEL}={session}" if session else SESSION_LABEL]
    return json.dumps({"label": labels, **more})


async def create(docker: Any, name: str, config: Mapping[str, Any], url: str, made_for: str) -> Box:
    """Create and start a container. One that does not start is removed again."""
    container = await docker.containers.create(config=dict(config), name=name)
    try:
        await container.start()
        shown = await container.show()
        box = box_of(url, shown, str(config["User"]), made_for)
        if box is None:
            raise EngineFailed(await _why_ended(docker, shown["Id"]))
        return box
    except BaseException:
        async with asyncio.timeout(PROBE_S):
            await container.delete(force=True, v=True)
        raise


async def users(docker: Any, url: str) -> Users:
    """An engine may map users. Whatever it does, files made inside are to be ours, and so are the processes."""
    we = f"{os.getuid()}:{os.getgid()}"
    if "Libpod-Api-Version" in await _ping(docker):  # Podman does not tell, but its socket is who it is
        return Users(we, "keep-id" if os.stat(url.removeprefix("unix://")).st_uid else "")
    options = " ".join(map(str, (await docker.system.info()).get("SecurityOptions") or []))
    if "rootless" in options:
        return Users("0:0")  # root there has our rights here, and no more
    return Users(we, "host" if "userns" in options else "")


async def unpause(docker: Any, container: str) -> None:
    await docker.containers.container(container).unpause()


def box_of(url: str, shown: Mapping[str, Any], user: str, made_for: str) -> Box | None:
    """None for a container that has ended, whether its engine knows that or not."""
    pid = int(shown["State"]["Pid"])
    start = process.start_time(pid) if pid else None
    if start is None:
        return None
    return Box(url, shown["Id"], pid, start, process.boot_id(), user, made_for, _group(pid, shown["Id"]))


async def remove(docker: Any, container: str) -> None:
    """With its volumes. One that is gone already is no error."""
    import aiodocker

    try:
        await docker.containers.container(container).delete(force=True, v=True)
    except aiodocker.DockerError as error:
        if error.status not in (404, 409):  # 409: somebody else removes it just now
            raise


async def remove_all(docker: Any, home: str, session: str) -> None:
    """Every container of the session, by its labels; a name alone proves nothing."""
    for container in await docker.containers.list(all=True, filters=_labelled(home, session)):
        await remove(docker, container.id)


async def sessions(docker: Any, home: str) -> set[str]:
    """Those that have a container, as its label says."""
    listed = await docker.containers.list(all=True, filters=_labelled(home))
    return {str(container["Labels"].get(SESSION_LABEL)) for container in listed}


async def execute(docker: Any, box: Box, argv: list[str], *, env: Mapping[str, str]) -> None:
    """Start a program in the container and leave it alone."""
    import aiodocker

    container = docker.containers.container(box.id)
    try:
        made = await container.exec(argv, environment=dict(env), user=box.user, stdout=False, stderr=False)
        await made.start(detach=True)
    except aiodocker.DockerError as error:
        if not box.alive:
            raise EngineFailed(await _why_ended(docker, box.id)) from None
        if "executable file not found" in error.message:
            raise EngineFailed(f"{argv[0]} is not in the image") from None
        raise


async def _why_ended(docker: Any, container: str) -> str:
    """Of one that was just started. Its init says by its exit code that there is no such program."""
    code = (await docker.containers.container(container).wait())["StatusCode"]
    return f"{FIRST_PROGRAM[0]} is not in the image" if code == NO_PROGRAM else f"its container ended at once ({code})"


async def exit_code(docker: Any, container: str, argv: list[str], *, user: str) -> int | None:
    """Of a program in the container; None when the engine does not know."""
    made = await docker.containers.container(container).exec(argv, user=user)
    async with made.start(detach=False) as stream:
        while await stream.read_out() is not None:
            pass
    return (await made.inspect()).get("ExitCode")  # type: ignore[no-any-return]


async def session_is_alive(docker: Any, box: Box) -> bool:
    """Whether tmux's session ``agent`` is there. Raises ``EngineFailed`` when tmux could not be run."""
    code = await exit_code(docker, box.id, ["tmux", "has-session", "-t", "agent"], user=box.user)
    if code not in (0, 1):
        raise EngineFailed(f"cannot query tmux in the container (exit code {code})")
    return code == 0


async def check(docker: Any) -> None:
    """Whether it answers at all."""
    await docker.containers.list(limit=1)


async def events(url: str, home: str) -> AsyncIterator[str]:
    """The session of every container of ours to which something happens, from now on, for as long as the engine is
    there. What happens before it listens to us is told too."""
    now = f"{time.time():.9f}"
    await asyncio.to_thread(load)
    async with _client(url) as docker:
        told = docker.events.subscribe(since=now, filters=_labelled(home, event=EVENTS))
        while (event := await told.get()) is not None:
            session = event.get("Actor", {}).get("Attributes", {}).get(SESSION_LABEL)
            if session:
                yield session


# the kernel's side of a container -------------------------------------------------------------------------------


def _group(pid: int, container: str) -> str:
    """The control group's folder. Only one that is named after the container is its own for sure."""
    folders = [os.path.dirname(path) for path in _freezers(pid) if os.path.exists(path)]
    return next((folder for folder in folders if container in folder), "")


def _runs(pid: bytes) -> bool:
    start = process.start_time(int(pid))
    return start is not None and process.is_running(int(pid), start)


def _freezers(pid: int) -> list[str]:
    found = []
    for line in _read(f"/proc/{pid}/cgroup").decode().splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds == "":
            found += [f"/sys/fs/cgroup{path}/cgroup.freeze", f"/sys/fs/cgroup/unified{path}/cgroup.freeze"]
        elif "freezer" in kinds.split(","):
            found.append(f"/sys/fs/cgroup/freezer{path}/freezer.state")
    return found


def _read(path: str) -> bytes:
    try:
        return files.read_bytes(path)
    except OSError:
        return b""
