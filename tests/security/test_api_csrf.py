"""S4: a page of another site that makes the browser send something changes nothing."""

from __future__ import annotations

import json

import pytest

from tests.ground import Ground
from tests.hubs import HubProcess
from tests.security.attacks import JSON, SIGN_IN, ask, bearer, raw, sign_in, until_running, walk, ways

FORMS = [
    ("application/x-www-form-urlencoded", b"command=touch&folder=/"),
    ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data; name=code\r\n\r\nx\r\n--x--\r\n"),
    ("text/plain", b"{wish}"),
    ("text/plain; application/json", b"{wish}"),
    ("text/plain, application/json", b"{wish}"),
    ("application/jsonp", b"{wish}"),
    ("application/csp-report", b"{wish}"),
    ("application/json\xa0", b"{wish}"),
    ("", b"{wish}"),
]


def wish(ground: Ground) -> bytes:
    return json.dumps({"command": ["sh", "-c", "echo > ran"], "folder": str(ground.place)}).encode()


def nothing_ran(ground: Ground, hub: HubProcess) -> bool:
    return hub.ask("GET", "/api/sessions?all=true") == [] and not list(ground.place.iterdir())


@pytest.mark.ids("S4")
def test_S4_a_form_or_a_text_is_no_request(ground: Ground, hub: HubProcess) -> None:
    """Not even with every credential: a body that a form can send is not read."""
    page = sign_in(hub)
    known = (*page.signed, ("Origin", hub.url))
    for kind, form in FORMS:
        body = form.replace(b"{wish}", wish(ground))
        typed = [("Content-Type", kind)] if kind else []
        for credentials in (known, (bearer(hub),)):
            answer = ask(hub, "POST", "/api/sessions", [*credentials, *typed], body)
            assert (kind, answer.status, answer.code) == (kind, 415, "not_json")
        for way in SIGN_IN:
            assert (kind, ask(hub, *way, typed, form.replace(b"{wish}", b"{}")).status) == (kind, 415)
    doubled = [*known, JSON, ("Content-Type", "text/plain")]
    assert ask(hub, "POST", "/api/sessions", doubled, wish(ground)).status == 415
    assert nothing_ran(ground, hub)


@pytest.mark.ids("S4")
def test_S4_a_body_without_a_type_is_not_read_in_pieces_either(ground: Ground, hub: HubProcess) -> None:
    body = wish(ground)
    head = f"POST /api/sessions HTTP/1.1\r\nHost: {hub.url[7:]}\r\nAuthorization: {bearer(hub)[1]}\r\n"
    pieces = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    answer = raw(hub, f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + pieces, "POST")
    assert (answer.status, answer.code) == (415, "not_json")
    assert nothing_ran(ground, hub)


@pytest.mark.ids("S4")
def test_S4_what_a_browser_sends_by_itself_changes_nothing_on_any_route(hub: HubProcess) -> None:
    """It adds cookies, whatever is in them, and never an Authorization of ours."""
    page, port = sign_in(hub), hub.url.rpartition(":")[2]
    jar = ("Cookie", f"hitchpost-{port}={page.token}; token={page.token}; hitchpost={hub.token()}")
    for way in ways():
        if way not in SIGN_IN:
            for headers in ([jar], [jar, ("Origin", hub.url)], [jar, ("Origin", hub.url), ("X-Hitchpost-CSRF", "x")]):
                answer = walk(hub, way, headers)
                assert (way, answer.status) == (way, 403 if way[0] == "WS" and len(headers) == 1 else 401)


@pytest.mark.ids("S4")
def test_S4_the_page_itself_may_start_a_session(ground: Ground, hub: HubProcess) -> None:
    answer = ask(hub, "POST", "/api/sessions", sign_in(hub).ours, wish(ground))
    assert answer.status == 201
    assert ground.said("ran") == "\n"
    hub.ask("POST", f"/api/sessions/{answer.json()['session']['id']}/stop")


@pytest.mark.ids("S4")
def test_S4_nothing_that_a_link_or_an_image_can_ask_for_changes_anything(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("exec sleep 1000", name="dev")
    until_running(hub, dev.id)
    page = sign_in(hub)
    before = (dev.state_file(), (dev.folder / "session.json").read_bytes(), dev.story())
    overrides = [
        ("X-HTTP-Method-Override", "DELETE"),
        ("X-HTTP-Method", "DELETE"),
        ("X-Method-Override", "DELETE"),
    ]
    for method, path in ways(dev.id):
        if method != "WS":
            for asked in ("GET", "HEAD", "OPTIONS"):
                answer = ask(hub, asked, f"{path}?_method=DELETE&force=true", [*page.signed, *overrides])
                assert answer.status < 500, answer
                assert answer.status != 201
    assert (dev.state_file(), (dev.folder / "session.json").read_bytes(), dev.story()) == before
    assert [row["id"] for row in hub.ask("GET", "/api/sessions?all=true")] == [dev.id]
    ground.end(dev)
