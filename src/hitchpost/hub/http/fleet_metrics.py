"""What ``/metrics`` says of a hub as one of a fleet: its part of the work, PostgreSQL, the cluster, and its links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

if TYPE_CHECKING:
    from hitchpost.fleet.pods import Pods
    from hitchpost.hub.pods import HubPods
    from hitchpost.hub.replica import Replica
    from hitchpost.model.pods import NodeTold


def of_replica(replica: Replica, pods: HubPods | None) -> Iterator[Metric]:
    info = GaugeMetricFamily("hitchpost_fleet_replica", "This hub, by the name that its log has.", labels=["replica"])
    info.add_metric([replica.name], 1)
    yield info
    yield GaugeMetricFamily("hitchpost_fleet_watched", "Sessions that this hub watches.", replica.watching)
    yield GaugeMetricFamily("hitchpost_fleet_leads", "Whether this hub does the regular jobs.", replica.leads)
    yield from _of_database(replica)
    if pods is None:
        return
    is_followed = pods.cluster is not None and not pods.cluster.view.problems
    yield GaugeMetricFamily("hitchpost_fleet_cluster_up", "Whether the cluster can be followed.", is_followed)
    if pods.cluster is not None:
        nodes = GaugeMetricFamily("hitchpost_fleet_nodes", "Nodes of the cluster by state.", labels=["state"])
        for word, count in Counter(map(_node_word, pods.cluster.view.nodes())).items():
            nodes.add_metric([word], count)
        yield nodes
    if pods.pods is not None:
        yield from _of_links(pods.pods)


def _of_database(replica: Replica) -> Iterator[Metric]:
    database = replica.database
    counts = database.connections.counts
    is_up = database.away is None
    yield GaugeMetricFamily("hitchpost_fleet_database_up", "Whether PostgreSQL can be reached.", is_up)
    yield GaugeMetricFamily(
        "hitchpost_fleet_revision", "The newest change of the fleet that this hub shows.", replica.mirror.revision
    )
    yield CounterMetricFamily(
        "hitchpost_fleet_statements", "Statements at PostgreSQL, without begin and commit.", counts.statements
    )
    yield CounterMetricFamily(
        "hitchpost_fleet_database_connects", "Connections to PostgreSQL that were made.", counts.connections
    )


def _of_links(pods: Pods) -> Iterator[Metric]:
    links = GaugeMetricFamily("hitchpost_fleet_links", "Links to pods by state.", labels=["state"])
    up = sum(link.up_since is not None for link in list(pods.links.by_folder.values()))
    links.add_metric(["up"], up)
    links.add_metric(["down"], len(pods.links.by_folder) - up)
    yield links
    yield CounterMetricFamily(
        "hitchpost_fleet_link_reconnects",
        "Links to pods that were made again after they were up.",
        pods.links.reconnects,
    )
    yield CounterMetricFamily(
        "hitchpost_fleet_shipped_bytes", "Output brought into PostgreSQL, uncompressed.", pods.bringing.shipped_bytes
    )
    yield GaugeMetricFamily(
        "hitchpost_fleet_output_lag_seconds",
        "For how long the oldest output waits that PostgreSQL does not have.",
        pods.bringing.lag_s,
    )
    yield GaugeMetricFamily(
        "hitchpost_fleet_waiting",
        "Sessions and runs with something that PostgreSQL does not have.",
        pods.bringing.waiting,
    )


def _node_word(node: NodeTold) -> str:
    return "not_ready" if not node.ready else "cordoned" if node.cordoned else "ready"
