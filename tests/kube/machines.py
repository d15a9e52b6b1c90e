"""Machines of a cluster: network namespaces, joined by a bridge in one more, each with mounts and a name of its own.

All that belongs to a cluster carries its mark: its folder, its namespaces, its cgroups and the link from this machine.
So ``reap`` finds everything, whoever began it, and nothing else.
"""

from __future__ import annotations

import fcntl
import ipaddress
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support import BEFORE, Process, eventually, place_in_memory

PREFIX = "hpk"
FOLDERS = Path(place_in_memory(0))  # the same for every process, however much is free when it asks
CGROUPS = Path("/sys/fs/cgroup")
TRACKING = CGROUPS / "pids"
"""Of the trees of cgroups, the one by which processes are found."""
RANGE = ipaddress.ip_network("198.18.0.0/15")
"""Addresses that are for tests of networks, and lead nowhere else."""
SIZE = 20
"""A cluster has so much of it: a /24 for machines, a /22 for services, and a /24 for the pods of each node."""
NAMESPACES = Path("/run/netns")
# What kubelet would set for the whole machine: it finds it set.
SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


class DaemonEnded(Exception):
    """Raised when a daemon ends while somebody waits for it."""


def run(*argv: str | os.PathLike[str], check: bool = True) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, env=clean())
    if check and done.returncode:
        raise AssertionError(f"{' '.join(map(str, argv))}: {done.stderr}")
    return done.stdout


def clean() -> dict[str, str]:
    """An environment that names no folder of a test: what is started lasts longer."""
    path = f"{BEFORE.get('PATH', '')}:/usr/sbin:/sbin"
    return {"PATH": path, "HOME": "/root", "AWS_EC2_METADATA_DISABLED": "true"}


@dataclass(frozen=True, slots=True)
class Network:
    """The addresses of a cluster, and its machines: ``cp``, ``n1`` …, and ``out``, which runs nothing of Kubernetes."""

    mark: str
    base: str
    """The first address."""
    nodes: int

    def at(self, offset: int) -> str:
        return str(ipaddress.ip_address(self.base) + offset)

    @property
    def host(self) -> str:
        """This machine, as the cluster sees it."""
        return self.at(1)

    @property
    def machines(self) -> tuple[str, ...]:
        return ("cp", *(f"n{number}" for number in range(1, self.nodes + 1)), "out")

    def address(self, machine: str) -> str:
        number = {"cp": 0, "out": 99}.get(machine)
        return self.at(10 + (int(machine[1:]) if number is None else number))

    def pods(self, number: int) -> str:
        return f"{self.at(256 * (7 + number))}/24"

    @property
    def all_pods(self) -> str:
        return f"{self.at(256 * 8)}/21"

    @property
    def services(self) -> str:
        return f"{self.at(256 * 4)}/22"

    @property
    def first_service(self) -> str:
        return self.at(256 * 4 + 1)

    def namespace(self, machine: str) -> str:
        return f"{self.mark}-{machine}"

    def make(self) -> None:
        """The bridge's own address is the way to everywhere else: there, it ends."""
        bridge = self.namespace("br")
        run("ip", "netns", "add", bridge)
        run("ip", "-n", bridge, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", bridge, "addr", "add", f"{self.at(2)}/24", "dev", "br0")
        run("ip", "-n", bridge, "link", "set", "br0", "up")
        inside(bridge, "net/ipv4/ip_forward", "0")
        for machine in self.machines:
            space = self.namespace(machine)
            run("ip", "netns", "add", space)
            run("ip", "-n", bridge, "link", "add", f"v-{machine}", "type", "veth", "peer", "eth0", "netns", space)
            run("ip", "-n", bridge, "link", "set", f"v-{machine}", "master", "br0", "up")
            run("ip", "-n", space, "addr", "add", f"{self.address(machine)}/24", "dev", "eth0")
            run("ip", "-n", space, "link", "set", "lo", "up")
            run("ip", "-n", space, "link", "set", "eth0", "up")
            inside(space, "net/ipv4/ip_forward", "1")
            run("ip", "-n", space, "route", "add", "default", "via", self.at(2))
            self._routes("ip", "-n", space, but=machine)
        # the way in from this machine: one link, and the routes that go with it
        run("ip", "-n", bridge, "link", "add", "v-host", "type", "veth", "peer", self.mark, "netns", str(os.getpid()))
        run("ip", "-n", bridge, "link", "set", "v-host", "master", "br0", "up")
        run("ip", "addr", "add", f"{self.host}/24", "dev", self.mark)
        run("ip", "link", "set", self.mark, "up")
        self._routes("ip")

    def _routes(self, *ip: str, but: str = "") -> None:
        for number in range(1, self.nodes + 1):
            if but != f"n{number}":
                run(*ip, "route", "add", self.pods(number), "via", self.address(f"n{number}"))
        if not but.startswith("n"):  # a node knows services itself; all others ask the first one
            run(*ip, "route", "add", self.services, "via", self.address("n1"))

    def cut(self, machine: str) -> None:
        run("ip", "-n", self.namespace("br"), "link", "set", f"v-{machine}", "down")

    def heal(self, machine: str) -> None:
        run("ip", "-n", self.namespace("br"), "link", "set", f"v-{machine}", "up")


def inside(namespace: str, setting: str, value: str) -> None:
    run("nsenter", f"--net={NAMESPACES / namespace}", "sh", "-c", f"echo {value} > /proc/sys/{setting}")


@contextmanager
def one_at_a_time(held: Path) -> Iterator[None]:
    """Whoever chooses addresses."""
    descriptor = os.open(held, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def free_base() -> str:
    """A part of the range to which this machine has no route yet."""
    routes = json.loads(run("ip", "-j", "route"))
    taken = [ipaddress.ip_network(route["dst"]) for route in routes if route["dst"] != "default"]
    for part in RANGE.subnets(new_prefix=SIZE):
        if not any(part.overlaps(other) for other in taken):
            return str(part.network_address)
    raise AssertionError(f"expected a free part of {RANGE}; this machine has routes to all of it")


def make_cgroups(mark: str, names: Sequence[str]) -> None:
    for tree in CGROUPS.iterdir():
        if not tree.is_dir():
            continue
        for path in (tree / mark, *(tree / mark / name for name in names)):
            path.mkdir(exist_ok=True)
            if tree.name.startswith("cpuset"):  # a new one has none, and takes no process then
                for file in ("cpuset.cpus", "cpuset.mems"):
                    if (path / file).exists():
                        (path / file).write_text((path.parent / file).read_text())


def launch(mark: str, argv: Sequence[str | os.PathLike[str]], log: Path) -> Process:
    """Start a process that is nobody's child, and belongs to the cluster with all that it will start."""
    join = f'echo $$ > {TRACKING / mark}/daemons/cgroup.procs && exec "$@"'
    with open(log, "ab") as said:
        done = subprocess.run(
            ["sh", "-c", 'setsid "$@" </dev/null >&2 & echo $!', "sh", "sh", "-c", join, "sh", *argv],
            cwd="/",
            env=clean(),
            stdout=subprocess.PIPE,
            stderr=said,
            check=True,
        )
    process = Process.read(int(done.stdout))
    if process is None:
        raise DaemonEnded(f"{argv[0]}: {log.read_text(errors='replace')[-2000:]}")
    return process


def processes(mark: str) -> set[int]:
    """Of the cluster: its daemons, and all in its pods."""
    found: set[int] = set()
    for folder, _, files in os.walk(TRACKING / mark):
        if "cgroup.procs" in files:
            with suppress(OSError):
                found.update(map(int, Path(folder, "cgroup.procs").read_text().split()))
    return found


def reap(mark: str) -> None:
    """End and remove all that carries the mark."""
    assert mark.startswith(PREFIX)
    assert len(mark) > len(PREFIX)

    def ended() -> bool:
        found = processes(mark)
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not found

    eventually(ended, what=f"the end of the processes of {mark}")
    if Path("/sys/class/net", mark).exists():
        run("ip", "link", "del", mark, check=False)
    for space in sorted(NAMESPACES.glob(f"{mark}-*")):
        run("ip", "netns", "del", space.name, check=False)
    assert not list(NAMESPACES.glob(f"{mark}-*"))
    eventually(lambda: not _cgroups(mark), what=f"the end of the cgroups of {mark}")
    folder = FOLDERS / mark
    left = [line for line in Path("/proc/mounts").read_text().splitlines() if f"{folder}/" in line]
    assert not left, f"still mounted: {left}"
    shutil.rmtree(folder, ignore_errors=True)


def _cgroups(mark: str) -> list[Path]:
    """Those that could not be removed yet."""
    for tree in CGROUPS.iterdir():
        for folder, _, _ in os.walk(tree / mark, topdown=False):
            with suppress(OSError):
                os.rmdir(folder)
    return list(CGROUPS.glob(f"*/{mark}"))


def new_folder() -> Path:
    """A folder with a new mark, which says from the beginning whose it is."""
    draft = FOLDERS / f".{PREFIX}-{os.getpid()}"
    draft.mkdir(mode=0o711)
    write_mark(draft / "owner", os.getpid())
    folder = FOLDERS / f"{PREFIX}{os.urandom(3).hex()}"
    draft.rename(folder)
    return folder


def write_mark(file: Path, pid: int) -> None:
    process = Process.read(pid)
    assert process is not None
    file.write_text(f"{pid} {process.start_ticks}")


def marked(file: Path) -> Process | None:
    """The process that a file names, if it still lives."""
    try:
        pid, ticks = map(int, file.read_text().split())
    except FileNotFoundError:
        return None
    found = Process.read(pid)
    return found if found and found.start_ticks == ticks and not found.is_zombie else None


def sweep() -> list[str]:
    """Reap the clusters whose owner and guard are both gone."""
    folders = [
        path for path in FOLDERS.glob(f"{PREFIX}??????") if path.lstat().st_uid == 0 and (path / "owner").exists()
    ]
    stale = [path.name for path in folders if not marked(path / "owner") and not marked(path / "guard")]
    for mark in stale:
        reap(mark)
    return stale


def guard(folder: Path) -> None:
    """Begin the process that reaps the cluster of this folder when its owner is gone, whatever ended that."""
    argv = [sys.executable, "-m", "tests.kube.machines", str(folder)]
    said = subprocess.run(
        ["sh", "-c", 'setsid "$@" </dev/null >/dev/null 2>&1 & echo $!', "sh", *argv],
        cwd=Path(__file__).parents[2],
        env=clean(),
        stdout=subprocess.PIPE,
        check=True,
    )
    write_mark(folder / "guard", int(said.stdout))


def main() -> None:
    """Wait for the end of an owner, and reap."""
    folder = Path(sys.argv[1])
    pid = int((folder / "owner").read_text().split()[0])
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        pass
    else:
        if marked(folder / "owner"):
            select.select([descriptor], [], [])
    if folder.exists():
        reap(folder.name)


if __name__ == "__main__":
    main()
