"""A hub whose pods are plain processes: ``python -m tests.fleet.process_hub FOLDER HOST PORT``, as that of ``bench``.

What pods work on is in FOLDER, too. A repository is cloned there as the first container of a pod does it. Only that
process imports this: a hub does without some of what tests need.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bench.fleet import process_hub
from hitchpost.errors import RuntimeMissing
from hitchpost.hub import __main__ as hub_process
from hitchpost.hub import pods as hub_pods
from hitchpost.ops.sessions import place
from hitchpost.pod.clone import clone
from hitchpost.runtimes import pod as runtime
from hitchpost.runtimes.base import Started
from hitchpost.store import records
from tests.fleet.process_pods import AWAY, WORK, end_pods


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

    def check(self) -> None:
        if (self.folder / AWAY).exists():
            raise RuntimeMissing("the cluster cannot be used: it is away", "check that the cluster answers")


if __name__ == "__main__":
    where = Path(sys.argv.pop(1))
    place.CLONED_FOLDER = str(where / WORK)
    process_hub.ProcessPods.folder = where
    process_hub.Place = Place  # type: ignore[misc]
    hub_pods.HubPods = process_hub.ProcessPods  # type: ignore[misc]
    hub_process.main()
