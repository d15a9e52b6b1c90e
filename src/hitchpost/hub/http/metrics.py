"""``/metrics`` for Prometheus: what the hub knows at the moment that somebody asks."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

import hitchpost
from hitchpost.hub.core import Hub
from hitchpost.hub.http.fleet_metrics import of_replica
from hitchpost.hub.http.grants import Grant
from hitchpost.hub.http.permissions import covered_by, visible_to
from hitchpost.model.usage import COUNTS, Turn, summed
from hitchpost.ops.views.usage import BY, turns


class Metrics:
    """Collected at every scrape, from what the hub knows anyway."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.since = datetime.now(UTC)
        self.clients = 0
        self.sent_bytes = 0

    async def text(self, grant: Grant) -> bytes:
        sessions = covered_by(grant, self.hub)
        used = await self.hub.do(lambda: turns(self.hub.home, self.since, sessions))
        registry = CollectorRegistry()
        registry.register(Scrape(self, grant, used))
        return generate_latest(registry)

    def collect(self, grant: Grant) -> Iterator[Metric]:
        sessions = visible_to(grant, self.hub.registry.listed())
        by_status = GaugeMetricFamily("hitchpost_sessions", "Sessions by status.", labels=["status"])
        for word, count in Counter(session.shape["status"] for session in sessions).items():
            by_status.add_metric([word], count)
        yield by_status
        wants = GaugeMetricFamily("hitchpost_attention", "Live sessions by what they want.", labels=["attention"])
        live = [session for session in sessions if session.watch is not None]
        for word, count in Counter(session.shape["attention"] for session in live).items():
            wants.add_metric([word], count)
        yield wants
        uptime_s = time.monotonic() - self.hub.began
        yield GaugeMetricFamily("hitchpost_hub_uptime_seconds", "How long the hub has been up.", uptime_s)
        if grant.sees_all:
            yield from self._for_all()
        info = GaugeMetricFamily("hitchpost_build", "The version.", labels=["version"])
        info.add_metric([hitchpost.__version__], 1)
        yield info

    def usage(self, used: list[Turn]) -> Iterator[Metric]:
        tokens = CounterMetricFamily(
            "hitchpost_tokens", "Tokens used since the hub started, as agents tell them.", labels=["agent", "kind"]
        )
        cost = CounterMetricFamily(
            "hitchpost_cost_usd", "Dollars spent since the hub started, by agents that tell it.", labels=["agent"]
        )
        for one in summed(used, BY["agent"]):
            for kind in COUNTS:
                tokens.add_metric([one.key, kind], getattr(one.tokens, kind))
            if one.tokens.cost_usd is not None:
                cost.add_metric([one.key], one.tokens.cost_usd)
        yield tokens
        yield cost

    def _for_all(self) -> Iterator[Metric]:
        """What is counted for all sessions together."""
        yield GaugeMetricFamily("hitchpost_ws_clients", "WebSocket connections.", self.clients)
        yield CounterMetricFamily("hitchpost_ws_sent_bytes", "Terminal bytes sent to clients.", self.sent_bytes)
        ended = CounterMetricFamily(
            "hitchpost_runs_ended", "Runs that have ended since the hub started.", labels=["state"]
        )
        for state, count in self.hub.registry.announcements.ended.items():
            ended.add_metric([state], count)
        yield ended
        if self.hub.replica is not None:
            yield from of_replica(self.hub.replica, self.hub.pods)
        losses = self.hub.lost_screens.by_run
        yield CounterMetricFamily("hitchpost_screens_lost", "Emulators lost on an agent's output.", losses.total())


class Scrape:
    """A collection for one caller."""

    def __init__(self, metrics: Metrics, grant: Grant, used: list[Turn]) -> None:
        self.metrics, self.grant, self.used = metrics, grant, used

    def collect(self) -> Iterator[Metric]:
        yield from self.metrics.collect(self.grant)
        yield from self.metrics.usage(self.used)
