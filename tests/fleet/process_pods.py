"""Sessions in pods that are plain processes, for a test: a hub that has them, and their end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.ground import Ground
from tests.hubs import HubProcess
from tests.support import Hitch, eventually
from tests.warm import spawn

WORK = "work"
"""What pods work on, below the folder of the hub."""
AWAY = "away"
"""While a file of this name is there, the cluster cannot be used."""


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
