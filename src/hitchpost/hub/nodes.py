"""The nodes of a fleet's cluster: which sessions are on each, and how a node is emptied.

A drain is one step for each session, which may be asked of any hub and asked again: what has left, has left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from hitchpost.errors import HitchpostError, Refused
from hitchpost.hub.core import Hub
from hitchpost.hub.session import HubSession
from hitchpost.model import draining
from hitchpost.model.pods import NodeTold
from hitchpost.model.record import ACTIVE, SUSPENDED
from hitchpost.store import runfiles
from hitchpost.store.home import session_folder
from hitchpost.store.session import Session

if TYPE_CHECKING:
    from hitchpost.fleet.roster import Member
    from hitchpost.hub.pods import HubPods
    from hitchpost.hub.replica import Replica

LEFT, SUSPENDED_IT, MOVED, ENDED = "left", "suspended", "moved", "ended"
log = structlog.get_logger()


class NotAFleet(Refused):
    """Raised when a hub that serves one machine is asked for its nodes."""

    http_status = 404
    code = "not_found"

    def __init__(self) -> None:
        super().__init__("this hub serves one machine, so it has no nodes", "ask the hub of a fleet")


class NoSuchNode(HitchpostError):
    """Raised when the cluster has no node of that name, and no session is known to be there."""

    exit_code = 3
    http_status = 404
    code = "not_found"

    def __init__(self, node: str) -> None:
        super().__init__(f"no node {node!r}", "hitch fleet status lists them")


class StillTakesPods(Refused):
    """Raised when sessions are to be moved off a node that they could come back to."""

    def __init__(self, node: str) -> None:
        super().__init__(
            f"node {node} takes new pods, so what is moved may come back to it; nothing was done",
            f"cordon it first: kubectl cordon {node}",
            cli_hint="add --cordon, or choose --how rest",
        )


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """``sessions`` have a pod there. ``ready`` is None for one that the cluster does not tell of."""

    name: str
    ready: bool | None
    cordoned: bool
    sessions: list[HubSession]


class Nodes:
    """For a hub of a fleet. Raises ``NotAFleet`` for any other."""

    def __init__(self, hub: Hub) -> None:
        if hub.replica is None or hub.pods is None:
            raise NotAFleet
        self.hub = hub
        self.replica: Replica = hub.replica
        self.pods: HubPods = hub.pods

    @property
    def usual_way(self) -> str:
        return self.pods.options.drain

    async def members(self) -> list[Member]:
        """The fleet's hubs. Raises ``DatabaseAway``."""
        from hitchpost.fleet.roster import members

        return await self.hub.do(members, self.replica.database)

    def all(self) -> list[NodeSeen]:
        told = {} if self.pods.cluster is None else {node.node: node for node in self.pods.cluster.view.nodes()}
        by_node: dict[str, list[HubSession]] = {name: [] for name in told}
        for session in self.hub.registry.by_id.values():
            pod = None if session.latest is None else session.latest.facts.pod
            if pod is not None and pod.node and not pod.ended:
                by_node.setdefault(pod.node, []).append(session)
        return [_seen(name, told.get(name), by_node[name]) for name in sorted(by_node)]

    def find(self, name: str) -> NodeSeen:
        """Raises ``NoSuchNode``."""
        for node in self.all():
            if node.name == name:
                return node
        raise NoSuchNode(name)

    async def drained(self, node: str) -> list[HubSession]:
        """Sessions that the last drain of the node has ended, and that have not begun again."""
        candidates = [
            session
            for session in self.hub.registry.by_id.values()
            if session.line and session.index_row["record"] in (ACTIVE, SUSPENDED) and not session.lives
        ]
        for session in candidates:
            if session.latest is None:
                await self.hub.registry.load(session.id)
        return await self.hub.do(lambda: [session for session in candidates if _was_drained(session, node)])

    async def cordon(self, node: str, *, on: bool) -> None:
        """Raises ``NoSuchNode``, and what the cluster refuses with."""
        self.find(node)
        if self.pods.cluster is None:
            raise Refused("no cluster is connected, so nothing can be told to its nodes")
        await self.hub.do(lambda: self._cordon(node, on=on))
        log.info("a node was cordoned" if on else "a node was uncordoned", node=node)

    def _cordon(self, node: str, *, on: bool) -> None:
        assert self.pods.cluster is not None
        self.pods.cluster.cordon(node, on=on)

    async def leave(self, node: str, session_id: str, way: str, *, actor: str) -> tuple[str, HubSession]:
        """Take one session off the node: what became of it, and the session. One that is not there has left already.

        Raises ``StillTakesPods``, and what ``stop`` and ``resume`` raise.
        """
        session = await self.hub.after(session_id)
        facts = session.observation.facts
        if not draining.is_on(facts, node):
            return LEFT, session
        if way == draining.MOVE and not self.find(node).cordoned:
            raise StillTakesPods(node)
        step = draining.step_of(facts, way)
        reason = draining.REASON.format(node=node)
        session = await self.hub.stop(session_id, actor=actor, by=draining.intent_of(way), reason=reason)
        log.info("a session has left its node", session_id=session_id, node=node, way=way)
        if step.kind != draining.END:
            return ENDED, session
        if way == draining.SUSPEND:
            await self.hub.change(session_id, _suspend, session_folder(self.hub.home, session_id), actor, reason)
            return SUSPENDED_IT, await self.hub.after(session_id)
        if way == draining.MOVE:
            return MOVED, (await self.hub.resume(session_id, actor=actor))[0]
        return ENDED, session


def _seen(name: str, told: NodeTold | None, sessions: list[HubSession]) -> NodeSeen:
    if told is None:
        return NodeSeen(name, None, False, sessions)
    return NodeSeen(name, told.ready, told.cordoned, sessions)


def _was_drained(session: HubSession, node: str) -> bool:
    seen = session.latest
    if seen is None or seen.facts.pod is None or seen.facts.pod.node != node:
        return False
    why = str(runfiles.read_intent(seen.run_folder).get("reason") or "")
    return draining.was_drained(seen.facts, why, node)


def _suspend(folder: str, actor: str, reason: str) -> None:
    stored = Session(folder, actor=actor)
    with stored.lock():
        if stored.record().record == ACTIVE:
            stored.change_record(SUSPENDED, run=stored.read().run, reason=reason)
