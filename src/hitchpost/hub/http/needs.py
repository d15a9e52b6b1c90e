"""What every route needs of who asks, and the one place that asks for it. A route that is not here answers nobody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, TypeVar

from starlette.requests import HTTPConnection

from hitchpost.errors import HitchpostError, NoSuchSession
from hitchpost.hub.core import Hub
from hitchpost.hub.http.grants import Forbidden, Grant, Need
from hitchpost.ops.views.find import resolve_in

SESSION, AGENT, WORKSPACES = "/api/sessions/{session}", "/api/agents/{agent}", "/api/workspaces"
NEEDS: dict[tuple[str, str], Need] = {
    ("GET", "/"): Need.NOTHING,
    ("GET", "/assets/{name}"): Need.NOTHING,
    ("GET", "/favicon.svg"): Need.NOTHING,
    ("GET", "/manifest.webmanifest"): Need.NOTHING,
    ("GET", "/sw.js"): Need.NOTHING,
    ("POST", "/api/sign-in/challenge"): Need.NOTHING,
    ("POST", "/api/sign-in"): Need.NOTHING,
    ("POST", "/api/launch-code"): Need.SOCKET,
    ("GET", "/api/sessions/table"): Need.SOCKET,
    ("GET", "/api/me"): Need.KNOWN,
    ("POST", "/api/sign-out"): Need.KNOWN,
    ("POST", "/api/ws-ticket"): Need.KNOWN,
    ("WS", "/ws"): Need.KNOWN,
    ("GET", "/api/openapi.json"): Need.KNOWN,
    ("GET", "/api/health"): Need.KNOWN,
    ("GET", "/api/status"): Need.KNOWN,
    ("GET", "/metrics"): Need.KNOWN,
    ("GET", "/api/agents"): Need.KNOWN,
    ("GET", "/api/sessions"): Need.KNOWN,
    ("GET", "/api/sessions/export"): Need.KNOWN,
    ("GET", WORKSPACES): Need.KNOWN,
    ("GET", "/api/catalog"): Need.LOOK_AT_ALL,
    ("GET", SESSION): Need.LOOK,
    ("GET", f"{SESSION}/story"): Need.LOOK,
    ("GET", f"{SESSION}/runs"): Need.LOOK,
    ("GET", f"{SESSION}/screen"): Need.LOOK,
    ("GET", f"{SESSION}/recording"): Need.LOOK,
    ("GET", f"{SESSION}/replay"): Need.LOOK,
    ("GET", f"{SESSION}/replay/part"): Need.LOOK,
    ("GET", f"{SESSION}/diff"): Need.LOOK,
    ("GET", f"{SESSION}/explain"): Need.LOOK,
    ("GET", AGENT): Need.LOOK,
    ("PATCH", SESSION): Need.CHANGE,
    ("DELETE", SESSION): Need.CHANGE,
    ("POST", f"{SESSION}/prompt"): Need.CHANGE,
    ("POST", f"{SESSION}/stop"): Need.CHANGE,
    ("POST", f"{SESSION}/restart"): Need.CHANGE,
    ("POST", f"{SESSION}/resume"): Need.CHANGE,
    ("POST", f"{SESSION}/cancel"): Need.CHANGE,
    ("POST", f"{SESSION}/archive"): Need.CHANGE,
    ("POST", f"{AGENT}/start"): Need.CHANGE,
    ("POST", f"{AGENT}/stop"): Need.CHANGE,
    ("POST", f"{AGENT}/restart-session"): Need.CHANGE,
    ("POST", "/api/sessions"): Need.CHANGE_ALL,
    ("POST", WORKSPACES): Need.CHANGE_ALL,
    ("DELETE", f"{WORKSPACES}/{{workspace}}"): Need.CHANGE_ALL,
}


class HasId(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=HasId)


async def meant(hub: Hub, grant: Grant, wanted: str) -> str:
    """Which session ``wanted`` means, known in full from now on. Names are looked up here and nowhere after it.

    A grant for some sessions gets the id, looked for among these alone: others' names and ids change nothing. Raises
    ``NoSuchSession`` when it covers none of that name.
    """
    await hub.registry.ready(wanted)
    if grant.sessions is None:
        return wanted
    covered = (hub.registry.sessions.get(session) for session in grant.sessions)
    try:
        found = resolve_in({tracked.id: tracked.row for tracked in covered if tracked and tracked.line}, wanted)
    except HitchpostError:
        raise NoSuchSession(wanted) from None
    if found != wanted:
        await hub.registry.ready(found)
    return found


def admission(hub: Hub) -> Callable[[HTTPConnection], Awaitable[None]]:
    """What comes before every route: the session of its path is looked up, and who asks may do that.

    The route gets what was found, not what was asked for: a name may belong to another session by then.
    """

    async def check(connection: HTTPConnection) -> None:
        grant: Grant = connection.state.grant
        names = [name for name in ("session", "agent") if connection.path_params.get(name)]
        for name in names:
            connection.path_params[name] = await meant(hub, grant, connection.path_params[name])
        need = NEEDS.get((connection.scope.get("method", "WS"), connection.scope["route"].path))
        if need is None:
            raise Forbidden("nobody may ask that")
        grant.check(need, is_covered=bool(names), local=connection.state.local)

    return check


def grant_of(connection: HTTPConnection) -> Grant:
    grant: Grant = connection.state.grant
    return grant


def seen_by(grant: Grant, some: Iterable[T]) -> list[T]:
    """Those that the grant covers."""
    return [session for session in some if grant.sees(session.id)]
