"""A real PostgreSQL. The ``database`` fixture gives a fresh database in a server that all workers of a run share; the
``postgres`` fixture a server of the test's own, which can be stopped, started and killed."""

from __future__ import annotations

import ctypes
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests import runs
from tests.support import Process, eventually, place_in_memory
from tests.undisturbed import undisturbed

PACKAGE = {"/usr/bin/pg_ctlcluster": "postgresql"}
PLACES = Path("/usr/lib/postgresql")
"""Where Debian has the programs of each version."""
SUPERUSER, OWNER = "postgres", "hitch"
"""The second owns the databases of tests, and may do nothing else: all that the product needs."""
LOOPBACK = "127.0.0.1"
QUICK = ("fsync=off", "full_page_writes=off")
"""What was committed survives the death of all its processes (without ``synchronous_commit`` it would not), but not
that of the machine."""
PR_SET_PDEATHSIG = 1


class ServerEnded(Exception):
    """Raised when a server ends while somebody waits for it."""


def programs() -> Path | None:
    """The folder of the newest version."""
    found = [place.parent for place in PLACES.glob("*/bin/postgres")]
    return max(found, key=lambda place: int(place.parent.name), default=None)


def why_not() -> str:
    return "" if programs() else "the package postgresql is missing"


@dataclass(slots=True)
class Server:
    """``postgres`` with a folder, a port and a Unix socket of its own. It ends with the process that started it.

    ``also`` are more addresses of this machine where it listens. ``durable``: it writes through to the disk.
    """

    folder: Path
    also: tuple[str, ...] = ()
    durable: bool = False
    port: int = 0
    password: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def make(self) -> None:
        self.port = free_port()
        if os.geteuid() == 0:
            os.chown(self.folder, *_ids())
        words = ("-U", SUPERUSER, "--no-sync", "-A", "trust", "-E", "UTF8", "--locale=C", "-D", self.data)
        done = subprocess.run([self._program("initdb"), *words], capture_output=True, text=True, **_as_postgres())
        assert done.returncode == 0, done.stderr
        # who may open the folder may do everything; others need the password
        (self.data / "pg_hba.conf").write_text("local all all trust\nhost all all all scram-sha-256\n")
        self.start()
        with self.connect(SUPERUSER) as asking:
            asking.execute(f"create role {OWNER} login password '{self.password}'")

    def words(self) -> list[str]:
        """The command."""
        options = [
            f"listen_addresses={','.join((LOOPBACK, *self.also))}",
            f"unix_socket_directories={self.folder}",
            f"port={self.port}",
            "max_connections=300",
            "shared_buffers=32MB",
            "dynamic_shared_memory_type=mmap",  # files of its own, not of the machine: they go with its folder
            *(() if self.durable else QUICK),
        ]
        return [self._program("postgres"), "-D", str(self.data), *(f"--{option}" for option in options)]

    def start(self) -> None:
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                self.words(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent,
                start_new_session=True,  # Ctrl-C is for the tests
                **_as_postgres(),
            )
        eventually(self._answers, what="PostgreSQL")

    def _answers(self) -> bool:
        if not self.running:
            raise ServerEnded(f"PostgreSQL has ended: {(self.folder / 'log').read_text()[-2000:]}")
        try:
            self.connect(SUPERUSER).close()
        except psycopg.OperationalError:
            return False
        return True

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def processes(self) -> list[Process]:
        """The server's. When it was killed, the others see it and go."""
        mark = str(self.data)
        return [one for one in Process.all() if not one.is_zombie and _folder(one.pid) == mark]

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Close every connection and end: SIGINT rolls back and writes all, SIGQUIT leaves that to the next start."""
        assert self.process is not None
        if self.running:
            self.process.send_signal(how)
        self.process.wait(60)
        eventually(lambda: not self.processes(), what="the end of PostgreSQL's processes")

    def kill(self) -> None:
        """``kill -9``."""
        self.stop(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """End it, and leave nothing."""
        if self.process:
            self.stop(signal.SIGQUIT)
        left = self.data / "postmaster.pid"
        if left.exists():  # it was killed, and could not give back its shared memory
            segment = left.read_text().splitlines()[6].split()[1]
            subprocess.run(["ipcrm", "--shmem-id", segment], check=False, capture_output=True)
        shutil.rmtree(self.folder)

    def connect(self, user: str = OWNER, database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        """Through the Unix socket. Each statement counts at once."""
        return psycopg.connect(
            host=str(self.folder), port=self.port, user=user, dbname=database, autocommit=True, connect_timeout=10
        )

    def address(self, database: str, host: str = LOOPBACK) -> str:
        return f"postgresql://{OWNER}:{self.password}@{host}:{self.port}/{database}"

    def socket_address(self, database: str) -> str:
        return f"postgresql://{OWNER}@/{database}?host={self.folder}&port={self.port}"

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """The name of a database with nothing in it, which is gone afterwards, with whoever uses it."""
        name = f"test_{secrets.token_hex(6)}"
        with self.connect(SUPERUSER) as asking:
            asking.execute(f"create database {name} owner {OWNER} strategy file_copy")
        try:
            yield name
        finally:
            with self.connect(SUPERUSER) as asking:
                asking.execute(f"drop database {name} with (force)")

    def _program(self, name: str) -> str:
        found = programs()
        assert found, why_not()
        return str(found / name)


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGQUIT))


def _ids() -> tuple[int, int]:
    user = pwd.getpwnam("postgres")  # made by the package; PostgreSQL does not run as root
    return user.pw_uid, user.pw_gid


def _as_postgres() -> dict[str, Any]:
    common = {"cwd": "/", "env": {"PATH": os.environ["PATH"], "LC_ALL": "C"}}
    if os.geteuid():
        return common
    uid, gid = _ids()
    return {"user": uid, "group": gid, "extra_groups": [], **common}


def _folder(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def free_port() -> int:
    with socket.socket() as asking:
        asking.bind((LOOPBACK, 0))
        port = asking.getsockname()[1]
    assert isinstance(port, int)
    return port


def the_server() -> Server:
    """The one of this run. Nobody may stop it."""
    if why := why_not():
        pytest.skip(f"no PostgreSQL: {why}")
    found = runs.shared("tests.postgres")
    return Server(Path(found["folder"]), port=found["port"], password=found["password"])


@contextmanager
def own_server(also: tuple[str, ...] = (), durable: bool = False) -> Iterator[Server]:
    """A server for one test. One that is ``durable`` has its files on the disk."""
    if why := why_not():
        pytest.skip(f"no PostgreSQL: {why}")
    # not in the folder of the test, into which nobody else may look
    folder = tempfile.mkdtemp(prefix="hpp-", dir="/tmp" if durable else place_in_memory())
    server = Server(Path(folder), also, durable)
    try:
        server.make()
        yield server
    finally:
        with undisturbed():
            server.close()


def main() -> None:
    """Keep a server for a run of the tests."""
    keep, folder = sys.argv[1], Path(sys.argv[2])
    assert keep == "keep"
    with runs.kept(folder), own_server() as server:
        runs.tell(folder, {"folder": str(server.folder), "port": server.port, "password": server.password})
        runs.until_the_end(folder)


if __name__ == "__main__":
    main()
