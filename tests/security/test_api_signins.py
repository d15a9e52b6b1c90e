"""S1, S15: a browser that has signed in is known by the next hub too, by a digest, until it is signed out."""

from __future__ import annotations

import json
import resource
import stat
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from hitchpost.api.tokenfile import BROWSER, BROWSER_S, MOST_BROWSERS, SCRIPT, TokenFile
from hitchpost.api.tokens import OWNER, VIEWER, Tokens
from tests.ground import Ground
from tests.hubs import HubProcess, hub_of
from tests.security.attacks import Page, ask, bearer, cookie_name, knock, sign_in
from tests.support import Hitch


def socket_of(page: Page) -> ClientConnection:
    address = f"{page.hub.url.replace('http', 'ws')}/ws?ticket={page.ticket()}"
    return connect(address, origin=Origin(page.hub.url), additional_headers=list(page.signed))


def closed_with(socket: ClientConnection) -> int:
    with pytest.raises(ConnectionClosedError) as closed:
        socket.recv(timeout=20)
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code


@pytest.mark.ids("S1", "S15", "F30")
def test_a_cookie_outlives_a_killed_hub_and_only_its_digest_is_on_disk(hub: HubProcess) -> None:
    page = sign_in(hub)
    port = int(hub.url.rpartition(":")[2])
    hub.kill()
    hub.start(port=port)
    assert ask(hub, "GET", "/api/me", page.signed).json() == {"role": "owner", "csrf": page.csrf}
    assert knock(hub, f"/ws?ticket={page.ticket()}", [*page.signed, ("Origin", hub.url)]).status == 101
    kept = Path(hub.home) / "tokens.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    files_there = [path for path in Path(hub.home).rglob("*") if path.is_file()]
    assert not [path for path in files_there if page.cookie.encode() in path.read_bytes()]


@pytest.mark.ids("S1")
def test_signing_out_is_for_good_and_closes_what_the_page_had_open(hub: HubProcess) -> None:
    page, other = sign_in(hub), sign_in(hub)
    with socket_of(page) as socket:
        assert ask(hub, "POST", "/api/sign-out", [*page.signed, ("Origin", hub.url)]).status == 403
        answer = ask(hub, "POST", "/api/sign-out", page.ours)
        assert answer.status == 204
        assert (answer.header("Set-Cookie") or "").startswith(f'{cookie_name(hub)}=""; ')
        assert closed_with(socket) == 1008
    assert ask(hub, "GET", "/api/me", page.signed).status == 401
    assert ask(hub, "GET", "/api/me", other.signed).status == 200
    assert ask(hub, "POST", "/api/sign-out", [bearer(hub)]).status == 204
    assert ask(hub, "GET", "/api/me", [bearer(hub)]).status == 200


@pytest.mark.ids("S1")
def test_the_command_lists_who_is_let_in_and_takes_it_back(hub: HubProcess, hitch: Hitch) -> None:
    page, script = sign_in(hub), bearer(hub, "viewer")
    found = {one["kind"]: one for one in hitch("token", "ls", "--json").json()}
    assert {kind: (one["name"], one["role"]) for kind, one in found.items()} == {
        "script": ("test", "viewer"),
        "browser": ("", "owner"),
    }
    assert hitch("token", "ls").out.splitlines()[0].split() == ["ID", "KIND", "NAME", "ROLE", "CREATED", "EXPIRES"]
    address = f"{hub.url.replace('http', 'ws')}/ws"
    with socket_of(page) as browsers, connect(address, additional_headers=[script]) as scripts:
        hitch("token", "rm", found["browser"]["id"])
        assert ask(hub, "GET", "/api/me", page.signed).status == 401
        assert ask(hub, "GET", "/api/me", [script]).status == 200
        assert closed_with(browsers) == 1008
        hitch("token", "rm", found["script"]["id"])
        assert ask(hub, "GET", "/api/me", [script]).status == 401
        assert closed_with(scripts) == 1008
    assert hitch("token", "ls", "--json").json() == []
    for wrong in (found["script"]["id"], "", "a"):
        assert "hitch token ls" in hitch("token", "rm", wrong, check=3).err


@pytest.mark.ids("S1")
def test_two_hubs_on_one_machine_leave_each_others_cookies_alone(
    ground: Ground, hub: HubProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = sign_in(hub)
    monkeypatch.setenv("HITCHPOST_HOME", str(tmp_path))
    with hub_of(Ground(tmp_path, ground.place, ground.watch, ground.hitch)) as second_hub:
        second = sign_in(second_hub)
        jar = [("Cookie", f"{first.signed[0][1]}; {second.signed[0][1]}")]
        assert ask(hub, "GET", "/api/me", jar).json()["csrf"] == first.csrf
        assert ask(second_hub, "GET", "/api/me", jar).json()["csrf"] == second.csrf


@pytest.mark.ids("S1")
def test_expired_sign_ins_are_swept_and_their_number_is_bounded(home: Path) -> None:
    now = 1.8e9
    kept = TokenFile(str(home), wall=lambda: now)
    kept.add(SCRIPT, "for scripts", VIEWER, "backup")
    kept.add(BROWSER, "early", OWNER)
    now += BROWSER_S
    assert kept.role(BROWSER, "early") is None
    for number in range(MOST_BROWSERS + 1):
        now += 1
        kept.add(BROWSER, f"cookie {number}", OWNER)
    value = json.loads((home / "tokens.json").read_bytes())
    assert {key: len(item) for key, item in value.items() if key != "schema"} == {
        "tokens": 1,
        "browsers": MOST_BROWSERS,
    }
    assert [kept.role(BROWSER, f"cookie {number}") for number in (0, 1)] == [None, OWNER]
    assert kept.role(SCRIPT, "for scripts") == VIEWER
    assert kept.role(BROWSER, "for scripts") is None


@pytest.mark.ids("S1")
@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": 99}', '{"schema": 1, "browsers": [1], "tokens": {"a": 1}}']
)
def test_a_file_that_makes_no_sense_knows_nobody_and_does_not_keep_a_person_out(home: Path, text: str) -> None:
    kept = home / "tokens.json"
    kept.write_text(text)
    tokens = Tokens(str(home))
    assert (tokens.of_cookie("any"), tokens.of_bearer("any")) == (None, None)
    cookie = tokens.redeem(tokens.new_code())
    assert cookie is not None
    assert tokens.of_cookie(cookie) == OWNER
    if '"tokens"' not in text:
        assert kept.read_text() == text
    tokens.sign_out(cookie)
    assert tokens.of_cookie(cookie) is None


@pytest.mark.ids("S1")
def test_a_file_that_cannot_be_read_now_is_no_wrong_cookie(home: Path) -> None:
    tokens = Tokens(str(home))
    cookie = tokens.redeem(tokens.new_code()) or ""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            tokens.of_cookie(cookie)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert tokens.of_cookie(cookie) == OWNER
