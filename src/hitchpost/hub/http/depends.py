"""What routes depend on: the hub, who asks, and the session that the path names.

They are coroutines because FastAPI runs plain functions in a thread, for every request.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path
from starlette.requests import HTTPConnection

from hitchpost.hub.core import Hub
from hitchpost.hub.http.grants import Grant
from hitchpost.hub.http.people import People
from hitchpost.hub.session import HubSession
from hitchpost.ops.sessions.create import LONGEST_NAME

SessionName = Annotated[str, Path(max_length=LONGEST_NAME, description="An id, a name, an index, or how an id begins.")]


async def hub_of(connection: HTTPConnection) -> Hub:
    hub: Hub = connection.app.state.hub
    return hub


async def grant_of(connection: HTTPConnection) -> Grant:
    grant: Grant = connection.state.grant
    return grant


async def actor_of(connection: HTTPConnection) -> str:
    """Who asks, as the story of a session names it: cli, browser, or a token."""
    actor: str = connection.state.actor
    return actor


async def people_of(connection: HTTPConnection) -> People:
    people: People = connection.app.state.people
    return people


TheHub = Annotated[Hub, Depends(hub_of)]
CallersGrant = Annotated[Grant, Depends(grant_of)]
Actor = Annotated[str, Depends(actor_of)]
ThePeople = Annotated[People, Depends(people_of)]


async def session_in_path(session: SessionName, hub: TheHub) -> HubSession:
    return await hub.find(session)


async def agent_in_path(agent: SessionName, hub: TheHub) -> HubSession:
    return await hub.find(agent)


PathSession = Annotated[HubSession, Depends(session_in_path)]
"""The session that ``{session}`` names. Raises ``NoSuchSession``, as a route's answer."""
PathAgent = Annotated[HubSession, Depends(agent_in_path)]
"""The session that ``{agent}`` names."""
