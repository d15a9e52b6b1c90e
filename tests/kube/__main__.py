"""``python -m tests.kube``: a cluster by hand, until Ctrl-C. ``keep FOLDER`` keeps one for a run of the tests."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from types import FrameType

from tests import runs
from tests.kube import machines, programs
from tests.kube.cluster import Cluster, memory
from tests.postgres import own_server
from tests.postgres import why_not as no_postgres

HELP = """usage: python -m tests.kube [NODES]
Starts a cluster and keeps it until Ctrl-C."""


def keep(folder: Path) -> None:
    with runs.kept(folder):
        cluster = Cluster.start()
        try:
            with own_server(also=(cluster.network.host,)) as server:
                found = {"folder": str(server.folder), "port": server.port, "password": server.password}
                runs.tell(folder, {"cluster": str(cluster.folder), "postgres": found})
                runs.until_the_end(folder)
        finally:
            cluster.close()


def by_hand(nodes: int) -> None:
    if why := programs.why_not():
        sys.exit(f"no cluster: {why}")
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
    ):  # a shell lets what it runs in the background ignore some
        signal.signal(number, interrupt)
    for mark in machines.sweep():
        print(f"removed what was left of {mark}")
    began = time.monotonic()
    cluster = Cluster.start(nodes)
    try:
        took_s = time.monotonic() - began
        megabytes = sum(memory(cluster).values()) >> 20
        print(f"{len(cluster.nodes)} nodes are ready after {took_s:.1f} s; {megabytes} MB")
        print(f"{cluster.folder}/kubectl get nodes; for others: export KUBECONFIG={cluster.kubeconfig}")
        print(f"logs: {cluster.folder}/logs; machines: ip netns exec {cluster.mark}-n1 ip addr", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        cluster.close()


def interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    match sys.argv[1:]:
        case ["keep", folder]:
            assert not no_postgres()
            keep(Path(folder))
        case []:
            by_hand(2)
        case [nodes] if nodes.isdigit():
            by_hand(int(nodes))
        case _:
            sys.exit(HELP)


if __name__ == "__main__":
    main()
