"""What is known of a cluster's pods and nodes, from following it. Nothing is asked here, and nothing is stored."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from hitchpost.fleet import reading
from hitchpost.fleet.manifests import name_of
from hitchpost.fleet.reading import Object
from hitchpost.model import pods
from hitchpost.model.facts import Pod
from hitchpost.values import replace

MOST_ENDS = 10_000
"""Pods whose end is remembered, the newest: what is stored has it long before."""
ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
OF_CLUSTER = (
    *("phase", "reason", "message", "source", "since", "leaving", "ended"),
    *("node", "node_ready", "node_seen_at", "node_boot", "cordoned"),
)
"""What of a pod's facts the cluster tells; the others are the hub's own."""


def utc_now() -> datetime:
    return datetime.now(UTC)


class View:
    """For all threads. ``on_change`` is called with a session, outside the lock, after each change of its pod."""

    def __init__(self, on_change: Callable[[str], None], now: Callable[[], datetime] = utc_now) -> None:
        self.on_change, self.now = on_change, now
        self.moved = threading.Condition()
        self.is_listed = self.has_nodes = False
        self.problems: dict[str, str] = {}
        """Kinds of objects that cannot be followed now, and why."""
        self._pods: dict[str, Pod] = {}
        self._objects: dict[str, Object] = {}
        self._ends: OrderedDict[str, Pod] = OrderedDict()
        self._nodes: dict[str, pods.NodeTold] = {}

    # what is followed -------------------------------------------------------------------------------------------

    def begin_list(self) -> dict[str, str]:
        """The pods that are known before a list is asked for, by session: those that it lacks are gone."""
        with self.moved:
            return {session: pod.uid for session, pod in self._pods.items()}

    def list_pods(self, found: list[Any], before: dict[str, str]) -> None:
        by_session = {reading.session_of(item): item for item in found}
        for session, uid in before.items():
            if session not in by_session or reading.uid_of(by_session[session]) != uid:
                self._apply(session, pods.PodGone(self.now(), uid))
        for item in found:
            self.take_pod(item)
        with self.moved:
            self.is_listed = True
            self.moved.notify_all()

    def change_pod(self, what: str, item: Object) -> None:
        if what in (ADDED, MODIFIED):
            self.take_pod(item)
        elif what == DELETED:
            # its last description may say more than that it is gone
            self.take_pod(item)
            self._apply(reading.session_of(item), pods.PodGone(self.now(), reading.uid_of(item)))

    def take_pod(self, item: Object) -> None:
        """A pod as the cluster describes it now, whoever asked."""
        session, uid = reading.session_of(item), reading.uid_of(item)
        if not session:
            return
        with self.moved:
            known = self._objects.get(session)
            if known is not None and _version(item) < _version(known):
                return  # what is followed comes later than an answer
            self._objects[session] = item
            pod = self._pods.get(session)
        if pod is not None and pod.uid != uid:
            self._apply(session, pods.PodGone(self.now(), pod.uid))  # two cannot have the same name
        told = reading.told(item, self.now())
        self._apply(session, told)
        if (node := self._nodes.get(told.node)) is not None:
            self._apply(session, node)

    def list_nodes(self, found: list[Any], _: object = None) -> None:
        names = {str(item["metadata"]["name"]) for item in found}
        for name in [name for name in self._nodes if name not in names]:
            self._remove_node(name)
        for item in found:
            self.change_node(MODIFIED, item)
        self.has_nodes = True

    def change_node(self, what: str, item: Object) -> None:
        told = reading.node_told(item, self.now())
        if what == DELETED:
            self._remove_node(told.node)
            return
        self._nodes[told.node] = told
        self._tell_node(told.node, told)

    def _remove_node(self, name: str) -> None:
        self._nodes.pop(name, None)
        self._tell_node(name, pods.NodeRemoved(self.now(), name))

    def _tell_node(self, name: str, event: pods.Event) -> None:
        with self.moved:
            sessions = [session for session, pod in self._pods.items() if pod.node == name]
        for session in sessions:
            self._apply(session, event)

    def list_events(self, found: list[Any], _: object = None) -> None:
        for item in sorted(found, key=lambda item: str(item.get("lastTimestamp") or "")):
            self.change_event(ADDED, item)

    def change_event(self, what: str, item: Object) -> None:
        kind, name = reading.about(item)
        session = name.removeprefix(name_of(""))
        if what == DELETED or session == name or kind not in ("Pod", reading.CLAIM):
            return
        noted = reading.noted(item, self.now())
        if kind == reading.CLAIM:
            pod = self.pod(session)
            noted = replace(noted, uid="" if pod is None else pod.uid)
        self._apply(session, noted)

    def failed(self, kind: str, why: str) -> None:
        """``kind`` cannot be followed now; no reason: it can again."""
        with self.moved:
            if why:
                self.problems[kind] = why
            else:
                self.problems.pop(kind, None)
            self.moved.notify_all()

    def _apply(self, session: str, event: pods.Event) -> None:
        with self.moved:
            before = self._pods.get(session)
            if before is None and not isinstance(event, pods.PodTold):
                return
            after = pods.handle(before or Pod(name_of(session)), event)
            if after == before:
                return
            self._pods[session] = after
            if not pods.is_news(before, after):
                return
            if after.ended:
                self._ends[after.uid] = after
                while len(self._ends) > MOST_ENDS:
                    self._ends.popitem(last=False)
            self.moved.notify_all()
        self.on_change(session)

    # what is asked ----------------------------------------------------------------------------------------------

    def pod(self, session: str) -> Pod | None:
        with self.moved:
            return self._pods.get(session)

    def nodes(self) -> list[pods.NodeTold]:
        """Every node that the cluster tells of, by its name."""
        with self.moved:
            return [self._nodes[name] for name in sorted(self._nodes)]

    def address(self, session: str, uid: str) -> str:
        """Where that very pod is reached; empty while it has no address."""
        with self.moved:
            item = self._objects.get(session)
        return reading.address_of(item) if item is not None and reading.uid_of(item) == uid else ""

    def forget(self, session: str) -> None:
        with self.moved:
            self._objects.pop(session, None)
            if (pod := self._pods.get(session)) is not None and pod.ended:
                del self._pods[session]

    def join(self, stored: Pod, session: str) -> Pod | None:
        """``stored`` with what the cluster has told since; None when its pod is not known here, and has to be asked
        for: it may be newer than what was followed, or gone.

        An end comes before the pod that follows it: whoever stores it asks again.
        """
        with self.moved:
            told, end = self._pods.get(session), self._ends.get(stored.uid)
        if stored.ended or not stored.uid:
            is_next = told is not None and told.uid != stored.uid
            return replace(told, run=stored.run) if is_next and told is not None else stored
        if end is None and told is not None and told.uid == stored.uid:
            end = told
        return None if end is None else joined(stored, end)

    def gone(self, stored: Pod) -> Pod:
        """The cluster has no such pod: its end, with what is known of its node."""
        node = self._nodes.get(stored.node)
        if node is not None:
            stored = pods.handle(stored, node)
        elif stored.node and self.has_nodes:
            stored = pods.handle(stored, pods.NodeRemoved(self.now(), stored.node))
        return pods.handle(stored, pods.PodGone(self.now(), stored.uid))


def joined(stored: Pod, told: Pod) -> Pod:
    """The same pod, as the cluster tells it, and as the hub knows it."""
    found = replace(stored, **{name: getattr(told, name) for name in OF_CLUSTER})
    return replace(found, unreachable_since=None) if found.ended else found


def _version(item: Object) -> int:
    """Of one object they are compared only as far as they are numbers, as they are everywhere."""
    text = str((item.get("metadata") or {}).get("resourceVersion", ""))
    return int(text) if text.isascii() and text.isdigit() else 0
