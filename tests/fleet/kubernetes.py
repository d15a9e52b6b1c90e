"""A hub's part in a fleet on the real cluster: its copy, its links, and what it writes down of pods. Everything is real
but PostgreSQL: leases are a table in memory."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hitchpost.errors import EndedAtOnce, HitchpostError, Refused
from hitchpost.fleet.cluster import Cluster as Pods
from hitchpost.fleet.identity import Authority
from hitchpost.fleet.kube import Kube
from hitchpost.fleet.links import Links
from hitchpost.fleet.manifests import Wanted
from hitchpost.fleet.news import DOWN, UP, News
from hitchpost.fleet.profiles import FleetOptions
from hitchpost.fleet.tls import AUTHORITY, CERTIFICATE, KEY, Identity
from hitchpost.model.facts import Pod
from hitchpost.model.status import Status, status
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.place import choose_elsewhere
from hitchpost.ops.sessions.recover import RECOVERY, recover
from hitchpost.ops.sessions.restart import restart
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.sessions.start import start
from hitchpost.ops.sessions.stop import stop
from hitchpost.ops.views.observe import Observation, observe
from hitchpost.runtimes import pod as runtime
from hitchpost.runtimes.pod_file import read_pod
from hitchpost.settings import Settings
from hitchpost.store.home import session_folder
from tests.ground import Ground, Truth
from tests.kube import images
from tests.kube.cluster import STORAGE, Cluster
from tests.support import Hitch, eventually

SMALL = {"cpu": "50m", "cpu_limit": "1", "memory": "128Mi", "storage": "64Mi", "storage_class": STORAGE}


class Leases:
    """As the database has them, for one process."""

    def __init__(self) -> None:
        self.holders: dict[str, tuple[str, int]] = {}

    def take(self, volume: str, session: str, pod: str, run: int, *, force: bool = False) -> None:
        holder = self.holders.get(volume)
        if holder is not None and holder[0] != pod and not force:
            raise Refused(f"volume {volume} is leased to pod {holder[0]}")
        self.holders[volume] = (pod, run)

    def give_back(self, volume: str, pod: str) -> None:
        if self.holders.get(volume, ("", 0))[0] == pod:
            del self.holders[volume]


class Identities:
    def __init__(self, authority: Authority) -> None:
        self.authority = authority

    def files_of(self, session: str) -> dict[str, bytes]:
        made = self.authority.for_session(session)
        return {AUTHORITY: made.authority, CERTIFICATE: made.certificate, KEY: made.key}


class KubeFleet:
    def __init__(
        self, ground: Ground, cluster: Cluster, namespace: str, kubeconfig: Path | None, **options: Any
    ) -> None:
        self.ground, self.real, self.namespace = ground, cluster, namespace
        self.home = str(ground.home)
        os.makedirs(os.path.join(self.home, "sessions"), mode=0o700, exist_ok=True)
        profiles = {"default": SMALL, **options.pop("profiles", {})}
        self.options = FleetOptions(namespace=namespace, image=images.HITCHPOST, profiles=profiles, **options)
        self.leases = Leases()
        authority = Authority.make()
        identity = ground.watch.scratch / "hub-identity"
        authority.for_hub().write(str(identity))
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        self._writer = ThreadPoolExecutor(1)
        self.links: Links = self.do(self._links(Identity(str(identity), is_pod=False)))
        before = os.environ.get("KUBECONFIG")
        os.environ["KUBECONFIG"] = str(kubeconfig or cluster.kubeconfig)
        try:
            kube = Kube(namespace=namespace)
        finally:
            if before is None:
                del os.environ["KUBECONFIG"]
            else:
                os.environ["KUBECONFIG"] = before
        self.pods = Pods(
            kube,
            self.options,
            links=self.links,
            leases=self.leases,
            identities=Identities(authority),
            on_change=self._on_change,
        )
        self.pods.open()
        runtime.connect(self.pods)

    async def _links(self, identity: Identity) -> Links:
        return Links(identity, self._on_news)

    def do(self, work: Any, timeout_s: float = 60) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout_s)

    def _on_news(self, folder: str, news: News) -> None:
        if news.kind in (UP, DOWN):
            with suppress(FileNotFoundError):
                self.pods.note_link(folder, up=news.kind == UP)

    def _on_change(self, session: str) -> None:
        self._writer.submit(self._refresh, session)

    def _refresh(self, session: str) -> None:
        folder = session_folder(self.home, session)
        if os.path.isdir(folder):
            with suppress(HitchpostError):
                self.pods.refresh(folder)

    # What a person does.

    def create(self, *argv: str, repository: str = "", branch: str | None = None, **more: Any) -> Truth:
        spec = SessionSpec(str(self.ground.place), command=argv, runtime="pod", repository=repository, **more)
        place = choose_elsewhere(repository, branch=branch)
        return Truth(self.ground.home, create(self.home, spec, Settings(), actor="test", place=place).id)

    def start(self, session: Truth, **more: Any) -> None:
        with suppress(EndedAtOnce):
            start(self.home, session.id, Settings(), caller=Hitch.environment(), actor="test", **more)

    def begin(self, *argv: str, **more: Any) -> Truth:
        session = self.create(*argv, **more)
        self.start(session)
        return session

    def sh(self, script: str, **more: Any) -> Truth:
        return self.begin("sh", "-c", script, **more)

    def stop(self, session: Truth, **more: Any) -> None:
        stop(self.home, session.id, actor="test", **more)

    def restart(self, session: Truth, **more: Any) -> None:
        restart(self.home, session.id, Settings(), actor="test", caller=Hitch.environment(), **more)

    def wanted(self, session: Truth, run: int = 1) -> Wanted:
        return Wanted(session.id, run, self.options.chosen(""))

    # What is seen.

    def seen(self, session: Truth) -> Observation:
        return observe(self.home, session.id)

    def status(self, session: Truth) -> Status:
        return status(self.seen(session).facts, datetime.now(UTC))

    def label(self, session: Truth) -> str:
        return self.status(session).label

    def recovered(self, session: Truth) -> Observation:
        return recover(self.home, session.id, actor=RECOVERY)

    def until(self, session: Truth, wanted: str | tuple[str, ...], timeout_s: float = 60) -> str:
        """The label, once it begins with this."""
        told: list[str] = []

        def found() -> str:
            told[:] = [self.label(session)]
            return told[0] if told[0].startswith(wanted) else ""

        try:
            return eventually(found, timeout_s, str(wanted))
        except AssertionError as error:
            raise AssertionError(f"{error}; it is: {told}; {self.pod(session)}") from None

    def pod(self, session: Truth) -> Pod:
        found = read_pod(str(session.folder))
        assert found is not None
        return found

    def name(self, session: Truth) -> str:
        return f"hitch-{session.id}"

    def switch_off(self, node: str) -> None:
        """The machine is gone with everything on it, and an administrator says so."""
        for daemon in ("kubelet", "containerd"):
            self.real.kill(daemon, node)
        for path in Path("/sys/fs/cgroup/pids", self.real.mark, node).rglob("cgroup.procs"):
            for pid in path.read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        self.real.lose(node)

    def volume(self, session: Truth, run: int) -> Path:
        """The folder of a run, as the pod has it."""
        top = self.real.volume(self.name(session), self.namespace) / "home/.local/state/hitchpost/sessions"
        return top / session.id / "runs" / str(run)

    def close(self) -> None:
        runtime.connect(None)
        try:
            self.do(self.links.close())
            self.pods.close()
        finally:
            self._writer.shutdown()
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
            self.loop.close()


@contextmanager
def fleet_on(ground: Ground, cluster: Cluster, kubeconfig: Path | None = None, **options: Any) -> Iterator[KubeFleet]:
    with cluster.namespace() as space:
        made = KubeFleet(ground, cluster, space, kubeconfig, **options)
        try:
            yield made
        finally:
            made.close()
