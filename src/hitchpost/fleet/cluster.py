"""A Kubernetes cluster as the place of a hub's sessions: it makes their pods, sees what becomes of them, and ends them.

What it sees is written into ``pod.json`` by whoever works on the session. The cluster's own words decide: a pod that
cannot be reached is not gone, and one that the cluster does not have any more is.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import structlog

from hitchpost.errors import FAILURES, HitchpostError, Refused, RuntimeMissing
from hitchpost.fleet import manifests, reading
from hitchpost.fleet.kube import (
    FORBIDDEN,
    Claim,
    ClusterAway,
    ClusterRefused,
    Event,
    Kube,
    Lease,
    Node,
    Object,
    Pod,
    Secret,
    StorageClass,
)
from hitchpost.fleet.link import OpenStream, tcp
from hitchpost.fleet.manifests import PORT, Wanted, name_of
from hitchpost.fleet.profiles import FleetOptions
from hitchpost.fleet.rights import NODE_LEASES
from hitchpost.fleet.view import View, utc_now
from hitchpost.model import facts, pods
from hitchpost.runspec import RunSpec
from hitchpost.runtimes.base import Health, Started
from hitchpost.runtimes.pod import Order, health_of
from hitchpost.runtimes.pod_file import read_pod, write_pod
from hitchpost.store import records
from hitchpost.values import replace

log = structlog.get_logger()

LOOK_S = 3.0
"""So often somebody who waits for a pod asks for it, in case that it cannot be followed."""
LEAVES_S = 20.0
"""Beside the time that the pod itself may take to end."""
BEGIN_S = 60.0
"""Until a pod that runs has begun a run."""
EXPLAIN_S = 4.0
FIRST_LIST_S = 5.0
CORDON = "deploy/examples/cordon.yaml"
NOT_YET = "it has not answered yet"
BOUND_S, BOUND_LOOK_S = 3.0, 0.03
CLOSE_S = 10.0


class Leases(Protocol):
    """Which pod may work on a volume. Never two."""

    def take(self, volume: str, session: str, pod: str, run: int, *, force: bool = False) -> None:
        """The same pod may take it again. Raises ``Refused`` when another one has it, unless ``force``."""

    def give_back(self, volume: str, pod: str) -> None:
        """The pod is known to be gone."""


class Identities(Protocol):
    def files_of(self, session: str) -> Mapping[str, bytes]:
        """What the pod of a session shows to hubs, and checks them with, by the names of the files."""


class Links(Protocol):
    """``fleet.links.Links``, as far as it is needed here."""

    def start(
        self, spec: RunSpec, open_stream: OpenStream, timeout_s: float, given_up: Callable[[], str]
    ) -> Started: ...

    def forget(self, session_folder: str) -> None: ...

    def ask(self, session_folder: str, request: dict[str, object]) -> dict[str, Any]: ...

    def is_up(self, session_folder: str) -> bool: ...


class PodNotStarted(HitchpostError):
    """Raised when a pod has not come to life. No run was given to it."""

    http_status = 502
    code = "pod_not_started"


class NotConfirmed(Refused):
    """Raised when a pod was asked to end and the cluster has not said that it is gone: its agent may still run."""

    def __init__(self, pod: facts.Pod | None, name: str) -> None:
        where = f" on node {pod.node}" if pod is not None and pod.node else ""
        silent = f", and node {pod.node} does not answer" if pod is not None and pod.node_ready is False else ""
        super().__init__(
            f"the cluster has not confirmed that pod {name}{where} is gone{silent}: its agent may still be running",
            "wait until it has, or give the pod up with --force: then two agents may work on the same files",
        )


class Cluster:
    """``runtimes.pod.Cluster`` on Kubernetes. ``on_change`` is called with a session whose pod has changed, in a thread
    of the cluster's; it returns at once. ``save`` makes durable what an operation has written of a session.
    ``fetch_rest`` is called with a session and its run before the end of its pod is written down, and has all of the
    output here that there is elsewhere: whoever looks then ends the log."""

    def __init__(
        self,
        kube: Kube,
        options: FleetOptions,
        *,
        links: Links,
        leases: Leases,
        identities: Identities,
        on_change: Callable[[str], None] = lambda session: None,
        save: Callable[[str], None] = lambda session: None,
        fetch_rest: Callable[[str, int], None] = lambda session, run: None,
    ) -> None:
        self.kube, self.options = kube, options
        self.links, self.leases, self.identities = links, leases, identities
        self.save, self.fetch_rest = save, fetch_rest
        self.view = View(on_change)
        self._writing = threading.Lock()
        self._binding: dict[str, bool] = {}
        self._sees_volumes = True
        """Whether it may look at claims and storage classes. It can do without."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    # following --------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Follow the cluster from now on, in a thread of its own: neither keeps the other from its work."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._follow, args=(self._loop,), name="cluster", daemon=True)
        self._thread.start()

    def close(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop)
            self._thread.join(CLOSE_S)
            self._loop = self._thread = None
        self.kube.close()

    def _stop(self) -> None:
        for task in asyncio.all_tasks():
            task.cancel()

    def _follow(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._follow_all())
        except asyncio.CancelledError:
            log.info("the cluster is not followed any more")
        finally:
            loop.close()

    async def _follow_all(self) -> None:
        view = self.view
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(
                self.kube.follow(
                    Pod,
                    labels=manifests.selector(),
                    begins=view.begin_list,
                    listed=view.list_pods,
                    changed=view.change_pod,
                    failed=partial(self._failed, "pods"),
                )
            )
            for kind, name, listed, changed in (
                (Node, "nodes", view.list_nodes, view.change_node),
                (Event, "events", view.list_events, view.change_event),
            ):
                failed = partial(self._failed, name)
                tasks.create_task(self.kube.follow(kind, listed=listed, changed=changed, failed=failed))

    def _failed(self, kind: str, why: str) -> None:
        if why and self.view.problems.get(kind) != why:
            log.warning("the cluster cannot be followed", what=kind, why=why)
        self.view.failed(kind, why)

    @property
    def problems(self) -> list[str]:
        """What keeps the cluster from being seen, for people."""
        problems = dict(self.view.problems)
        if not self.view.is_listed:
            problems.setdefault("pods", NOT_YET)
        return [f"the {kind} of the cluster cannot be followed: {why}" for kind, why in sorted(problems.items())]

    def cordon(self, node: str, *, on: bool) -> None:
        """From now on, no new pod comes to the node, or some do again. Raises ``ClusterAway`` or ``ClusterRefused``."""
        try:
            self.kube.patch(Node, node, {"spec": {"unschedulable": on}})
        except ClusterRefused as refused:
            if refused.status == FORBIDDEN:
                word = "cordon" if on else "uncordon"
                refused.hint = f"kubectl apply -f {CORDON} gives hubs the right to; kubectl {word} {node} does the same"
            raise

    # what is stored of a pod ------------------------------------------------------------------------------------

    def refresh(self, session_folder: str) -> bool:
        """Write down what the cluster has told of the session's pod since; True when there was something. When that is
        its end, nobody stands in for its keeper any more, and its volume is free.

        The caller works on the session, and is no thread of the links'. Raises ``ClusterAway`` when the cluster has to
        be asked and does not answer, and ``DatabaseAway`` while nobody knows what there is of its output.
        """
        if not self.view.is_listed:
            return False
        while True:
            # the cluster may be slow: nobody else waits for it, and what others write meanwhile counts
            stored = read_pod(session_folder)
            now = self._now(stored, session_folder)
            if now is None:
                return False
            if now.ended and now.run:
                self.fetch_rest(os.path.basename(session_folder), now.run)
            with self._writing:
                if read_pod(session_folder) == stored:
                    write_pod(session_folder, now)
                    break
        if now.ended:
            self.leases.give_back(now.name, now.uid)
            self.links.forget(session_folder)
        return True

    def _now(self, stored: facts.Pod | None, session_folder: str) -> facts.Pod | None:
        """The session's pod as the cluster tells it; None when that is nothing new."""
        session = os.path.basename(session_folder)
        now = self.view.pod(session) if stored is None else self.view.join(stored, session)
        if now is None and stored is not None:
            now = self._asked_for(stored, session)
        if now is None or not pods.is_news(stored, now) or self._still_speaks(session_folder, now):
            return None
        now = self._with_node(now)
        return now if pods.is_news(stored, now) else None

    def _still_speaks(self, session_folder: str, pod: facts.Pod) -> bool:
        """Whether a pod that the cluster has given up at once has not ended yet: what its keeper says counts more.

        Its link goes down in a moment, and then it is looked at again.
        """
        return pod.ended and pod.phase not in pods.OVER and self.links.is_up(session_folder)

    def note_link(self, session_folder: str, *, up: bool) -> bool:
        """From any thread: the link to the session's pod is up, or down, from now on; True when that is new."""
        with self._writing:
            stored = read_pod(session_folder)
            if stored is None:
                return False
            now = pods.handle(stored, pods.LinkUp(utc_now()) if up else pods.LinkDown(utc_now()))
            if now == stored:
                return False
            write_pod(session_folder, now)
        if not up:
            self.view.on_change(os.path.basename(session_folder))  # the cluster may have said before that it is gone
        return True

    def _asked_for(self, stored: facts.Pod, session: str) -> facts.Pod:
        """A pod that is not among those that are followed: it is new, or gone."""
        item = self.kube.get(Pod, stored.name)
        if item is not None and reading.uid_of(item) == stored.uid:
            self.view.take_pod(item)
            return pods.handle(stored, reading.told(item, utc_now()))
        return self.view.gone(stored)

    def _with_node(self, pod: facts.Pod) -> facts.Pod:
        """With the last sign of life of a node that gives none; a cluster may keep that to itself."""
        if not pod.node or pod.node_ready is not False or pod.ended:
            return pod
        try:
            lease = self.kube.get(Lease, pod.node, NODE_LEASES, within_s=EXPLAIN_S)
        except HitchpostError:
            return pod
        seen_at = reading.moment(((lease or {}).get("spec") or {}).get("renewTime"))
        return replace(pod, node_seen_at=seen_at) if seen_at is not None else pod

    # starting ---------------------------------------------------------------------------------------------------

    def start(self, order: Order) -> Started:
        spec = order.spec
        wanted = self._wanted(spec)
        pod = self._ready(wanted, spec.session_folder)
        self.leases.take(pod.name, wanted.session, pod.uid, wanted.run)
        with self._writing:
            # from now on, the end of this pod is the end of the run
            write_pod(spec.session_folder, pods.given(replace(pod, unreachable_since=None), wanted.run))
        self.save(wanted.session)
        return self.links.start(
            spec, self.stream(wanted.session), BEGIN_S, lambda: self._why_ended(wanted.session, pod)
        )

    def _why_ended(self, session: str, pod: facts.Pod) -> str:
        """Empty while the pod may be there."""
        told = self.view.pod(session)
        return pods.why_ended(told) if told is not None and told.uid == pod.uid and told.ended else ""

    def stream(self, session: str) -> OpenStream:
        """How the session's pod is reached, whichever that is by then."""

        async def opened() -> socket.socket:
            pod = self.view.pod(session)
            host = "" if pod is None else self.view.address(session, pod.uid)
            if not host:
                raise ConnectionRefusedError("the pod has no address")
            return await tcp(host, PORT)

        return opened

    def _wanted(self, spec: RunSpec) -> Wanted:
        record = records.read(spec.session_folder)
        return Wanted(
            session=spec.session,
            run=spec.run,
            profile=self.options.chosen(record.profile),
            owner=record.owner,
            repository=record.repository,
            folder=record.folder,
            grace_s=spec.grace_s,
        )

    def _ready(self, wanted: Wanted, session_folder: str) -> facts.Pod:
        """The session's pod, running: the one that is there, or a new one. Raises ``PodNotStarted``."""
        deadline = time.monotonic() + self.options.start_minutes * 60
        has_had_one = wanted.run > 1 or read_pod(session_folder) is not None
        item = self._standing(wanted.session, session_folder) if has_had_one else None
        is_new = item is None
        if item is None:
            item = self._made(wanted)
        self.view.take_pod(item)
        uid = reading.uid_of(item)
        try:
            return self._running(wanted, session_folder, uid, deadline)
        except BaseException:
            if is_new:
                self._discard(wanted.session)
            raise

    def _standing(self, session: str, session_folder: str) -> Object | None:
        """The session's pod, if there is one to run in. One that has ended, or is ending, is waited for and removed.

        Raises ``NotConfirmed`` when the cluster does not say that it is gone.
        """
        name = name_of(session)
        item = self.kube.get(Pod, name)
        if item is None:
            return None
        if not reading.is_leaving(item) and reading.told(item, utc_now()).phase not in pods.OVER:
            return item
        self.view.take_pod(item)
        self.refresh(session_folder)
        if not reading.is_leaving(item):
            self.kube.delete(Pod, name)
        self._wait_gone(session, reading.uid_of(item), _grace_s(item))
        self.refresh(session_folder)
        return None

    def _made(self, wanted: Wanted) -> Object:
        """Everything that the session needs there. What is there already is as good."""
        claim = self.kube.create(Claim, manifests.claim(wanted))
        secret = manifests.secret(wanted, self.identities.files_of(wanted.session))
        if self.kube.create(Secret, secret) is None:
            self.kube.replace(Secret, secret)
        self._wait_bound(claim)
        made = self.kube.create(Pod, manifests.pod(wanted, self.options))
        made = made or self.kube.get(Pod, name_of(wanted.session))
        if made is None:
            raise PodNotStarted("its pod was deleted while it was being made")
        return made

    def _wait_bound(self, claim: Object | None) -> None:
        """Until a new claim has its volume, where it gets one before there is a pod: a scheduler that sees the pod
        first puts it aside for a second or more. Where that cannot be known, nobody waits."""
        deadline = time.monotonic() + BOUND_S
        try:
            while claim is not None and self._is_soon_bound(claim["spec"]) and time.monotonic() < deadline:
                time.sleep(BOUND_LOOK_S)
                claim = self.kube.get(Claim, claim["metadata"]["name"], within_s=BOUND_S)
        except HitchpostError as error:
            self._sees_volumes = not isinstance(error, ClusterRefused)
            log.info("nobody waits for a volume", why=error.message)

    def _is_soon_bound(self, spec: Object) -> bool:
        """Whether a claim has no volume yet, and gets one without a pod."""
        if spec.get("volumeName") or not self._sees_volumes:
            return False
        name = str(spec.get("storageClassName") or "")
        if name not in self._binding:
            self._binding[name] = reading.binds_at_once(self.kube.list(StorageClass, within_s=BOUND_S), name)
        return self._binding[name]

    def _running(self, wanted: Wanted, session_folder: str, uid: str, deadline: float) -> facts.Pod:
        """Wait until the pod runs and can be reached. What it waits for is written down meanwhile."""
        session = wanted.session
        look_at = time.monotonic()
        while True:
            pod = self._written(session, session_folder, uid)
            if pod.ended:
                raise PodNotStarted(pods.why_ended(pod))
            if pods.is_hopeless(pod):
                raise PodNotStarted(pods.why_waits(pod))
            if pod.phase == pods.RUNNING and self.view.address(session, uid):
                return pod
            now = time.monotonic()
            if now > deadline:
                why = pods.why_waits(pod) or f"its pod is {pod.phase.lower() or 'not made'} ({pod.reason})"
                raise PodNotStarted(f"{why}; nobody waits longer than {self.options.start_minutes:g} min")
            if now >= look_at + LOOK_S:
                look_at = now
                self._look(session, uid)
            else:
                with self.view.moved:
                    self.view.moved.wait(min(LOOK_S, max(0.0, deadline - now) + 0.01))

    def _written(self, session: str, session_folder: str, uid: str) -> facts.Pod:
        """The pod as it is known, which is also stored."""
        with self._writing:
            stored = read_pod(session_folder)
            told = self.view.pod(session)
            if told is None or told.uid != uid:
                told = pods.made(stored, name_of(session), uid, utc_now())
            run = 0 if stored is None else stored.run
            now = replace(told, run=run)
            if now == stored:
                return now
            write_pod(session_folder, now)
        self.save(session)
        return now

    def _look(self, session: str, uid: str) -> None:
        """Ask for the pod. A cluster that does not answer is asked again later."""
        try:
            item = self.kube.get(Pod, name_of(session), within_s=EXPLAIN_S)
        except ClusterAway:
            return
        if item is None or reading.uid_of(item) != uid:
            raise PodNotStarted("its pod was deleted while it was starting")
        self.view.take_pod(item)

    def _discard(self, session: str) -> None:
        """A pod that no run was given to. One that cannot be deleted now is run in, or removed, at the next start."""
        try:
            self.kube.delete(Pod, name_of(session), grace_s=0)
        except FAILURES as error:
            log.warning("a pod that did not start could not be deleted", session_id=session, error=str(error))

    # ending -----------------------------------------------------------------------------------------------------

    def tear_down(self, session_folder: str) -> None:
        session = os.path.basename(session_folder)
        self._end_pod(session)
        self.links.forget(session_folder)
        self.refresh(session_folder)
        self.save(session)

    def clear_away(self, session_folder: str) -> None:
        session = os.path.basename(session_folder)
        self._end_pod(session)
        self.links.forget(session_folder)
        self.refresh(session_folder)
        for kind in (Secret, Claim):
            self.kube.delete(kind, name_of(session))
        self.view.forget(session)

    def abandon(self, session_folder: str) -> None:
        """Give a pod up that nobody reaches, without the word of its node: its agent may still be running there.

        Whoever asks for this was told so.
        """
        session = os.path.basename(session_folder)
        item = self.kube.get(Pod, name_of(session))
        if item is not None:
            self.kube.delete(Pod, name_of(session), grace_s=0)
            self._wait_gone(session, reading.uid_of(item), 0)
        self.links.forget(session_folder)
        self.refresh(session_folder)
        self.save(session)

    def _end_pod(self, session: str) -> None:
        item = self.kube.get(Pod, name_of(session))
        if item is None:
            return
        self.kube.delete(Pod, name_of(session))
        self._wait_gone(session, reading.uid_of(item), _grace_s(item))

    def _wait_gone(self, session: str, uid: str, grace_s: float) -> None:
        """Until the cluster says that the pod is gone. Raises ``NotConfirmed``."""
        name = name_of(session)
        deadline = time.monotonic() + grace_s + LEAVES_S
        while True:
            pod = self.view.pod(session)
            if pod is not None and pod.uid == uid and pod.node_ready is False and not pod.ended:
                deadline = min(deadline, time.monotonic() + LOOK_S)  # nobody there would say so
            item = self.kube.get(Pod, name)
            if item is None or reading.uid_of(item) != uid:
                return
            self.view.take_pod(item)
            if time.monotonic() > deadline:
                raise NotConfirmed(pod, name)
            with self.view.moved:
                self.view.moved.wait(0.2)

    # telling ----------------------------------------------------------------------------------------------------

    def health(self, session_folder: str, run: int) -> Health:
        return health_of(session_folder, run)

    def ask(self, session_folder: str, request: dict[str, object]) -> dict[str, Any]:
        return self.links.ask(session_folder, request)

    def check(self) -> None:
        with self.view.moved:
            # a hub that has just begun: the first answer is a moment away
            self.view.moved.wait_for(lambda: self.view.is_listed or "pods" in self.view.problems, FIRST_LIST_S)
        if (why := self.view.problems.get("pods")) is not None or not self.view.is_listed:
            raise RuntimeMissing(
                f"the cluster {self.kube.server} cannot be used: {why or NOT_YET}",
                "check that the cluster answers, and the hub's access to it",
            )

    def explain(self, session_folder: str, run: int) -> list[tuple[str, str, str]]:
        session = os.path.basename(session_folder)
        name = name_of(session)
        try:
            item = self.kube.get(Pod, name, within_s=EXPLAIN_S)
            if item is None:
                return [("in the cluster", f"no pod {name}", self.kube.server)]
            uid = reading.uid_of(item)
            events = self.kube.list(Event, fields={"involvedObject.uid": uid}, within_s=EXPLAIN_S)
        except HitchpostError as error:
            return [("cluster", error.message, self.kube.server)]
        told = reading.told(item, utc_now())
        leaving = ", asked to end" if told.leaving else ""
        found = [("in the cluster", f"pod {name}: {told.phase}{leaving}", self.kube.server)]
        found += [
            (f"condition {kind}", text, f"pod {name}") for kind, text in reading.conditions(item) if text != "True"
        ]
        warnings = [event for event in events if event.get("type") == "Warning" or event.get("reason") in pods.LASTING]
        for event in sorted(warnings, key=lambda event: str(event.get("lastTimestamp") or ""))[-5:]:
            found.append((f"event {event.get('reason')}", str(event.get("message", "")), f"pod {name}"))
        return found


def _grace_s(item: Object) -> float:
    return float((item.get("spec") or {}).get("terminationGracePeriodSeconds") or 0)
