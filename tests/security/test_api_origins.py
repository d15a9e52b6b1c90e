"""S2 and S3: other names for this machine, and pages of other sites, at every route, HTTP and WebSocket."""

from __future__ import annotations

import pytest

from tests.hubs import HubProcess
from tests.security.attacks import JSON, PAGES, ask, bearer, host_of, knock, raw, sign_in, walk, ways

HOSTS = [
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1",
    "127.0.0.1:1",
    "127.0.0.1:0{port}",
    "127.0.0.1.:{port}",
    "127.0.0.1.evil.example:{port}",
    "localhost.:{port}",
    "LOCALHOST:{port}",
    "LocalHost:{port}",
    "user@127.0.0.1:{port}",
    "127.0.0.1:{port}@evil.example",
    "127.0.0.1:{port}, evil.example",
    "127.0.0.1:{port}#",
    "127.0.0.1:{port}/",
    "127.1:{port}",
    "2130706433:{port}",
    "0x7f.0.0.1:{port}",
    "0.0.0.0:{port}",
    "[::ffff:127.0.0.1]:{port}",
    "::1:{port}",
    "{port}",
    "null",
]
ORIGINS = [
    "https://evil.example",
    "http://evil.example:{port}",
    "null",
    "file://",
    "http://127.0.0.1",
    "http://127.0.0.1:1",
    "https://127.0.0.1:{port}",
    "http://127.0.0.1:{port}.evil.example",
    "http://127.0.0.1:{port}@evil.example",
    "http://user@127.0.0.1:{port}",
    "http://127.0.0.1:{port}/",
    "http://127.0.0.1:{port} http://evil.example",
    "HTTP://127.0.0.1:{port}",
    "http://LOCALHOST:{port}",
    "127.0.0.1:{port}",
    "ws://127.0.0.1:{port}",
    "",
]


def filled(texts: list[str], hub: HubProcess) -> list[str]:
    port = host_of(hub).rpartition(":")[2]
    return [text.replace("{port}", port) for text in texts]


@pytest.mark.ids("S2")
def test_S2_a_foreign_host_is_refused_on_every_route(hub: HubProcess) -> None:
    for way in [*ways(), *(("GET", path) for path in (*PAGES, "/assets/app.js"))]:
        for host in (f"evil.example:{host_of(hub).rpartition(':')[2]}", "127.0.0.1:1"):
            answer = walk(hub, way, [bearer(hub), ("Origin", hub.url)], host=host)
            assert (way, answer.status) == (way, 403)
            if way[0] != "HEAD":
                assert answer.code == "forbidden_host"


@pytest.mark.ids("S2")
def test_S2_no_spelling_of_a_foreign_host_is_taken_for_ours(hub: HubProcess) -> None:
    page = sign_in(hub)
    for host in filled(HOSTS, hub):
        for way in (("GET", "/api/sessions"), ("WS", f"/ws?ticket={page.ticket()}"), ("GET", "/")):
            answer = walk(hub, way, [*page.signed, ("Origin", hub.url)], host=host)
            assert (host, answer.status, answer.code) == (host, 403, "forbidden_host")
    assert (
        ask(hub, "GET", "/api/health", [bearer(hub)], host=host_of(hub).replace("127.0.0.1", "localhost")).status == 200
    )


@pytest.mark.ids("S2")
def test_S2_a_missing_or_doubled_host_is_refused(hub: HubProcess) -> None:
    """Where HTTP itself forbids it, the request does not even reach the gate."""
    ours, foreign = ("Host", host_of(hub)), ("Host", "evil.example")
    for way in ways():
        assert walk(hub, way, [bearer(hub)], host=None).status == 400
        for second in (ours, foreign):
            assert walk(hub, way, [bearer(hub), second]).status in (400, 403)
    old = f"GET /api/health HTTP/1.0\r\nAuthorization: {bearer(hub)[1]}\r\n\r\n"
    assert raw(hub, old.encode()).code == "forbidden_host"


@pytest.mark.ids("S2")
def test_S2_what_a_proxy_would_say_about_the_host_does_not_count(hub: HubProcess) -> None:
    said = [("X-Forwarded-Host", host_of(hub)), ("Forwarded", f"host={host_of(hub)}"), ("X-Host", host_of(hub))]
    assert ask(hub, "GET", "/api/health", [bearer(hub), *said], host="evil.example").code == "forbidden_host"
    absolute = f"{hub.url}/api/health"
    assert ask(hub, "GET", absolute, [bearer(hub)], host="evil.example").code == "forbidden_host"


@pytest.mark.ids("S3", "S4")
def test_S3_a_foreign_origin_is_refused_on_every_route(hub: HubProcess) -> None:
    page = sign_in(hub)
    for way in ways():
        for origin in ("https://evil.example", "null"):
            answer = walk(hub, way, [*page.signed, ("Origin", origin)])
            assert (way, answer.status) == (way, 403)
            if way[0] != "HEAD":
                assert answer.code == "forbidden_origin"


@pytest.mark.ids("S3")
def test_S3_a_websocket_of_a_foreign_page_is_refused_whatever_it_has(hub: HubProcess) -> None:
    page = sign_in(hub)
    for origin in filled(ORIGINS, hub):
        ticket = page.ticket()
        for credentials in ([], [*page.signed], [bearer(hub)]):
            answer = knock(hub, f"/ws?ticket={ticket}", [*credentials, ("Origin", origin)])
            assert (origin, answer.status, answer.code) == (origin, 403, "forbidden_origin")
    ticket, ours = page.ticket(), ("Origin", hub.url)
    doubled = knock(hub, f"/ws?ticket={ticket}", [ours, ("Origin", "https://evil.example")])
    assert doubled.status in (400, 403)
    assert knock(hub, f"/ws?ticket={ticket}", [ours]).status == 101


@pytest.mark.ids("S3")
def test_S3_a_websocket_without_an_origin_is_no_browsers(hub: HubProcess) -> None:
    page = sign_in(hub)
    for target in ("/ws", f"/ws?ticket={page.ticket()}"):
        answer = knock(hub, target)
        assert (answer.status, answer.code) == (403, "forbidden_origin")
    assert knock(hub, "/ws", [bearer(hub)]).status == 101


@pytest.mark.ids("S3")
def test_S3_a_ticket_is_for_one_connection(hub: HubProcess) -> None:
    page = sign_in(hub)
    ours = ("Origin", hub.url)
    assert knock(hub, "/ws", [ours]).code == "not_signed_in"
    for wrong in ("/ws?ticket=", "/ws?ticket=wrong", "/ws?ticket=%00", "/ws?Ticket={t}", "/ws?ticket={t}&ticket={t}"):
        answer = knock(hub, wrong.replace("{t}", page.ticket()), [ours])
        assert (answer.status, answer.code) == (401, "not_signed_in")
    ticket = page.ticket()
    assert knock(hub, f"/ws?ticket={ticket}", [ours]).status == 101
    assert knock(hub, f"/ws?ticket={ticket}", [ours]).status == 401


@pytest.mark.ids("S3")
def test_S3_a_ticket_opens_nothing_but_a_websocket(hub: HubProcess) -> None:
    ticket = sign_in(hub).ticket()
    for headers in ([("Authorization", f"Bearer {ticket}")], [("Cookie", f"ticket={ticket}")]):
        assert ask(hub, "GET", f"/api/sessions?ticket={ticket}", headers).status == 401


@pytest.mark.ids("S4")
def test_S4_a_foreign_page_is_told_nothing_about_what_it_may_do(hub: HubProcess) -> None:
    asked = [("Origin", "https://evil.example"), ("Access-Control-Request-Method", "POST")]
    for headers in (asked, [("Origin", hub.url), *asked[1:], bearer(hub)], [JSON, *asked]):
        answer = ask(hub, "OPTIONS", "/api/sessions", headers)
        assert answer.status in (403, 405)
        assert not [name for name, _ in answer.headers if name.lower().startswith("access-control-")]
