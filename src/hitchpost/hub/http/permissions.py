"""What every route needs of its caller, and the check of it. A route that is not here answers nobody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from starlette.requests import HTTPConnection

from hitchpost.errors import HitchpostError, NoSuchSession
from hitchpost.hub.core import Hub
from hitchpost.hub.http.grants import Forbidden, Grant, Need
from hitchpost.hub.session import HubSession
from hitchpost.model.record import LISTED
from hitchpost.ops.views.find import resolve_in
from hitchpost.ops.views.listing import Row
from hitchpost.store.index import owner_of

SESSION, AGENT, WORKSPACES = "/api/sessions/{session}", "/api/agents/{agent}", "/api/workspaces"
NOTIFICATIONS, USERS, TOKENS = "/api/notifications", "/api/users", "/api/tokens"
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
    ("POST", "/api/sign-in/proxy"): Need.SIGNED_IN,
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
    ("GET", "/api/catalog"): Need.LOOK_AROUND,
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
    ("POST", "/api/sessions"): Need.CREATE,
    ("POST", f"{SESSION}/fork"): Need.CREATE,
    ("POST", f"{SESSION}/finish"): Need.CHANGE_ALL,
    ("GET", NOTIFICATIONS): Need.LOOK_AT_ALL,
    ("PUT", NOTIFICATIONS): Need.CHANGE_ALL,
    ("GET", f"{NOTIFICATIONS}/log"): Need.LOOK_AT_ALL,
    ("POST", f"{NOTIFICATIONS}/subscriptions"): Need.CHANGE_ALL,
    ("DELETE", f"{NOTIFICATIONS}/subscriptions/{{subscription}}"): Need.CHANGE_ALL,
    ("POST", f"{NOTIFICATIONS}/test"): Need.CHANGE_ALL,
    ("GET", USERS): Need.CHANGE_ALL,
    ("POST", USERS): Need.CHANGE_ALL,
    ("PATCH", f"{USERS}/{{user}}"): Need.CHANGE_ALL,
    ("DELETE", f"{USERS}/{{user}}"): Need.CHANGE_ALL,
    ("GET", TOKENS): Need.CHANGE_ALL,
    ("POST", TOKENS): Need.CHANGE_ALL,
    ("DELETE", f"{TOKENS}/{{token}}"): Need.CHANGE_ALL,
    ("GET", "/api/fleet"): Need.LOOK_AT_ALL,
    ("GET", NODE): Need.LOOK_AT_ALL,
    ("POST", f"{NODE}/cordon"): Need.CHANGE_ALL,
    ("POST", f"{NODE}/sessions/{{session}}/drain"): Need.CHANGE_ALL,
    ("POST", WORKSPACES): Need.CHANGE_ALL,
    ("DELETE", f"{WORKSPACES}/{{workspace}}"): Need.CHANGE_ALL,
}


class Listed(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def line(self) -> str: ...


T = TypeVar("T", bound=Listed)


async def resolve(hub: Hub, grant: Grant, name: str) -> str:
    """Which session ``name`` means, loaded from now on. Names are looked up here and nowhere after it.

    A grant for some sessions gets the id, looked for among these alone: others' names and ids change nothing. Raises
    ``NoSuchSession`` when it covers none of that name.
    """
    await hub.registry.load(name)
    if grant.sees_all:
        return name
    session_id = _resolved(hub, grant, name)
    if session_id is None and await hub.is_caught_up():
        session_id = _resolved(hub, grant, name)  # it was just made at another hub of the fleet
    if session_id is None:
        raise NoSuchSession(name)
    if session_id != name:
        await hub.registry.load(session_id)
    return session_id


def _resolved(hub: Hub, grant: Grant, name: str) -> str | None:
    by_id = hub.registry.by_id
    there = by_id.values() if grant.sessions is None else map(by_id.get, grant.sessions)
    covered = visible_to(grant, (session for session in there if session is not None and session.line))
    try:
        return resolve_in({session.id: session.index_row for session in covered}, name)
    except HitchpostError:
        return None


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
    if grant.sees_all:
        return list(rows)
    return [row for row in rows if grant.covers(row.id, owner_of(row.line) if grant.own else "")]


def covered_by(grant: Grant, hub: Hub) -> frozenset[str] | None:
    """The ids of all that the grant covers; None when it covers every session, those that are gone included."""
    if grant.sees_all:
        return None
    if not grant.own:
        return grant.sessions
    return frozenset(session.id for session in visible_to(grant, hub.registry.by_id.values()))


def sees(grant: Grant, hub: Hub, session_id: str, shape: Mapping[str, Any] | None = None) -> bool:
    """Whether the grant covers a session, by its JSON if that is at hand: it may be gone by now."""
    if grant.sees_all:
        return True
    if not grant.own:
        return grant.covers(session_id, "")
    if shape is None:
        session = hub.registry.by_id.get(session_id)
        return session is not None and grant.covers(session_id, owner_of(session.line))
    return grant.covers(session_id, shape.get("owner") or "")


async def listed_for(grant: Grant, hub: Hub) -> Sequence[HubSession | Row]:
    """The sessions that ``hitch ps`` lists, of those that the grant covers."""
    await hub.registry.refresh()
    return visible_to(grant, hub.registry.rows(records=LISTED))
