"""A hub elsewhere: asking it over HTTP, and following it over a WebSocket. One connection for all that only looks."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from hitchpost.cli.remote import tls
from hitchpost.cli.remote.advice import elsewhere, with_context
from hitchpost.cli.remote.contexts import Context
from hitchpost.cli.remote.tls import CannotReach, NoHubThere
from hitchpost.cli.remote.tls_thread import ThreadedTls
from hitchpost.errors import HitchpostError
from hitchpost.hub.client import HubRefused, answered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from websockets.sync.client import ClientConnection

    from hitchpost.ops.views.session_types import Session

NOTHING: Mapping[str, object] = {}
TIMEOUT_S = 60.0
STARTS_S = 600.0
"""For what starts a run: an image may have to be fetched, and a prompt to be typed."""
PING_EVERY_S, PING_S = 5.0, 10.0
"""A WebSocket whose other end is gone without a word is known after so long."""


class OlderHub(HitchpostError):
    """Raised when the hub does not know what is asked of it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the hub of {name} is older than this hitch and does not know what it asks", "update the hub")


@dataclass(frozen=True, slots=True)
class Found:
    """A session there. ``word`` means it in a shell; ``way_on`` is how it goes on when it does not run."""

    session: Session
    word: str
    way_on: str
    notes: list[str]

    @property
    def id(self) -> str:
        return self.session["id"]

    @property
    def name(self) -> str:
        return self.session["name"]

    @property
    def path(self) -> str:
        return f"/api/sessions/{self.id}"


class _Connection(http.client.HTTPConnection):
    """Whenever it is opened, also again, it is opened as the context says: the token goes to nobody else."""

    def __init__(self, context: Context, connect_s: float) -> None:
        super().__init__("hub")
        self.context, self.connect_s = context, connect_s

    def connect(self) -> None:
        self.sock = tls.connect(self.context, self.connect_s)
        self.sock.settimeout(self.timeout)


class RemoteHub:
    def __init__(self, context: Context, *, connect_s: float = tls.ANSWERS_S) -> None:
        self.context, self.connect_s = context, connect_s
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        query: Mapping[str, object] = NOTHING,
    ) -> Any:
        """The hub's answer. Raises ``CannotReach``, or ``HubRefused`` with its error."""
        status, _, text = self._asked(method, path, body, timeout_s, query)
        return self._answered(status, text)

    def get(self, path: str, **query: object) -> Any:
        """A name with ``_`` at its end is meant without: ``from_``."""
        return self.ask("GET", path, query=query)

    def octets(self, path: str, **query: object) -> tuple[bytes, http.client.HTTPMessage]:
        """A body as it is, and its headers."""
        status, headers, body = self._asked("GET", path, None, TIMEOUT_S, query)
        if status >= 400:
            self._answered(status, body)
        return body, headers

    def find(self, word: str) -> Found:
        """The session that a word means. Raises ``HubRefused``."""
        try:
            found = Found(**self.get("/api/find", session=word))
        except HubRefused as refused:
            if refused.status == 404 and refused.message == "Not Found":
                raise OlderHub(self.context.name) from None
            raise
        return replace(found, way_on=self.advice(found.way_on), notes=[self.advice(note) for note in found.notes])

    def advice(self, text: str) -> str:
        """What is said about this hub: its commands are those that work here."""
        return elsewhere(text, self.context.name)

    def now(self, found: Found) -> Session:
        """The session as it is by now."""
        session: Session = self.get(found.path)
        return session

    def websocket(self, *, hears: bool = False, opens_s: float = tls.ANSWERS_S) -> ClientConnection:
        """A new one; ``hears``: notifications reach a person by it. Raises ``CannotReach`` or ``HubRefused``."""
        from websockets.exceptions import InvalidStatus, WebSocketException
        from websockets.sync.client import connect

        is_tls = tls.address(self.context.url)[2]
        sock = tls.open_plain(self.context)
        try:
            return connect(
                f"ws{self.context.url.removeprefix('http')}/ws{'?hears=terminal' if hears else ''}",
                sock=sock,
                ssl=ThreadedTls(tls.trusting(self.context.authorities)) if is_tls else None,  # type: ignore[arg-type]
                additional_headers=self._signed(),
                compression=None,
                max_size=None,
                open_timeout=opens_s,
                ping_interval=PING_EVERY_S,
                ping_timeout=PING_S,
                proxy=None,
            )
        except InvalidStatus as refused:
            sock.close()
            self._answered(refused.response.status_code, bytes(refused.response.body or b""))
            raise CannotReach(self.context, refused) from None
        except (OSError, WebSocketException) as error:
            sock.close()
            raise CannotReach(self.context, error) from None

    def _asked(
        self, method: str, path: str, body: Mapping[str, object] | None, timeout_s: float, query: Mapping[str, object]
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Host": tls.host_header(self.context.url), **self._signed()}
        headers |= {"Content-Type": "application/json"} if data is not None else {}
        target = path + (f"?{urlencode(_texts(query), doseq=True, errors='replace')}" if query else "")
        if method != "GET":
            self.close()  # one that the other side is about to close would leave it unknown whether this was done
        is_used = self._connection is not None
        connection = self._connection = self._connection or _Connection(self.context, self.connect_s)
        try:
            connection.timeout = timeout_s
            if connection.sock is not None:
                connection.sock.settimeout(timeout_s)
            connection.request(method, target, data, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except TimeoutError as error:
            self.close()
            raise CannotReach(self.context, error) from None
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if is_used:  # the hub, or something in between, has closed what nobody used
                return self._asked(method, path, body, timeout_s, query)
            raise CannotReach(self.context, error) from None
        except BaseException:
            self.close()  # half of an answer may be left in it
            raise

    def _answered(self, status: int, text: bytes) -> Any:
        """Raises ``HubRefused``, or ``CannotReach`` for what no hub says."""
        try:
            return answered(status, text)
        except HubRefused as refused:
            if refused.message == f"HTTP {status}":
                raise CannotReach(self.context, NoHubThere(status)) from None
            raise with_context(refused, self.context.name) from None
        except ValueError as error:
            raise CannotReach(self.context, error) from None

    def _signed(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.context.token}"}


def _texts(query: Mapping[str, object]) -> dict[str, object]:
    """Without what is not given; yes and no as JSON writes them."""
    return {
        key.removesuffix("_"): str(value).lower() if isinstance(value, bool) else value
        for key, value in query.items()
        if value is not None
    }
