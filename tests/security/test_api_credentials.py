"""S1: over TCP nothing is to be had without credentials, on no route and by no method; and how to come by some."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hitchpost.api.tokenfile import BROWSER_S
from hitchpost.api.tokens import CODE_S, OWNER, TICKET_S, Tokens
from tests.hubs import HubProcess
from tests.security.attacks import (
    JSON,
    LAUNCH,
    Headers,
    ask,
    bearer,
    cookie_name,
    host_of,
    knock,
    launch,
    launch_code,
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
    "/api/launch/../sessions",
    "/api/launch%2f..%2fsessions",
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
    [("Cookie", "{cookie}={token}")],
    [("Cookie", "{cookie}=")],
    [("Cookie", '{cookie}="')],
    [("Cookie", "{cookie}")],
    [("Cookie", "=; ;;, \\")],
    [("Cookie", "{cookie}=wrong; {cookie}=wrong")],
    [("X-Forwarded-For", "127.0.0.1"), ("Forwarded", "for=127.0.0.1;proto=https")],
]


@pytest.mark.ids("S1")
def test_S1_every_route_without_credentials_is_refused(hub: HubProcess) -> None:
    for way in ways():
        answer = walk(hub, way, [("Origin", hub.url)])
        assert (way, answer.status) == (way, 422 if way == LAUNCH else 401)
        if way[0] != "HEAD":
            assert answer.code == ("bad_input" if way == LAUNCH else "not_signed_in")


@pytest.mark.ids("S1")
def test_S1_every_method_on_every_path_without_credentials_is_refused(hub: HubProcess) -> None:
    for path in sorted({path for _, path in ways()}):
        for method in METHODS:
            answer = ask(hub, method, path)
            assert (method, path, answer.status) == (method, path, 422 if (method, path) == LAUNCH else 401)


@pytest.mark.ids("S1")
def test_S1_wrong_credentials_are_no_credentials(hub: HubProcess) -> None:
    for headers in WRONG:
        filled = [
            (name, value.replace("{token}", hub.token()).replace("{cookie}", cookie_name(hub)))
            for name, value in headers
        ]
        for way in (("GET", "/api/sessions"), ("POST", "/api/sessions"), ("WS", "/ws")):
            answer = walk(hub, way, [*filled, ("Origin", hub.url)])
            assert (headers, answer.status, answer.code) == (headers, 401, "not_signed_in")


@pytest.mark.ids("S1")
def test_S1_a_wrong_token_is_refused_beside_a_right_cookie(hub: HubProcess) -> None:
    page = sign_in(hub)
    assert ask(hub, "GET", "/api/me", page.signed).status == 200
    assert ask(hub, "GET", "/api/me", [*page.signed, ("Authorization", "Bearer wrong")]).status == 401
    assert ask(hub, "GET", "/api/me", [*page.signed, *page.signed]).status == 401


@pytest.mark.ids("S1")
def test_S1_no_spelling_of_a_path_leads_around_the_gate(hub: HubProcess) -> None:
    for target in SPELLINGS:
        for method in ("GET", "POST"):
            answer = ask(hub, method, target, [JSON])
            assert answer.status in (401, 404), (target, answer)
            assert answer.header("Location") is None


@pytest.mark.ids("S1")
def test_S1_a_request_hidden_in_another_is_not_answered(hub: HubProcess) -> None:
    hidden = f"GET /api/health HTTP/1.1\r\nHost: {host_of(hub)}\r\nAuthorization: {bearer(hub)[1]}\r\n\r\n"
    lengths = f"Content-Length: {len(hidden)}\r\nTransfer-Encoding: chunked\r\n"
    outer = f"POST /api/launch HTTP/1.1\r\nHost: {host_of(hub)}\r\nContent-Type: application/json\r\n{lengths}\r\n"
    answer = raw(hub, f"{outer}0\r\n\r\n{hidden}".encode())
    assert answer.status in (400, 422), answer
    doubled = f"GET /api/health HTTP/1.1\r\nHost: {host_of(hub)}\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nhello"
    assert raw(hub, doubled.encode()).status == 400


@pytest.mark.ids("S1")
def test_S1_a_launch_code_works_once_and_its_cookie_lets_our_page_change_things(hub: HubProcess) -> None:
    launch_url = hub.ask("POST", "/api/launch-code")["launch_url"]
    address, _, code = launch_url.partition("#code=")
    assert address == f"{hub.url}/"
    answer = launch(hub, code)
    assert answer.status == 200
    assert answer.json()["role"] == "owner"
    cookie, *attributes = (answer.header("Set-Cookie") or "").split("; ")
    assert cookie.startswith(f"{cookie_name(hub)}=")
    assert {part.lower() for part in attributes} == {"httponly", "samesite=strict", "path=/", "max-age=2592000"}
    me = ask(hub, "GET", "/api/me", [("Cookie", cookie)])
    assert me.json() == answer.json()
    ours = [("Cookie", cookie), ("Origin", hub.url), ("X-Hitchpost-CSRF", me.json()["csrf"]), JSON]
    ticket = ask(hub, "POST", "/api/ws-ticket", ours).json()["ticket"]
    assert knock(hub, f"/ws?ticket={ticket}", ours[:2]).status == 101
    used = launch(hub, code)
    assert (used.status, used.code, used.header("Set-Cookie")) == (401, "not_signed_in", None)


@pytest.mark.ids("S1")
def test_S1_a_wrong_launch_code_gives_no_cookie(hub: HubProcess) -> None:
    launch_code(hub)
    codes: list[object] = ["", " ", "wrong", "\u0000", "\ud800", "\u2028" * 50, None, 7, [], {"$ne": ""}]
    for code in codes:
        answer = ask(hub, "POST", "/api/launch", [JSON], json.dumps({"code": code}).encode())
        assert (code, answer.status in (401, 422), answer.header("Set-Cookie")) == (code, True, None)


@pytest.mark.ids("S1")
def test_S1_a_code_comes_from_the_hubs_own_socket_only(hub: HubProcess) -> None:
    answer = ask(hub, "POST", "/api/launch-code", [bearer(hub)])
    assert (answer.status, answer.code) == (403, "forbidden")
    assert ask(hub, "POST", "/api/launch-code", sign_in(hub).ours).status == 403


@pytest.mark.ids("S1")
def test_S1_a_token_that_is_taken_back_is_worth_nothing_at_once(hub: HubProcess) -> None:
    signed = [bearer(hub)]
    assert ask(hub, "GET", "/api/me", signed).status == 200
    (Path(hub.home) / "tokens.json").write_text('{"schema": 1, "tokens": {}}')
    assert ask(hub, "GET", "/api/me", signed).status == 401


@pytest.mark.ids("S1")
def test_S1_codes_and_tickets_expire(home: Path) -> None:
    now = 1000.0
    tokens = Tokens(str(home), clock=lambda: now, wall=lambda: 1.8e9 + now)
    code, late_code = tokens.new_code(), tokens.new_code()
    ticket, late_ticket = tokens.new_ticket(OWNER), tokens.new_ticket(OWNER)
    now += TICKET_S - 1
    assert tokens.of_ticket(ticket) == OWNER
    now += 2
    assert tokens.of_ticket(late_ticket) is None
    now = 1000 + CODE_S - 1
    cookie = tokens.redeem(code)
    assert cookie is not None
    assert tokens.of_cookie(cookie) == OWNER
    now += 2
    assert tokens.redeem(late_code) is None
    assert (CODE_S, TICKET_S) == (60, 30)
    now = 1000 + CODE_S - 2 + BROWSER_S
    assert tokens.of_cookie(cookie) == OWNER
    now += 1
    assert tokens.of_cookie(cookie) is None


@pytest.mark.ids("S1")
def test_S1_without_time_to_expire_nothing_is_worth_anything(home: Path) -> None:
    """Just after the machine has started, its clock is near zero."""
    tokens = Tokens(str(home), clock=lambda: 0.0)
    assert tokens.redeem("never given") is None
    assert tokens.of_cookie("never given") is None
    assert tokens.of_ticket("never given") is None
