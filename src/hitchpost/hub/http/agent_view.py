"""A session as the agents' routes show it: what runs, where, and whether it lives."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import HTTPConnection

from hitchpost.agents import catalog
from hitchpost.hub.session import HubSession
from hitchpost.model.compat import container_name
from hitchpost.model.facts import has_sandbox
from hitchpost.ops.views.listing import Row
from hitchpost.store.index import agent_state_of
from hitchpost.text import readable


class AgentViews:
    """The titles of the catalog's agents are read once, in a thread: they are files of the package."""

    def __init__(self) -> None:
        self._titles: dict[str, str] | None = None

    async def of(self, session: HubSession | Row) -> dict[str, Any]:
        return (await self.of_all([session]))[0]

    async def of_all(self, sessions: Iterable[HubSession | Row]) -> list[dict[str, Any]]:
        if self._titles is None:
            self._titles = await asyncio.to_thread(_read_titles)
        return [_view(session, self._titles) for session in sessions]


async def agent_views_of(connection: HTTPConnection) -> AgentViews:
    views: AgentViews = connection.app.state.agent_views
    return views


Views = Annotated[AgentViews, Depends(agent_views_of)]


def _read_titles() -> dict[str, str]:
    return {name: catalog.title(name) for name in catalog.names()}


def _view(session: HubSession | Row, titles: dict[str, str]) -> dict[str, Any]:
    shape = session.shape
    has_container = bool(shape["runtime"]) and has_sandbox(shape["runtime"]) and shape["sandbox_alive"] is not False
    return {
        "id": session.id,
        "name": shape["name"],
        "display_name": readable(titles.get(shape["agent"], shape["agent"])),
        "state": agent_state_of(session.line),
        "session_alive": shape["session_alive"],
        "sandbox_alive": shape["sandbox_alive"],
        "container": container_name(session.id) if has_container else None,
    }
