"""A private container engine for tests, with two images made of this machine's own programs: nothing is pulled."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hitchpost.cli.ps import from_hub, shapes_from_files
from hitchpost.model.record import ALL
from tests.ground import Ground, Truth
from tests.namespaces import as_user, known_to_machine, seen_with, with_source
from tests.support import BEFORE, LASTING, Answer, Hitch, Process, end, eventually, halt
from tests.warm import WarmProcess, spawn

SOMEBODY = 4321
"""A user id that this machine has no name for."""
PLAIN, WITH_PYTHON = "hp-plain", "hp-python"
ECHO = 'stty -echo; echo ready; while read -r line; do echo "<$line>"; [ "$line" = leave ] && exit 3; done'
"""An agent that says what it was told, and leaves when it is told to."""
STALE = "stale (container running, session dead)"
PROGRAMS = (
    "sh",
    "bash",
    "tmux",
    "sleep",
    "cat",
    "ls",
    "env",
    "stty",
    "id",
    "mkdir",
    "mv",
    "rm",
    "true",
    "false",
    "date",
    "head",
    "tail",
    "seq",
    "kill",
    "git",
    "chmod",
    "ln",
    "touch",
    "wc",
    "cp",
    "mkfifo",
)


class EngineEnded(Exception):
    """Raised when an engine ends while somebody waits for its answer."""


@dataclass(slots=True)
class Engine:
    """``dockerd`` with a data root and a socket of its own."""

    folder: Path
    pid: int = 0
    images: set[str] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"unix://{self.folder}/docker.sock"

    def words(self) -> list[str]:
        words = ["--data-root", str(self.folder / "data"), "--exec-root", str(self.folder / "exec"), "-H", self.url]
        words += ["-p", str(self.folder / "pid"), "--iptables=false", "--ip6tables=false", "--bridge=none"]
        return ["dockerd", *words]

    def start(self) -> None:
        self.begin([*self.words(), "--live-restore", "--debug"])  # it writes down what it is asked

    def begin(self, argv: list[str], tries: int = 3) -> None:
        """Start the engine as nobody's child: it outlives the test that needs it first."""
        with open(self.folder / "log", "ab") as log:
            said = subprocess.run(
                ["sh", "-c", 'setsid "$@" </dev/null >&2 & echo $!', "sh", *argv],
                env={
                    "PATH": os.environ["PATH"],
                    "TMPDIR": str(self.folder),
                    "CONTAINERS_CONF": str(self.folder / "containers.conf"),
                },
                stdout=subprocess.PIPE,
                stderr=log,
                check=True,
            )
        self.pid = int(said.stdout)
        try:
            eventually(self._answers, 60, "the container engine")
        except EngineEnded as ended:
            if tries == 1 or "timeout waiting for containerd to start" not in str(ended):
                raise
            self.begin(argv, tries - 1)  # Docker gives its own containerd no more than 15 s

    def _answers(self) -> bool:
        if Process.read(self.pid) is None:
            raise EngineEnded(f"the engine has ended: {(self.folder / 'log').read_text()[-2000:]}")
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(10)
            try:
                asking.connect(self.url.removeprefix("unix://"))
                asking.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
                return b" 200 " in asking.recv(100)
            except OSError:
                return False

    def docker(self, *words: str, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        argv = ["docker", "-H", self.url, *words]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, **options)
        if check and done.returncode:
            raise AssertionError(f"docker {' '.join(words)}: {done.stderr}")
        return done

    def pause(self, container: str) -> None:
        """A kernel that is busy says now and then that it cannot freeze a group, and can a moment later."""

        def paused() -> bool:
            done = self.docker("pause", container, check=False)
            assert done.returncode == 0 or "unable to freeze" in done.stderr, done.stderr
            return done.returncode == 0

        eventually(paused, what=f"a paused {container}")

    def containers(self) -> list[str]:
        return self.docker("ps", "-aq", "--no-trunc").stdout.split()

    def inspect(self, container: str) -> dict[str, Any]:
        return json.loads(self.docker("inspect", container).stdout)[0]

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        eventually(lambda: Process.read(self.pid) is None, what="the end of dockerd")

    def end(self) -> None:
        self.signal(signal.SIGTERM)
        eventually(lambda: Process.read(self.pid) is None, 60, "the end of the engine")

    def load(self, image: str) -> None:
        """Once each: it takes seconds."""
        if image in IMAGES and image not in self.images:
            load_image(self, image, IMAGES[image]())
            self.images.add(image)

    def without(self, program: str) -> str:
        """An image that lacks a program."""
        name = f"{PLAIN}-without-{program}"
        if name not in self.images:
            self.docker("run", "--network", "none", "--name", name, PLAIN, "rm", f"/usr/bin/{program}")
            self.docker("commit", name, name)
            self.docker("rm", name)
            self.images.add(name)
        return name

    def processes(self) -> list[Process]:
        """The engine, what it has started, and what watches its containers."""
        mark = f"{self.folder}/"
        return [process for process in Process.all() if any(mark in word for word in process.argv)]

    def close(self) -> None:
        for process in self.processes():
            os.kill(process.pid, signal.SIGCONT)
        for container in self.docker("ps", "-aq", check=False).stdout.split():
            self.docker("rm", "-f", "-v", container, check=False)
        # all that it holds goes with its folder, so it need not take seconds to put it in order
        end((), at_once=self.processes())
        mark = f"{self.folder}/"
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mount in reversed([mount for mount in mounts if mount.startswith(mark)]):
            subprocess.run(["umount", "-l", mount], check=True)
        shutil.rmtree(self.folder)


@dataclass(slots=True)
class Podman(Engine):
    """Podman's service, which speaks Docker's language."""

    def configure(self) -> None:
        # this machine may allow fewer descriptors than Podman hands out, and crun wants newer control groups
        (self.folder / "containers.conf").write_text(
            '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n'
            '[engine]\ncgroup_manager = "cgroupfs"\nruntime = "runc"\n'
        )

    def start(self) -> None:
        self.configure()
        argv = ["podman", "--root", f"{self.folder}/root", "--runroot", f"{self.folder}/run"]
        self.begin([*argv, "system", "service", "-t", "0", self.url])


@dataclass(slots=True)
class RootlessPodman(Podman):
    """Podman's service of somebody who is not root. Only it sees that the machine knows this user."""

    def start(self) -> None:
        self.configure()
        argv = ["podman", "--storage-driver", "vfs", "--root", f"{self.folder}/root", "--runroot", f"{self.folder}/run"]
        self.begin([*somebodys(self.folder), *argv, "system", "service", "-t", "0", self.url])

    def close(self) -> None:
        Podman.close(self)
        end_somebodys(self.folder)


@dataclass(slots=True)
class RootlessDocker(Engine):
    """``dockerd`` of somebody who is not root."""

    def start(self) -> None:
        kit = ["rootlesskit", "--net=host", "--copy-up=/etc", "--copy-up=/run", "--propagation=rslave"]
        # what is linked there now is the machine's
        clear = ["sh", "-c", 'rm -f /run/docker /run/containerd /run/xtables.lock; exec "$@"', "sh"]
        argv = [*self.words(), "--rootless", "--storage-driver", "vfs"]
        self.begin([*somebodys(self.folder), *kit, *clear, *argv])

    def close(self) -> None:
        Engine.close(self)
        end_somebodys(self.folder)


def somebodys(folder: Path) -> list[str]:
    """What runs below this is somebody's, and sees a machine that knows them."""
    for name in ("home", "xdg"):
        (folder / name).mkdir(mode=0o700)
    for path in (folder, *folder.iterdir()):
        os.chown(path, SOMEBODY, SOMEBODY)
    known_to_machine(folder, "somebody", SOMEBODY)
    places = ["env", f"HOME={folder}/home", f"XDG_RUNTIME_DIR={folder}/xdg"]
    return [*seen_with(folder), *with_source(), *places, *as_user(SOMEBODY)]


def end_somebodys(folder: Path) -> None:
    """Of an engine that is gone: what held the namespaces of its user. Other tests have processes of this user, too."""
    for process in Process.all():
        if owner(process.pid) == SOMEBODY and process.belongs_to(folder):
            os.kill(process.pid, signal.SIGKILL)


@dataclass(slots=True)
class Taking(Engine):
    """``dockerd`` that ends its containers when it ends."""

    def start(self) -> None:
        self.begin(self.words())


@dataclass(slots=True)
class Remapping(Engine):
    """``dockerd`` that gives containers other users than the machine's."""

    def start(self) -> None:
        self.folder.chmod(0o711)
        known_to_machine(self.folder, "somebody", SOMEBODY)
        self.begin([*seen_with(self.folder), *self.words(), "--userns-remap", "somebody"])


def somebody(ground: Ground) -> Ground:
    """The ground of a person who is not root. All that they may do more is to read this Python, wherever it is."""
    for path in (ground.watch.scratch, *ground.watch.scratch.rglob("*")):
        os.chown(path, SOMEBODY, SOMEBODY)
    return replace(ground, hitch=Hitch((*as_user(SOMEBODY, "dac_read_search"), *ground.hitch.command)))


def owner(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return -1


ROOTLESS = {"newuidmap": "uidmap", "slirp4netns": "slirp4netns", "rootlesskit": "rootlesskit"}
PODMAN = {"podman": "podman", "runc": "runc", "/usr/libexec/podman/catatonit": "catatonit"}
DOCKER = {"dockerd": "docker.io"}


def why_not(needed: dict[str, str]) -> str:
    """Why an engine that needs these programs cannot be had here."""
    missing = [package for program, package in needed.items() if shutil.which(program) is None]
    if missing:
        return f"these packages are missing: {', '.join(missing)}"
    return "" if os.geteuid() == 0 else "only root can set it up"


_engine: Engine | None = None


def the_engine() -> Engine:
    """One for all tests of this process. Skips the test where there can be none, and says why."""
    global _engine
    if why := why_not(DOCKER):
        pytest.skip(f"no container engine: {why}")
    if _engine is None:
        engine, _ = begun(Engine)
        atexit.register(engine.close)
        engine.load(PLAIN)
        _engine = engine
    elif Process.read(_engine.pid) is None:
        _engine.start()  # a test that failed has left it like that
    return _engine


def load_image(engine: Engine, name: str, more: tuple[str, ...]) -> None:
    process = subprocess.Popen(
        ["docker", "-H", engine.url, "import", "-", name], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert process.stdin is not None
    with tarfile.open(fileobj=process.stdin, mode="w|") as image:
        add_link(image, "bin", "usr/bin")
        add_link(image, "lib", "usr/lib")
        add_link(image, "lib64", "usr/lib64")
        if more:
            add_link(image, "usr/bin/python3", os.path.realpath(sys.executable))
        inside = {in_image(path): path for path in sorted(libraries(PROGRAMS) | set(more))}
        inside |= {f"usr/share/terminfo/{entry.parent.name}/{entry.name}": str(entry) for entry in terminfo()}
        inside |= {"usr/lib/locale/C.utf8": "/usr/lib/locale/C.utf8"}
        parents = {str(parent) for name in inside for parent in Path(name).parents} - {"."}
        for folder in sorted(parents | {"etc"}):  # an engine may make those that are not named for root alone
            add_folder(image, folder, 0o755)
        add_folder(image, "tmp", 0o1777)
        for name, path in inside.items():
            image.add(os.path.realpath(path), name, recursive=True)
    process.stdin.close()
    assert process.wait(60) == 0


def in_image(path: str) -> str:
    """``/lib/x`` is ``usr/lib/x`` there."""
    first = path.lstrip("/").split("/")[0]
    return path.lstrip("/") if first == "usr" or first not in ("bin", "lib", "lib64") else f"usr{path}"


def libraries(programs: tuple[str, ...]) -> set[str]:
    """Every program under its plain name, and what it is linked to."""
    paths = {name: shutil.which(name) for name in programs}
    missing = [name for name, path in paths.items() if path is None]
    assert not missing, f"these programs are needed for the image: {missing}"
    return {f"/usr/bin/{name}" for name in programs} | linked(*filter(None, paths.values()))


def linked(*paths: str) -> set[str]:
    said = subprocess.run(["ldd", *paths], capture_output=True, text=True, check=False).stdout
    return {word for word in said.split() if word.startswith("/") and not word.endswith(":")}


def python_files() -> tuple[str, ...]:
    """A Python as small as ``python3 -I -S`` needs it, where this one lives."""
    program = os.path.realpath(sys.executable)
    library = sysconfig.get_path("stdlib")
    modules = ("os", "stat", "posixpath", "genericpath", "_collections_abc", "codecs", "io", "abc", "signal", "enum")
    more = ("types", "functools", "collections", "operator", "keyword", "reprlib", "encodings", "re", "warnings")
    names = [f"{library}/{name}{suffix}" for name in (*modules, *more) for suffix in (".py", "")]
    return (program, *linked(program), *(name for name in names if os.path.exists(name)))


IMAGES: dict[str, Callable[[], tuple[str, ...]]] = {PLAIN: tuple, WITH_PYTHON: python_files}
"""What each holds beside the programs."""


def terminfo() -> list[Path]:
    places = [Path(place) for place in ("/usr/share/terminfo", "/lib/terminfo", "/etc/terminfo")]
    wanted = ("x/xterm-256color", "s/screen-256color", "t/tmux-256color", "s/screen", "x/xterm", "t/tmux")
    return [place / name for name in wanted for place in places if (place / name).exists()][: len(wanted) * 2]


def add_link(image: tarfile.TarFile, name: str, target: str) -> None:
    link = tarfile.TarInfo(name)
    link.type, link.linkname = tarfile.SYMTYPE, target
    image.addfile(link)


def add_folder(image: tarfile.TarFile, name: str, mode: int) -> None:
    folder = tarfile.TarInfo(name)
    folder.type, folder.mode = tarfile.DIRTYPE, mode
    image.addfile(folder)


@dataclass(frozen=True, slots=True)
class Inline(Hitch):
    """The command in the test's own process, where that makes no difference: to load an engine's client takes longer
    than most of what is asked of it."""

    def __call__(
        self,
        *args: str | os.PathLike[str],
        check: bool | int = True,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout_s: float = 60,
    ) -> Answer:
        # ps ends its process with force, and a browser's event loop in this thread would be in the way of the engine's
        if stdin or env or args[0] == "ps" or asyncio._get_running_loop() is not None:
            return Hitch.__call__(self, *args, check=check, stdin=stdin, env=env, cwd=cwd, timeout_s=timeout_s)
        return self.here(*args, check=check, cwd=cwd or ".")


@dataclass(slots=True)
class Boxed:
    """Sessions in containers."""

    ground: Ground
    engine: Engine

    def run(
        self,
        *argv: str,
        image: str = PLAIN,
        name: str = "dev",
        place: Path | None = None,
        options: tuple[str, ...] = (),
    ) -> Truth:
        words = ("run", "--json", "--runtime", "docker", "--image", image, "--network", "none", "--name", name)
        where = ("--workspace", str(place or self.ground.place))
        self.engine.load(image)
        return self.ground.made(*words, *where, *options, "--", *argv)

    def container(self, session: Truth) -> str:
        return json.loads((session.folder / "box.json").read_bytes())["id"]

    def processes(self, session: Truth) -> list[Process]:
        container = self.container(session)
        return [one for one in Process.all() if container in _cgroup(one.pid)]

    def label(self, session: Truth) -> str:
        """Without how long it has been idle: that is the business of a machine that is slow."""
        return self.labels()[session.id]

    def labels(self) -> dict[str, str]:
        """What ``hitch ps --json --all`` prints, without a process for it."""
        home = str(self.ground.home)
        rows = json.loads(from_hub(home, "/api/sessions?all=True") or shapes_from_files(home, ALL))
        return {row["id"]: row["label"].partition(" (idle ")[0] for row in rows}


def _cgroup(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return ""


@contextmanager
def private(kind: type[Engine]) -> Iterator[Engine]:
    """An engine for one test."""
    engine, held = begun(kind)
    try:
        engine.load(PLAIN)
        yield engine
    finally:
        engine.close()
        LASTING.discard(held)
        os.close(held)


def begun(kind: type[Engine]) -> tuple[Engine, int]:
    """An engine, and the descriptor that it lives by: it is closed when this process has ended, whatever ended it.

    A worker that is interrupted may do nothing more, and the engine is not its child.
    """
    engine = kind(Path(tempfile.mkdtemp(prefix="hpd-", dir="/tmp")))
    theirs, held = os.pipe()
    LASTING.add(held)
    with open(os.devnull, "w") as nothing:
        standard = (theirs, nothing.fileno(), nothing.fileno())
        guard = spawn("tests.boxes", [kind.__name__, str(engine.folder)], BEFORE, standard, cwd="/", session=True)
        assert isinstance(guard, WarmProcess)
        guard.forget()
    os.close(theirs)
    engine.start()
    return engine, held


def main() -> None:
    """Close an engine when nobody holds the other end of the standard input any more."""
    kind, folder = sys.argv[1:]
    sys.stdin.buffer.read()
    if os.path.exists(folder):
        globals()[kind](Path(folder)).close()


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that neither hears nor does anything meanwhile."""
    halt(pid)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
