"""S1: over TCP nothing is to be had without credentials, on no route and by no method; and how to come by some."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitchpost.hub.http.tokens import TICKET_S, Tokens, create_bearer
from hitchpost.store import locks
from tests.hubs import HubProcess
from tests.security.attacks import (
    JSON,
    SIGN_IN,
    Headers,
    ask,
    bearer,
    everything,
    host_of,
    raw,
    sign_in,
    walk,
    ways,
)

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get")
SPELLINGS = [
    "/assets/../api/sessions",
    "/assets/..%2fapi/sessions",
    "/assets/%2e%2e/api/sessions",
    "/assets/..;/api/sessions",
    "/assets/\\..\\api/sessions",
    "/;/api/sessions",
    "/sw.js/../api/sessions",
    "//api/sessions",
    "/api//sessions",
    "/API/sessions",
    "/api/sessions/",
    "/api/sessions;/",
    "/api/sign-in/../sessions",
    "/api/sign-in%2f..%2fsessions",
    "/api/sign-in/challenge/../../sessions",
    "http://127.0.0.1/api/sessions",
    "*",
]
WRONG: list[Headers] = [
    [("Authorization", "")],
    [("Authorization", "Bearer")],
    [("Authorization", "Bearer ")],
    [("Authorization", "Bearer wrong")],
    [("Authorization", "Bearer \xff\xfe")],
    [("Authorization", "Basic {token}")],
    [("Authorization", "{token}")],
    [("Authorization", "Bearer {token}x")],
    [("Authorization", "Bearer {token} {token}")],
    [("Authorization", "Bearer {token}"), ("Authorization", "Bearer {token}")],
    [("Authorization", "Bearer wrong"), ("Authorization", "Bearer {token}")],
    [("X-Authorization", "Bearer {token}")],
    [("Proxy-Authorization", "Bearer {token}")],
    [("Cookie", "hitchpost={token}; token={token}")],
    [("X-Hitchpost-CSRF", "{token}")],
    [("X-Forwarded-For", "127.0.0.1"), ("Forwarded", "for=127.0.0.1;proto=https")],
]


@pytest.mark.ids("S1")
def test_S1_every_route_without_credentials_is_refused(hub: HubProcess) -> None:
    for way in ways():
        answer = walk(hub, way, [("Origin", hub.url)])
        assert (way, answer.status) == (way, 422 if way in SIGN_IN else 401)
        if way[0] != "HEAD":
            assert answer.code == ("bad_input" if way in SIGN_IN else "not_signed_in")


@pytest.mark.ids("S1")
def test_S1_every_method_on_every_path_without_credentials_is_refused(hub: HubProcess) -> None:
    for path in sorted({path for _, path in ways()}):
        for method in METHODS:
            answer = ask(hub, method, path)
            assert (method, path, answer.status) == (method, path, 422 if (method, path) in SIGN_IN else 401)


@pytest.mark.ids("S1")
def test_S1_wrong_credentials_are_no_credentials(hub: HubProcess) -> None:
    for headers in WRONG:
        filled = [(name, value.replace("{token}", hub.token())) for name, value in headers]
        for way in (("GET", "/api/sessions"), ("POST", "/api/sessions"), ("WS", "/ws")):
            answer = walk(hub, way, [*filled, ("Origin", hub.url)])
            assert (headers, answer.status, answer.code) == (headers, 401, "not_signed_in")


@pytest.mark.ids("S1")
def test_S1_no_spelling_of_a_path_leads_around_the_gate(hub: HubProcess) -> None:
    for target in SPELLINGS:
        for method in ("GET", "POST"):
            answer = ask(hub, method, target, [JSON])
            # what seems to be a file of the page is looked for, and not found; everything else is asked who it is
            is_file = method == "GET" and target.startswith("/assets/")
            assert (method, target, answer.status) == (method, target, 404 if is_file else 401)
            assert answer.header("Location") is None


@pytest.mark.ids("S1")
def test_S1_a_request_hidden_in_another_is_not_answered(hub: HubProcess) -> None:
    hidden = f"GET /api/health HTTP/1.1\r\nHost: {host_of(hub)}\r\nAuthorization: {bearer(hub)[1]}\r\n\r\n"
    lengths = f"Content-Length: {len(hidden)}\r\nTransfer-Encoding: chunked\r\n"
    outer = f"POST /api/sign-in HTTP/1.1\r\nHost: {host_of(hub)}\r\nContent-Type: application/json\r\n{lengths}\r\n"
    said = everything(hub, f"{outer}0\r\n\r\n{hidden}".encode())
    assert said.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 ")), said
    assert said.count(b"HTTP/1.1 ") == 1, said
    doubled = f"GET /api/health HTTP/1.1\r\nHost: {host_of(hub)}\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nhello"
    assert raw(hub, doubled.encode()).status == 400


@pytest.mark.ids("S1")
def test_S1_a_code_comes_from_the_hubs_own_socket_only(hub: HubProcess) -> None:
    answer = ask(hub, "POST", "/api/launch-code", [bearer(hub)])
    assert (answer.status, answer.code) == (403, "forbidden")
    assert ask(hub, "POST", "/api/launch-code", sign_in(hub).ours).status == 403


@pytest.mark.ids("S1")
def test_S1_a_token_that_is_taken_back_is_worth_nothing_at_once(hub: HubProcess) -> None:
    signed = [bearer(hub)]
    assert ask(hub, "GET", "/api/me", signed).status == 200
    with locks.Lock(f"{hub.home}/tokens.json.lock"):
        (Path(hub.home) / "tokens.json").write_text('{"schema": 1, "tokens": {}}')
    assert ask(hub, "GET", "/api/me", signed).status == 401


@pytest.mark.ids("S1")
def test_S1_no_answer_sets_a_cookie(hub: HubProcess) -> None:
    page = sign_in(hub)
    for way in ways():
        for headers in ([], [bearer(hub)], page.ours):
            answer = walk(hub, way, [one for one in headers if one != JSON])
            assert (way, answer.header("Set-Cookie")) == (way, None)


@pytest.mark.ids("S1")
def test_S1_tickets_expire(home: Path) -> None:
    now = 1000.0
    tokens = Tokens(str(home), clock=lambda: now, wall=lambda: 1.8e9 + now)
    known = tokens.of_bearer(create_bearer(str(home), "test", "viewer"))
    assert known is not None
    ticket, late_ticket = tokens.new_ticket(known.key), tokens.new_ticket(known.key)
    now += TICKET_S - 1
    assert tokens.of_ticket(ticket) == known
    now += 2
    assert tokens.of_ticket(late_ticket) is None
