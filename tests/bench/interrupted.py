"""``python -m tests.bench.interrupted``: keepers under a hub, as ``bench.fleet`` has them, until a line comes."""

from __future__ import annotations

import sys

from bench.fleet import keepers
from bench.stage import Stage
from tests.postgres import own_server
from tests.undisturbed import leave_when_asked

SESSIONS = 3


def main() -> None:
    leave_when_asked()
    with (
        Stage(quick=True) as stage,
        own_server() as server,
        server.fresh() as database,
        keepers.hubs(stage, server, database, 1) as made,
    ):
        keepers.begin(made, SESSIONS)
        print(stage.folder, server.folder, flush=True)
        sys.stdin.readline()
        print("leaving", flush=True)


if __name__ == "__main__":
    main()
