"""``/ws``: every session on one connection, and how many connections there may be."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, WebSocket

from hitchpost.hub.core import Hub
from hitchpost.hub.http.connection_limits import part_of_descriptors
from hitchpost.hub.http.gate import Refusal, refuse
from hitchpost.hub.http.in_progress import Held
from hitchpost.hub.http.metrics import Metrics
from hitchpost.hub.http.tokenfile import BROWSER, Credential
from hitchpost.hub.http.ws_connection import Connection

MOST_CLIENTS = 600
"""Over TCP; the hub's own socket always has room."""
MOST_OF_ONE = 32
KEPT_FOR_OWNERS = 100
MOST_VIEWS = 2000
MOST_VIEWS_OF_ONE = 200
"""What those look at who do not own everything: terminals and chats. Each view of a terminal holds a file open."""

router = APIRouter()


@router.websocket("/ws")
async def connect(websocket: WebSocket) -> None:
    websockets: WebSockets = websocket.app.state.websockets
    await websockets.serve(websocket)


class WebSockets:
    """The connections that are open."""

    def __init__(self, hub: Hub, metrics: Metrics) -> None:
        self.hub, self.metrics = hub, metrics
        self.open: set[Connection] = set()

    async def serve(self, websocket: WebSocket) -> None:
        held: Held | None = websocket.state.held
        if held is not None and (full := self._full_for(held.credential)):
            refusal = Refusal(503, "too_many_clients", f"{full}; try again later")
            await refuse(websocket.scope, websocket.receive, websocket.send, refusal)
            return
        connection = Connection(self.hub, websocket, self.metrics, websocket.state.grant)
        connection.key = "" if held is None else held.credential.key
        is_browser = held is not None and held.credential.kind == BROWSER
        connection.hears = BROWSER if is_browser else websocket.query_params.get("hears", "")
        connection.full = partial(self._no_view_for, connection)
        self.open.add(connection)  # before anything is waited for, so that others count it
        self.metrics.clients = len(self.open)
        try:
            await websocket.accept()
            self.hub.expect_viewers()
            if held is not None:
                held.end = partial(connection.end, held.end)
            await connection.run()
        finally:
            self.open.discard(connection)
            self.metrics.clients = len(self.open)

    def _full_for(self, credential: Credential) -> str:
        """Why there is no room for one more over TCP: nobody takes all of it, and some is kept for owners."""
        keys = [connection.key for connection in self.open if connection.key]
        if keys.count(credential.key) >= MOST_OF_ONE:
            return f"{MOST_OF_ONE} clients are connected with this sign-in"
        for_others = min(MOST_CLIENTS - KEPT_FOR_OWNERS, part_of_descriptors(4))
        most = MOST_CLIENTS if credential.grant.is_whole else for_others
        return f"{len(keys)} clients are connected" if len(keys) >= most else ""

    def _no_view_for(self, connection: Connection) -> str:
        """Why this one may look at nothing more: some of the descriptors are kept for the owner and the sessions."""
        if connection.grant.is_whole:
            return ""
        others = [other for other in self.open if not other.grant.is_whole]
        if sum(other.looks for other in others if other.key == connection.key) >= MOST_VIEWS_OF_ONE:
            return f"{MOST_VIEWS_OF_ONE} terminals or chats are shown with this sign-in; detach from some"
        most = min(MOST_VIEWS, part_of_descriptors(4))
        shown = sum(other.looks for other in others)
        return f"{most} terminals or chats are shown; try again later" if shown >= most else ""
