"""The pods of a fleet's hub: its cluster, its own certificate, and which sessions may have a pod."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import structlog

from hitchpost.errors import FAILURES
from hitchpost.fleet.cluster import Cluster
from hitchpost.fleet.configured import configured, connected, with_own_image
from hitchpost.fleet.identity import Authority, is_due
from hitchpost.fleet.kube import NoCluster
from hitchpost.fleet.leases import Lease, give_back, take
from hitchpost.fleet.mirror import Mirror
from hitchpost.fleet.pods import Pods
from hitchpost.fleet.profiles import FleetOptions
from hitchpost.fleet.shared_authority import SharedAuthority
from hitchpost.fleet.tls import CERTIFICATE, Identity
from hitchpost.hub.registry import Registry
from hitchpost.hub.replica import Replica, is_live
from hitchpost.hub.session import HubSession
from hitchpost.hub.tasks import Tasks
from hitchpost.model.facts import is_elsewhere
from hitchpost.runtimes import pod as runtime
from hitchpost.store import files

IDENTITY = "identity"
LOOK_AT_CERTIFICATE_S = 3600.0
AGAIN_S = 3.0

log = structlog.get_logger()


def has_pod(session: HubSession) -> bool:
    """Whether its pod may be there. One that the cluster has confirmed to be gone is not."""
    seen = session.latest
    if seen is None or not is_elsewhere(seen.record.runtime):
        return False
    return session.lives or (seen.facts.pod is not None and not seen.facts.pod.ended)


def has_work(session: HubSession) -> bool:
    """Whether somebody has to watch it."""
    return is_live(session) or has_pod(session)


class Leases:
    """``cluster.Leases`` in PostgreSQL."""

    def __init__(self, mirror: Mirror) -> None:
        self._database = mirror.database

    def take(self, volume: str, session: str, pod: str, run: int, *, force: bool = False) -> None:
        take(self._database, Lease(volume, session, pod, run), force=force)

    def give_back(self, volume: str, pod: str) -> None:
        give_back(self._database, volume, pod)


class HubPods:
    """From ``start`` to ``close``: operations of this process find the cluster's pods once the cluster answers."""

    def __init__(self, home: str, replica: Replica, registry: Registry) -> None:
        self.home, self.replica, self.mirror, self.registry = home, replica, replica.mirror, registry
        self.options = FleetOptions()
        self.pods: Pods | None = None
        self.cluster: Cluster | None = None
        self._folder = os.path.join(home, IDENTITY)
        self._tasks = Tasks("pods")
        self._authority: Authority
        self._why_not = "it has not been asked yet"

    def start(self) -> None:
        replica = self.replica
        replica.is_told, replica.wants, replica.reach = self._is_told, has_work, self._reach
        replica.is_starting, replica.caught_up_with = self._is_starting, self._caught_up
        runtime.connect(None, self._why_not)
        self._tasks.start(self._open())

    async def _open(self) -> None:
        """A cluster that cannot be used now is tried again: the hub shows what it has meanwhile."""
        while self.pods is None:
            try:
                self.options = await asyncio.to_thread(configured)
                await self.open()
            except NoCluster:
                self._why_not = ""
                runtime.connect(None)
                await asyncio.sleep(AGAIN_S)
            except FAILURES as error:
                if str(error) != self._why_not:
                    self._why_not = str(error)
                    runtime.connect(None, self._why_not)
                    log.warning("no cluster yet", why=self._why_not)
                await asyncio.sleep(AGAIN_S)

    async def open(self) -> None:
        """Raises ``ClusterAway`` when nobody knows where the cluster is, and what asking it raises."""
        kube = await asyncio.to_thread(connected, self.options)
        self.options = await asyncio.to_thread(with_own_image, self.options, kube)
        shared = await asyncio.to_thread(SharedAuthority, kube)
        self._authority = shared.authority
        await asyncio.to_thread(self._renew)
        identity = Identity(self._folder, is_pod=False)
        pods = Pods(self.mirror, identity, self._live, self.registry.observer.request)
        self.cluster = pods.place = Cluster(
            kube,
            self.options,
            links=pods.links,
            leases=Leases(self.mirror),
            identities=shared,
            on_change=pods.changed,
            save=self._save,
            fetch_rest=self.mirror.fetch_output,
        )
        self.cluster.open()
        runtime.connect(pods)
        self.pods = pods
        self._tasks.start(pods.run())
        self._tasks.start(self._keep_certificate())
        log.info("the cluster is connected", server=kube.server, namespace=kube.namespace)

    async def close(self) -> None:
        runtime.connect(None)
        await self._tasks.close()
        if self.pods is not None:
            await self.pods.close()
        if self.cluster is not None:
            await asyncio.to_thread(self.cluster.close)

    @property
    def problems(self) -> list[str]:
        if self.cluster is None and not self._why_not:
            return []  # hubs may share sessions without one
        if self.cluster is None:
            return [f"no cluster is connected, so no session can be started: {self._why_not}"]
        return self.cluster.problems

    def _reach(self, session: str) -> None:
        if self.pods is not None:
            self.pods.reach(session)

    async def _caught_up(self, session_folder: str) -> None:
        if self.pods is not None:
            await self.pods.caught_up(session_folder)

    def _is_starting(self, session: str) -> bool:
        return self.pods is not None and self.pods.is_starting(session)

    def _is_told(self, session_folder: str, run: int) -> bool:
        """Whether the output of a run comes here from its pod, or its keeper: then it need not be brought."""
        link = None if self.pods is None else self.pods.links.by_folder.get(session_folder)
        return link is not None and link.up_since is not None and run not in link.over

    def _live(self) -> list[str]:
        return [session.id for session in self.registry.by_id.values() if has_pod(session)]

    def _save(self, session: str) -> None:
        self.mirror.commit(session)

    # its own certificate ----------------------------------------------------------------------------------------------

    async def _keep_certificate(self) -> None:
        while True:
            await asyncio.sleep(LOOK_AT_CERTIFICATE_S)
            await asyncio.to_thread(self._try, self._renew)

    def _renew(self) -> None:
        try:
            held = files.read_bytes(os.path.join(self._folder, CERTIFICATE))
        except FileNotFoundError:
            held = b""
        if is_due(held):
            self._authority.for_hub().write(self._folder)

    def _try(self, call: Callable[[], None]) -> None:
        try:
            call()
        except FAILURES as error:
            log.warning("the hub's certificate could not be renewed", error=str(error))
