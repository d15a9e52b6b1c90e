"""A session as the agents' routes show it: what runs, where, and whether it lives."""

from __future__ import annotations

from typing import Any

from hitchpost.agents import catalog
from hitchpost.hub.session import HubSession
from hitchpost.model.facts import WITHOUT_SANDBOX
from hitchpost.model.status import container_name
from hitchpost.ops.views.listing import Row
from hitchpost.store.index import agent_state_of
from hitchpost.text import readable


def agent_view(session: HubSession | Row) -> dict[str, Any]:
    shape = session.shape
    agent = shape["agent"]
    has_container = shape["runtime"] not in (*WITHOUT_SANDBOX, "") and shape["sandbox_alive"] is not False
    title = catalog.load(agent).title if agent in catalog.names() else agent
    return {
        "id": session.id,
        "name": shape["name"],
        "display_name": readable(title),
        "state": agent_state_of(session.line),
        "session_alive": shape["session_alive"],
        "sandbox_alive": shape["sandbox_alive"],
        "container": container_name(session.id) if has_container else None,
    }
