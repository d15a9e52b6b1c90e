"""The PostgreSQL of the tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.postgres import Server, own_server, the_server, why_not
from tests.support import Process, eventually

ROOT = Path(__file__).parents[1]
NEEDS_A_DATABASE = """
import signal
from tests.postgres import the_server
print(the_server().folder, flush=True)
signal.pause()
"""

KILLS_THE_SERVER = """
import os, signal
from tests.postgres import the_server
from tests.support import Process, eventually
first = the_server()
(keeper,) = [one for one in Process.all() if f"hpr-{os.getpid()}-" in one.argv[-1]]
os.kill(keeper.pid, signal.SIGKILL)
eventually(lambda: not first.processes())
second = the_server()
with second.fresh():
    print(first.folder, second.folder)
"""

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


def write(address: str, number: int) -> None:
    with psycopg.connect(address) as asking:
        asking.execute("create table if not exists seen (number int)")
        asking.execute("insert into seen values (%s)", [number])


def seen(address: str) -> list[int]:
    with psycopg.connect(address) as asking:
        return [number for (number,) in asking.execute("select number from seen order by number")]


def test_a_test_has_a_database_of_its_own_and_the_workers_share_a_server(database: str) -> None:
    server = the_server()
    with server.fresh() as other:
        write(database, 1)
        with psycopg.connect(server.socket_address(other)) as asking:
            assert asking.execute("select to_regclass('seen')").fetchone() == (None,)
            asking.execute("select 1")
    assert seen(database) == [1]
    assert the_server() == server


def test_nobody_comes_in_over_the_network_without_the_password(database: str) -> None:
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(database.replace(":" + the_server().password, ":guess"))


def test_a_server_of_ones_own_is_stopped_killed_and_started_again(postgres: Server) -> None:
    with postgres.fresh() as name:
        address = postgres.address(name)
        write(address, 1)
        postgres.stop()
        with pytest.raises(psycopg.OperationalError, match="refused"):
            psycopg.connect(address)
        postgres.start()
        write(address, 2)
        postgres.kill()
        assert postgres.processes() == []
        postgres.start()
        postgres.restart()
        assert seen(address) == [1, 2]


def test_a_server_that_was_killed_leaves_nothing() -> None:
    def segments() -> set[str]:
        return {line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}

    with own_server(durable=True) as server:
        segment = (server.data / "postmaster.pid").read_text().splitlines()[6].split()[1]
        assert server.process is not None
        assert "/dev/shm/PostgreSQL." not in Path(f"/proc/{server.process.pid}/maps").read_text()
        server.kill()
        assert segment in segments()
    assert segment not in segments()
    assert not server.folder.exists()
    assert server.processes() == []


def test_the_shared_server_ends_with_the_run_whatever_ended_that() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", NEEDS_A_DATABASE],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None
        server = Server(Path(run.stdout.readline().strip()))
        try:
            assert server.processes()
            assert keepers(run.pid)
        finally:
            run.kill()
    eventually(lambda: not keepers(run.pid), what="the end of the process that kept the server")
    assert server.processes() == []
    assert not server.folder.exists()
    assert not list(Path("/tmp").glob(f"hpr-{run.pid}-*"))


def test_a_shared_server_that_was_killed_is_begun_again() -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLS_THE_SERVER],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    first, second = (Server(Path(line)) for line in done.stdout.split())
    assert first.folder != second.folder
    eventually(lambda: not second.folder.exists(), what="the end of the second")
    assert first.processes() == []
    shutil.rmtree(first.folder)  # who was killed could not


def keepers(run: int) -> list[Process]:
    return [one for one in Process.all() if "tests.postgres" in one.argv and f"hpr-{run}-" in one.argv[-1]]
