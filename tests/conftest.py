"""Fixtures for every test: a state folder of its own, the command, and a check that nothing is left behind."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import hypothesis
import pytest

from tests import schedule
from tests.ground import Ground
from tests.limits import pytest_runtest_setup as pytest_runtest_setup
from tests.limits import pytest_runtest_teardown as pytest_runtest_teardown
from tests.repos import Repo, new_repo
from tests.support import TEMP_PREFIX, Hitch, LeakWatch, end_home, place_in_memory
from tests.tmuxes import Panes, panes_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from xdist.remote import Producer  # type: ignore[import-untyped]

    from tests.boxes import Boxed
    from tests.hubs import HubProcess
    from tests.kube.cluster import Cluster
    from tests.postgres import Server

# A shell that runs this in the background lets it ignore Ctrl-C, nohup lets it ignore a hang-up, and every program that
# a test starts would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# All that is collected stays, so there is nothing to collect before: a fifth of what each worker takes for it.
gc.disable()

# Times say nothing about correctness here: several tests share the cores.
hypothesis.settings.register_profile("hitchpost", deadline=None, print_blob=True)
hypothesis.settings.load_profile("hitchpost")


CLUSTER = {"cluster", "whole_cluster", "cluster_database"}
ON_DISK = ("agents", "security", "store", "system")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-agents", action="store_true", help="also test the agents that most runs leave out")
    parser.addoption("--table", action="store_true", help="write what is proven of agents, also of a selection")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("numprocesses", None):  # no worker has it
        from tests.runs import name_run
        from tests.warm import share

        share()
        name_run()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: schedule.place(_file(item)))
    for item in items:
        if not CLUSTER.isdisjoint(getattr(item, "fixturenames", ())) and not schedule.may_use_cluster(_file(item)):
            raise pytest.UsageError(f"{_file(item)} uses the cluster, which tests/schedule.py has to know")


def _file(item: pytest.Item) -> str:
    return item.path.relative_to(Path(__file__).parent).as_posix()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> schedule.ByFile:
    return schedule.ByFile(config, log)


def pytest_collection_finish() -> None:
    """What was collected stays: the look for leaks after each test need not go through it, a tenth of a second each."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def base_temp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pytest's own temp folder, made before a test changes where temp folders go."""
    return tmp_path_factory.getbasetemp()


@pytest.fixture
def scratch_place(request: pytest.FixtureRequest) -> str:
    """Where the test has its temp folder: in memory, unless its folder is about files, mounts, paths or
    sandboxes of agents, which have a `/dev` of their own.

    A session writes twenty files through to the disk when it starts, and the disk is everybody's. Where many files have
    just been removed, the disk takes forty times as long as memory to make one.
    """
    folder = request.path.relative_to(Path(__file__).parent).parts[0]
    return "/tmp" if folder in ON_DISK else place_in_memory()


@pytest.fixture(autouse=True)
def leak_watch(base_temp: Path, scratch_place: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LeakWatch]:
    """Gives the test a temp folder of its own, and fails it when it leaves something behind.

    Found are: processes of the test's folders, children of the test process, open descriptors, and temp files with our
    prefix. Hand in other folders whose processes belong to the test through ``leak_watch.folders``.
    """
    # Short, because the path of a Unix socket is.
    scratch = Path(tempfile.mkdtemp(prefix="hp-", dir=scratch_place))
    for name in list(os.environ):
        # The tests may themselves run inside a session or in tmux.
        if name.startswith("HITCHPOST_") or name in ("TMUX", "TMUX_PANE"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HITCHPOST_DEBUG", "1")
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setenv("TMUX_TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    watch = LeakWatch(scratch)
    yield watch
    left = watch.close()
    shutil.rmtree(scratch, ignore_errors=True)
    if left:
        pytest.fail("the test left behind:\n" + "\n".join(left), pytrace=False)


@pytest.fixture
def home(leak_watch: LeakWatch, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A fresh state folder, with an empty configuration folder beside it.

    Keepers and tmux servers that still run for it at the end are ended.
    """
    folder = Path(tempfile.mkdtemp(prefix=TEMP_PREFIX))
    config = leak_watch.scratch / "config"
    config.mkdir(mode=0o700)
    monkeypatch.setenv("HITCHPOST_HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    yield folder
    end_home(folder, leak_watch.census)
    shutil.rmtree(folder)


@pytest.fixture
def repo(leak_watch: LeakWatch, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A git repository with one commit, apart from the settings of whoever runs the tests."""
    return new_repo(leak_watch.scratch / "shop", monkeypatch)


@pytest.fixture
def hitch(home: Path) -> Hitch:
    """Runs the command: ``hitch("ps", "--json").json()``."""
    return Hitch()


@pytest.fixture
def ground(home: Path, hitch: Hitch, leak_watch: LeakWatch) -> Ground:
    """Starts sessions in a folder of the test's own, and reads the truth about them."""
    place = leak_watch.scratch / "place"
    place.mkdir()
    return Ground(home, place, leak_watch, hitch)


@pytest.fixture
def panes(ground: Ground) -> Iterator[Panes]:
    """Sessions on the tmux runtime, removed at the end with their servers."""
    with panes_in(ground) as made:
        yield made


@pytest.fixture
def hub(ground: Ground) -> Iterator[HubProcess]:
    """A hub for the test's home, in a process of its own."""
    from tests.hubs import hub_of

    with hub_of(ground) as made:
        yield made


@pytest.fixture
def boxed(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Iterator[Boxed]:
    """Sessions in containers of a private engine, all of them removed at the end."""
    from tests.boxes import Boxed, Inline, the_engine

    engine = the_engine()
    monkeypatch.setenv("DOCKER_HOST", engine.url)
    yield Boxed(replace(ground, hitch=Inline()), engine)
    for container in engine.containers():
        engine.docker("rm", "-f", "-v", container)


@pytest.fixture
def database() -> Iterator[str]:
    """The address of a fresh PostgreSQL database. Its server is everybody's: see ``postgres`` for one to be stopped."""
    from tests.postgres import the_server

    server = the_server()
    with server.fresh() as name:
        yield server.address(name)


@pytest.fixture
def postgres() -> Iterator[Server]:
    """A PostgreSQL server of the test's own."""
    from tests.postgres import own_server

    with own_server() as server:
        yield server


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """The Kubernetes cluster of this run, for a test that leaves its machines and daemons alone."""
    from tests.kube.fixtures import used

    with used() as shared:
        yield shared


@pytest.fixture
def whole_cluster() -> Iterator[Cluster]:
    """The same, for a test that cuts, kills or taints: nobody else uses it, and it is mended afterwards."""
    from tests.kube.fixtures import used

    with used(alone=True) as shared:
        yield shared


@pytest.fixture
def cluster_database() -> Iterator[str]:
    """The address of a fresh PostgreSQL database that pods can reach, too."""
    from tests.kube.fixtures import fresh_database

    with fresh_database() as address:
        yield address
