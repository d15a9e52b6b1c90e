"""Signing in through an authenticating proxy: its word counts, nobody else's does."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import websockets
from websockets.sync.client import connect
from websockets.typing import Origin

from tests.ground import Ground
from tests.hubs import HubProcess, hub_of, refused
from tests.people import People, closed_with
from tests.security.attacks import JSON, Headers, ask, knock
from tests.support import eventually

SECRET = "s" * 40
NAMES = ("X-Forwarded-User", "X-Forwarded-Email", "X-Forwarded-Preferred-Username", "X-Auth-Request-Email")
ANNA = "anna@example.org"


def settings(folder: Path, more: str = "") -> str:
    (folder / "secret").write_text(f"{SECRET}\n")
    return f'[people]\nproxy_secret_file = "{folder / "secret"}"\nmember_runtimes = ["local"]\n{more}'


@pytest.fixture
def hub(ground: Ground, tmp_path: Path) -> Iterator[HubProcess]:
    ground.configure(settings(tmp_path))
    with hub_of(ground) as made:
        yield made


def by_proxy(name: str, secret: str = SECRET, header: str = "X-Forwarded-Email") -> Headers:
    return ((header, name), ("X-Hitchpost-Proxy-Secret", secret))


@pytest.mark.ids("S1")
def test_the_proxys_word_counts_and_a_strangers_is_ignored(hub: HubProcess) -> None:
    people = People(hub)
    people.add(ANNA)
    people.add("olga@example.org", "owner")
    for name in NAMES:
        assert ask(hub, "GET", "/api/me", [(name, "olga@example.org")]).code == "not_signed_in"
        for secret in ("", "x", SECRET[:-1], SECRET + "s", f"{SECRET}, {SECRET}"):
            assert ask(hub, "GET", "/api/me", by_proxy("olga@example.org", secret, name)).code == "not_signed_in"
        if name != "X-Forwarded-Email":  # one header counts, and no other
            assert ask(hub, "GET", "/api/me", by_proxy("olga@example.org", SECRET, name)).code == "not_signed_in"
    twice = [*by_proxy(ANNA), ("X-Hitchpost-Proxy-Secret", SECRET)]
    assert ask(hub, "GET", "/api/me", twice).code == "not_signed_in"
    both = [*by_proxy(ANNA), ("X-Forwarded-Email", "olga@example.org")]
    assert ask(hub, "GET", "/api/me", both).status == 403
    me = ask(hub, "GET", "/api/me", by_proxy("Anna@Example.org")).json()
    assert (me["user"], me["role"], me["may"]) == (ANNA, "member", ["change", "create"])
    assert ask(hub, "GET", "/api/users", by_proxy(ANNA)).status == 403
    assert ask(hub, "GET", "/api/users", by_proxy("olga@example.org")).status == 200
    signed = [*people.signed(ANNA), *by_proxy("olga@example.org")]
    assert ask(hub, "GET", "/api/me", signed).json()["user"] == ANNA  # a token of ours says it itself


@pytest.mark.ids("S1")
def test_without_the_setting_no_header_counts(ground: Ground) -> None:
    with hub_of(ground) as plain:
        People(plain).add(ANNA, "owner")
        for secret in ("", SECRET):
            assert ask(plain, "GET", "/api/me", by_proxy(ANNA, secret)).code == "not_signed_in"


@pytest.mark.ids("S1")
def test_somebody_whom_nobody_has_added_is_refused_or_made_a_member_as_the_settings_say(
    ground: Ground, tmp_path: Path, hub: HubProcess
) -> None:
    answer = ask(hub, "GET", "/api/me", by_proxy("new@example.org"))
    assert (answer.status, answer.code) == (403, "unknown_user")
    assert "new@example.org" in answer.text
    for name in ("../evil", "a b", "", "cli", "hub"):
        assert ask(hub, "GET", "/api/me", by_proxy(name)).status == 403
    assert hub.ask("GET", "/api/users") == []
    hub.stop()
    ground.configure(settings(tmp_path, 'proxy_role = "member"\n'))
    hub.start()
    me = ask(hub, "GET", "/api/me", by_proxy("new@example.org")).json()
    assert (me["user"], me["role"]) == ("new@example.org", "member")
    assert [row["name"] for row in hub.ask("GET", "/api/users")] == ["new@example.org"]


@pytest.mark.ids("S2")
def test_another_page_cannot_use_the_proxys_cookie(hub: HubProcess, ground: Ground) -> None:
    """A browser sends the cookie with what other pages ask; the proxy then adds its headers to that, too."""
    people = People(hub)
    people.add(ANNA)
    wish = json.dumps({"command": ["true"], "folder": str(ground.place)}).encode()
    cross = ("Sec-Fetch-Site", "cross-site")
    for headers in ((), (("Origin", "https://evil.example"),), (("Origin", "null"),), (cross,)):
        assert ask(hub, "POST", "/api/sessions", [*by_proxy(ANNA), JSON, *headers], wish).status == 403
        basic = ("Authorization", "Bearer of-the-proxy")
        assert ask(hub, "POST", "/api/sessions", [*by_proxy(ANNA), JSON, basic, *headers], wish).status == 403
    for site in ("cross-site", "same-site"):
        assert ask(hub, "GET", "/api/sessions", [*by_proxy(ANNA), ("Sec-Fetch-Site", site)]).status == 403
    assert knock(hub, "/ws", by_proxy(ANNA)).status == 403
    assert knock(hub, "/ws", [*by_proxy(ANNA), ("Origin", "https://evil.example")]).status == 403
    assert hub.ask("GET", "/api/sessions?all=true") == []
    ours = [*by_proxy(ANNA), JSON, ("Origin", hub.url), ("Sec-Fetch-Site", "same-origin")]
    assert ask(hub, "POST", "/api/sessions", ours, wish).status == 201
    assert ask(hub, "GET", "/api/sessions", [*by_proxy(ANNA), ("Sec-Fetch-Site", "same-origin")]).status == 200
    eventually(lambda: hub.ask("GET", "/api/sessions")[0]["state"] == "completed")
    assert hub.ask("GET", f"/api/sessions/{hub.ask('GET', '/api/sessions')[0]['id']}/story")[0]["actor"] == ANNA


@pytest.mark.ids("S1")
def test_a_page_behind_the_proxy_has_a_websocket_that_ends_with_the_person(hub: HubProcess) -> None:
    people = People(hub)
    people.add(ANNA)
    ours = [*by_proxy(ANNA), JSON, ("Origin", hub.url)]
    page = ask(hub, "POST", "/api/sign-in/proxy", ours, b"{}").json()
    assert (page["user"], page["id"], page["token"]) == (ANNA, "", "")
    address = hub.url.replace("http", "ws") + "/ws"
    with (
        connect(f"{address}?ticket={page['ticket']}", origin=Origin(hub.url)) as client,
        connect(address, origin=Origin(hub.url), additional_headers=dict(by_proxy(ANNA))) as other,
    ):
        began = time.monotonic()
        hub.ask("DELETE", f"/api/users/{ANNA}")
        assert closed_with(client) == closed_with(other) == 1008
        assert time.monotonic() - began < 2
    assert ask(hub, "GET", "/api/me", by_proxy(ANNA)).code == "unknown_user"
    assert ask(hub, "POST", "/api/sign-in/proxy", [JSON, ("Origin", hub.url)], b"{}").status == 401
    with pytest.raises(websockets.InvalidStatus):
        connect(address, origin=Origin(hub.url), additional_headers=dict(by_proxy(ANNA)))


def test_a_hub_does_not_start_with_a_secret_that_is_missing_or_short(ground: Ground, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    ground.configure(f'[people]\nproxy_secret_file = "{path}"\n')
    assert f"cannot read people.proxy_secret_file {path}" in refused().err
    path.write_text("short\n")
    assert "at least 32 printable characters" in refused().err
    ground.configure('[people]\nproxy_header = "X-Anything"\n')
    assert "expected people.proxy_header to be one of X-Forwarded-User" in refused().err
