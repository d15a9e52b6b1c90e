"""What every route needs of its caller, and the check of it. A route that is not here answers nobody."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from starlette.requests import HTTPConnection

from hitchpost.errors import HitchpostError, NoSuchSession
from hitchpost.hub.core import Hub
from hitchpost.hub.http.grants import Forbidden, Grant, Need
from hitchpost.hub.session import HubSession
from hitchpost.model.record import LISTED
from hitchpost.ops.views.find import resolve_in
from hitchpost.ops.views.listing import Row

SESSION, AGENT, WORKSPACES = "/api/sessions/{session}", "/api/agents/{agent}", "/api/workspaces"
NOTIFICATIONS = "/api/notifications"
NODES = "/api/fleet/nodes"
NODE = f"{NODES}/{{node}}"
NEEDS: dict[tuple[str, str], Need] = {
    ("GET", "/"): Need.NOTHING,
    ("GET", "/assets/{name}"): Need.NOTHING,
    ("GET", "/favicon.svg"): Need.NOTHING,
    ("GET", "/manifest.webmanifest"): Need.NOTHING,
    ("GET", "/sw.js"): Need.NOTHING,
    ("POST", "/api/sign-in/challenge"): Need.NOTHING,
    ("POST", "/api/sign-in"): Need.NOTHING,
    ("POST", "/api/launch-code"): Need.SOCKET,
    ("GET", "/api/me"): Need.SIGNED_IN,
    ("POST", "/api/sign-out"): Need.SIGNED_IN,
    ("POST", "/api/ws-ticket"): Need.SIGNED_IN,
    ("WS", "/ws"): Need.SIGNED_IN,
    ("GET", "/api/openapi.json"): Need.SIGNED_IN,
    ("GET", "/api/health"): Need.SIGNED_IN,
    ("GET", "/api/status"): Need.SIGNED_IN,
    ("GET", "/metrics"): Need.SIGNED_IN,
    ("GET", "/api/usage"): Need.SIGNED_IN,
    ("GET", "/api/agents"): Need.SIGNED_IN,
    ("GET", "/api/sessions"): Need.SIGNED_IN,
    ("GET", "/api/sessions/table"): Need.SIGNED_IN,
    ("GET", "/api/find"): Need.SIGNED_IN,
    ("GET", "/api/wait"): Need.SIGNED_IN,
    ("GET", "/api/sessions/export"): Need.SIGNED_IN,
    ("GET", WORKSPACES): Need.SIGNED_IN,
    ("GET", "/api/catalog"): Need.LOOK_AT_ALL,
    ("GET", SESSION): Need.LOOK,
    ("GET", f"{SESSION}/story"): Need.LOOK,
    ("GET", f"{SESSION}/runs"): Need.LOOK,
    ("GET", f"{SESSION}/screen"): Need.LOOK,
    ("GET", f"{SESSION}/chat"): Need.LOOK,
    ("GET", f"{SESSION}/images/{{image}}"): Need.LOOK,
    ("GET", f"{SESSION}/outcome"): Need.LOOK,
    ("GET", f"{SESSION}/recording"): Need.LOOK,
    ("GET", f"{SESSION}/output"): Need.LOOK,
    ("GET", f"{SESSION}/output/part"): Need.LOOK,
    ("GET", f"{SESSION}/output/times"): Need.LOOK,
    ("GET", f"{SESSION}/replay"): Need.LOOK,
    ("GET", f"{SESSION}/replay/part"): Need.LOOK,
    ("GET", f"{SESSION}/diff"): Need.LOOK,
    ("GET", f"{SESSION}/diff/text"): Need.LOOK,
    ("GET", f"{SESSION}/explain"): Need.LOOK,
    ("GET", f"{SESSION}/finish"): Need.LOOK,
    ("GET", AGENT): Need.LOOK,
    ("PATCH", SESSION): Need.CHANGE,
    ("DELETE", SESSION): Need.CHANGE,
    ("POST", f"{SESSION}/prompt"): Need.CHANGE,
    ("DELETE", f"{SESSION}/prompts/{{prompt}}"): Need.CHANGE,
    ("POST", f"{SESSION}/answer"): Need.CHANGE,
    ("POST", f"{SESSION}/interrupt"): Need.CHANGE,
    ("POST", f"{SESSION}/stop"): Need.CHANGE,
    ("POST", f"{SESSION}/restart"): Need.CHANGE,
    ("POST", f"{SESSION}/resume"): Need.CHANGE,
    ("POST", f"{SESSION}/cancel"): Need.CHANGE,
    ("POST", f"{SESSION}/archive"): Need.CHANGE,
    ("POST", f"{SESSION}/unarchive"): Need.CHANGE,
    ("POST", f"{SESSION}/restore"): Need.CHANGE,
    ("POST", f"{AGENT}/start"): Need.CHANGE,
    ("POST", f"{AGENT}/stop"): Need.CHANGE,
    ("POST", f"{AGENT}/restart-session"): Need.CHANGE,
    ("GET", "/api/folders"): Need.CHANGE_ALL,
    ("POST", "/api/sessions"): Need.CHANGE_ALL,
    ("POST", f"{SESSION}/fork"): Need.CHANGE_ALL,
    ("POST", f"{SESSION}/finish"): Need.CHANGE_ALL,
    ("GET", NOTIFICATIONS): Need.LOOK_AT_ALL,
    ("PUT", NOTIFICATIONS): Need.CHANGE_ALL,
    ("GET", f"{NOTIFICATIONS}/log"): Need.LOOK_AT_ALL,
    ("POST", f"{NOTIFICATIONS}/subscriptions"): Need.CHANGE_ALL,
    ("DELETE", f"{NOTIFICATIONS}/subscriptions/{{subscription}}"): Need.CHANGE_ALL,
    ("POST", f"{NOTIFICATIONS}/test"): Need.CHANGE_ALL,
    ("GET", "/api/fleet"): Need.LOOK_AT_ALL,
    ("GET", NODE): Need.LOOK_AT_ALL,
    ("POST", f"{NODE}/cordon"): Need.CHANGE_ALL,
    ("POST", f"{NODE}/sessions/{{session}}/drain"): Need.CHANGE_ALL,
    ("POST", WORKSPACES): Need.CHANGE_ALL,
    ("DELETE", f"{WORKSPACES}/{{workspace}}"): Need.CHANGE_ALL,
}


class HasId(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=HasId)


async def resolve(hub: Hub, grant: Grant, name: str) -> str:
    """Which session ``name`` means, loaded from now on. Names are looked up here and nowhere after it.

    A grant for some sessions gets the id, looked for among these alone: others' names and ids change nothing. Raises
    ``NoSuchSession`` when it covers none of that name.
    """
    await hub.registry.load(name)
    if grant.sessions is None:
        return name
    covered = (hub.registry.by_id.get(session_id) for session_id in grant.sessions)
    rows = {session.id: session.index_row for session in covered if session is not None and session.line}
    try:
        session_id = resolve_in(rows, name)
    except HitchpostError:
        raise NoSuchSession(name) from None
    if session_id != name:
        await hub.registry.load(session_id)
    return session_id


async def check_needs(connection: HTTPConnection) -> None:
    """Before every route: look up the session that its path names, and check that the caller may do what it does.

    The route gets what was found, not what was asked for: a name may belong to another session by then.
    """
    hub: Hub = connection.app.state.hub
    grant: Grant = connection.state.grant
    parameters = [name for name in ("session", "agent") if connection.path_params.get(name)]
    for parameter in parameters:
        connection.path_params[parameter] = await resolve(hub, grant, connection.path_params[parameter])
    need = NEEDS.get((connection.scope.get("method", "WS"), connection.scope["route"].path))
    if need is None:
        raise Forbidden("nobody may ask that")
    grant.check(need, is_covered=bool(parameters), local=connection.state.local)


def visible_to(grant: Grant, rows: Iterable[T]) -> list[T]:
    """Those that the grant covers."""
    return [row for row in rows if grant.sees(row.id)]


async def listed_for(grant: Grant, hub: Hub) -> Sequence[HubSession | Row]:
    """The sessions that ``hitch ps`` lists, of those that the grant covers."""
    await hub.registry.refresh()
    return visible_to(grant, hub.registry.rows(records=LISTED))
