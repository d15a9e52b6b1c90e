"""``/api/agents``: sessions as agents that are started and stopped."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from hitchpost.errors import Refused
from hitchpost.hub.http.agent_view import Views
from hitchpost.hub.http.depends import Actor, CallersGrant, PathAgent, TheHub
from hitchpost.hub.http.permissions import AGENT, listed_for
from hitchpost.hub.http.schemas import AgentView
from hitchpost.model import run as runs
from hitchpost.model.headline import STALE
from hitchpost.store.index import agent_state_of

router = APIRouter()


@router.get("/api/agents", response_model=list[AgentView])
async def list_agents(hub: TheHub, grant: CallersGrant, views: Views) -> list[dict[str, Any]]:
    return await views.of_all(await listed_for(grant, hub))


@router.get(AGENT, response_model=AgentView)
async def get_agent(agent: PathAgent, views: Views) -> dict[str, Any]:
    return await views.of(agent)


@router.post(f"{AGENT}/start", response_model=AgentView)
async def start_agent(hub: TheHub, agent: PathAgent, actor: Actor, views: Views) -> dict[str, Any]:
    session = await hub.after(agent.id)
    record, facts = session.observation.record, session.observation.facts
    if facts.state in runs.LIVE and agent_state_of(session.line) != STALE:
        raise Refused(f"{record.name} is already running. Use 'hitch attach {record.word}' to connect.")
    return await views.of((await hub.resume(session.id, actor=actor))[0])


@router.post(f"{AGENT}/stop", response_model=AgentView)
async def stop_agent(hub: TheHub, agent: PathAgent, actor: Actor, views: Views) -> dict[str, Any]:
    return await views.of(await hub.stop(agent.id, actor=actor))


@router.post(f"{AGENT}/restart-session", response_model=AgentView)
async def restart_stale_agent(hub: TheHub, agent: PathAgent, actor: Actor, views: Views) -> dict[str, Any]:
    session = await hub.after(agent.id)
    if (state := agent_state_of(session.line)) != STALE:
        raise Refused(f"{session.observation.record.name} is {state}, not stale")
    return await views.of((await hub.restart(session.id, actor=actor))[0])
