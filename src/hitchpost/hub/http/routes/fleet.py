"""``/api/fleet``: the hubs and nodes of a fleet, and how a node is emptied."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query

from hitchpost.hub.http import schemas
from hitchpost.hub.http.depends import Actor, PathSession, TheHub
from hitchpost.hub.http.permissions import NODE
from hitchpost.hub.nodes import Nodes, NodeSeen
from hitchpost.hub.session import HubSession
from hitchpost.model.draining import step_of

router = APIRouter()
NodeName = Annotated[str, Path(max_length=253)]
Way = Annotated[schemas.DrainWay | None, Query(description="Instead of what the settings say.")]


@router.get("/api/fleet", response_model=schemas.Fleet)
async def show_fleet(hub: TheHub) -> dict[str, Any]:
    """The hubs, and the nodes with how many sessions are on each."""
    nodes = Nodes(hub)
    await hub.registry.refresh()
    members = await nodes.members()
    return {
        "replica": nodes.replica.name,
        "database": nodes.replica.database.where,
        "revision": nodes.replica.mirror.revision,
        "replicas": [
            {
                "name": member.name,
                "since": member.since.isoformat(),
                "connections": member.connections,
                "watched": member.watched,
                "leads": member.leads,
            }
            for member in members
        ],
        "nodes": [_node(node) for node in nodes.all()],
        "problems": hub.problems,
    }


@router.get(NODE, response_model=schemas.NodePlan)
async def show_node(hub: TheHub, node: NodeName, how: Way = None) -> dict[str, Any]:
    """A node, and what a drain would do with each session on it. Nothing is done."""
    nodes = Nodes(hub)
    await hub.registry.refresh()
    found, way = nodes.find(node), how or nodes.usual_way
    return {
        **_node(found),
        "how": way,
        "steps": [_step(session, way) for session in sorted(found.sessions, key=lambda session: session.place)],
        "drained": [_named(session) for session in await nodes.drained(node)],
    }


@router.post(f"{NODE}/cordon", response_model=schemas.Node)
async def cordon_node(hub: TheHub, node: NodeName, body: Annotated[schemas.Cordon, Body()]) -> dict[str, Any]:
    """No new pod comes to the node from now on; or, with ``on`` false, some may again."""
    nodes = Nodes(hub)
    await nodes.cordon(node, on=body.on)
    return {**_node(nodes.find(node)), "cordoned": body.on}


@router.post(f"{NODE}/sessions/{{session}}/drain", response_model=schemas.Drained)
async def drain_session(
    hub: TheHub,
    node: NodeName,
    session: PathSession,
    actor: Actor,
    body: Annotated[schemas.Drain | None, Body()] = None,
) -> dict[str, Any]:
    """Take one session off the node. One that is not there any more is left alone, so this may be asked again."""
    nodes = Nodes(hub)
    way = (body.how if body is not None else None) or nodes.usual_way
    became, after = await nodes.leave(node, session.id, way, actor=actor)
    return {"became": became, "session": after.shape}


def _node(node: NodeSeen) -> dict[str, Any]:
    live = sum(session.lives for session in node.sessions)
    return {
        "name": node.name,
        "ready": node.ready,
        "cordoned": node.cordoned,
        "sessions": len(node.sessions),
        "live": live,
    }


def _step(session: HubSession, way: str) -> dict[str, Any]:
    step = step_of(session.observation.facts, way)
    return {**_named(session), "step": step.kind, "words": step.words}


def _named(session: HubSession) -> dict[str, Any]:
    return {"id": session.id, "name": session.shape["name"], "label": session.shape["label"]}
