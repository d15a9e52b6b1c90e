"""A hub whose pods are plain processes: ``python -m tests.fleet.process_hub FOLDER HOST PORT``, as that of ``bench``.

What pods work on is in FOLDER, too. A repository is cloned there as the first container of a pod does it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.fleet import process_hub
from hitchpost.hub import __main__ as hub_process
from hitchpost.hub import pods as hub_pods
from hitchpost.ops.sessions import place
from hitchpost.pod.clone import clone
from hitchpost.runtimes import pod as runtime
from hitchpost.runtimes.base import Started
from hitchpost.store import records
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.support import Hitch, eventually
from tests.warm import spawn

WORK = "work"


class Place(process_hub.Place):
    def start(self, order: runtime.Order) -> Started:
        record = records.read(order.spec.session_folder)
        if record.repository:
            wrong = clone(record.repository, record.folder, "/nowhere")
            assert not wrong, wrong
        return super().start(order)

    def tear_down(self, session_folder: str) -> None:
        end_pods(self.folder / os.path.basename(session_folder))

    clear_away = tear_down


@contextmanager
def hub_with_pods(ground: Ground, database: str) -> Iterator[HubProcess]:
    """It has the home of ``ground``. Its pods end with it."""
    folder = ground.watch.scratch / "pods"
    (folder / WORK).mkdir(parents=True)
    hub = HubProcess(ground)
    with open(os.path.join(hub.home, "hub.log"), "ab") as log, open(os.devnull) as nothing:
        hub.process = spawn(
            "tests.fleet.process_hub",
            [str(folder), "127.0.0.1", "0"],
            {**Hitch.environment(), "HITCHPOST_HOME": hub.home, "HITCHPOST_FLEET": database},
            (nothing.fileno(), log.fileno(), log.fileno()),
            session=True,
            warm=False,
        )
    try:
        hub.wait()
        eventually(lambda: hub.ask("GET", "/api/catalog")["profiles"], what="the cluster")
        yield hub
    finally:
        hub.stop()
        end_pods(*folder.iterdir())


def end_pods(*folders: Path) -> None:
    """What they are told last is the end of their runs."""
    for path in (folder / "pid" for folder in folders):
        if not path.exists():
            continue
        pid = int(path.read_text())
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        eventually(lambda: not is_there(pid), what="the end of a pod")  # noqa: B023


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


if __name__ == "__main__":
    where = Path(sys.argv.pop(1))
    place.CLONED_FOLDER = str(where / WORK)
    process_hub.ProcessPods.folder = where
    process_hub.Place = Place  # type: ignore[misc]
    hub_pods.HubPods = process_hub.ProcessPods  # type: ignore[misc]
    hub_process.main()
