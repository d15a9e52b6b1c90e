"""S1, S15: a browser that has signed in is known by the next hub too, by a digest, until it is signed out."""

from __future__ import annotations

import asyncio
import json
import resource
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from hitchpost.hub.http.grants import OWNER, VIEWER, Grant
from hitchpost.hub.http.in_progress import Held
from hitchpost.hub.http.proof import Verifier
from hitchpost.hub.http.signin import SignIn
from hitchpost.hub.http.tokenfile import BROWSER, BROWSER_S, MOST, SCRIPT, Credential, TokenFile
from hitchpost.hub.http.tokens import USED_EVERY_S, Tokens, create_bearer
from tests.ground import Ground
from tests.hubs import HubProcess, hub_of
from tests.security.attacks import Page, ask, bearer, knock, sign_in
from tests.security.test_api_handshake import asked
from tests.signing import decoded, taken_apart
from tests.support import Hitch


def socket_of(page: Page) -> ClientConnection:
    address = f"{page.hub.url.replace('http', 'ws')}/ws?ticket={page.ticket()}"
    return connect(address, origin=Origin(page.hub.url))


def signed_in(tokens: Tokens) -> Credential:
    exchange = asked(tokens, *taken_apart(tokens.new_code()))
    credential = tokens.sign_in(exchange.hub_nonce, decoded(exchange.page_proof))
    assert credential is not None
    return credential


def closed_with(socket: ClientConnection) -> int:
    with pytest.raises(ConnectionClosedError) as closed:
        socket.recv(timeout=20)
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code


@pytest.mark.ids("S1", "S15", "F30")
def test_a_sign_in_outlives_a_killed_hub_and_its_tokens_do_not(hub: HubProcess) -> None:
    page = sign_in(hub)
    ticket, port = page.ticket(), int(hub.url.rpartition(":")[2])
    hub.kill()
    hub.start(port=port)
    assert ask(hub, "GET", "/api/me", page.signed).status == 401
    assert knock(hub, f"/ws?ticket={ticket}", [("Origin", hub.url)]).status == 401
    again = page.again()
    assert again is not None
    assert ask(hub, "GET", "/api/me", again.signed).json()["role"] == "owner"
    assert knock(hub, f"/ws?ticket={again.ticket()}", [("Origin", hub.url)]).status == 101
    kept = Path(hub.home) / "tokens.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@pytest.mark.ids("S1")
def test_signing_out_is_for_good_and_closes_what_the_browser_had_open(hub: HubProcess) -> None:
    page, other = sign_in(hub), sign_in(hub)
    tab = page.again()
    assert tab is not None
    with socket_of(page) as socket, socket_of(tab) as second:
        assert ask(hub, "POST", "/api/sign-out", page.ours).status == 204
        assert (closed_with(socket), closed_with(second)) == (1008, 1008)
    assert page.again() is None
    for signed in (page.signed, tab.signed):
        assert ask(hub, "GET", "/api/me", signed).status == 401
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
    assert hitch("token", "ls").out.splitlines()[0].split() == [
        "ID",
        "KIND",
        "NAME",
        "ROLE",
        "SESSIONS",
        "CREATED",
        "EXPIRES",
        "LAST",
        "USED",
    ]
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
def test_two_hubs_on_one_machine_know_their_own_browsers_only(
    ground: Ground, hub: HubProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = sign_in(hub)
    monkeypatch.setenv("HITCHPOST_HOME", str(tmp_path))
    with hub_of(Ground(tmp_path, ground.place, ground.watch, ground.hitch)) as second_hub:
        second = sign_in(second_hub)
        assert ask(hub, "GET", "/api/me", second.signed).status == 401
        assert ask(second_hub, "GET", "/api/me", first.signed).status == 401
        assert Page(second_hub, "", first.name, first.secret).again() is None


def browser(name: str, ends: TokenFile) -> Credential:
    return Credential(name, BROWSER, Grant(OWNER, None, ends.in_s(BROWSER_S)), verifier=Verifier(b"x", b"y"))


@pytest.mark.ids("S1")
def test_expired_sign_ins_are_swept_and_their_number_is_bounded(home: Path) -> None:
    now = 1.8e9
    kept = TokenFile(str(home), wall=lambda: now)
    kept.add(Credential("for scripts", SCRIPT, Grant(VIEWER), "backup"))
    kept.add(browser("early", kept))
    now += BROWSER_S
    assert kept.find("early") is None
    for number in range(MOST[BROWSER] + 1):
        now += 1
        kept.add(browser(f"browser {number}", kept))
    value = json.loads((home / "tokens.json").read_bytes())
    assert {key: len(item) for key, item in value.items() if key != "schema"} == {
        "tokens": 1,
        "signed_in": MOST[BROWSER],
    }
    assert [kept.find(f"browser {number}") is not None for number in (0, 1)] == [False, True]
    assert kept.find("for scripts") is not None


@pytest.mark.ids("S1")
def test_a_sign_in_is_renewed_by_use_and_a_token_is_not(home: Path) -> None:
    now = 1.8e9
    tokens = Tokens(str(home), clock=lambda: now, wall=lambda: now)
    ends = tokens.file.in_s(BROWSER_S)
    page = signed_in(tokens)
    script = tokens.of_bearer(create_bearer(str(home), "test", OWNER, None, ends))
    assert script is not None
    now += BROWSER_S - 1
    for credential in (page, script):
        assert tokens.is_use_due(credential)
        assert not tokens.is_use_due(credential), "one use in ten minutes is enough"
        tokens.note_use(credential.key)
    used = [one.used_at[:19] for one in tokens.file.all()]
    assert used == [used[0]] * 2 != [""] * 2
    now += 2
    assert tokens.find(page.key) is not None
    assert tokens.find(script.key) is None
    now += USED_EVERY_S
    assert tokens.is_use_due(page)


@pytest.mark.ids("S1")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"schema": 99}',
        '{"schema": 1, "signed_in": [1], "tokens": {"a": 1}}',
        '{"schema": 1, "tokens": {"a": {"role": "owner", "sessions": 7}}}',
        '{"schema": 1, "tokens": {"a": {"role": "owner", "expires_at": "soon"}}}',
        '{"schema": 1, "signed_in": {"a": {"role": "owner", "stored_key": "zz", "hub_key": ""}}}',
        '{"schema": 1, "browsers": {"a": {"role": "owner", "expires_at": "2999-01-01T00:00:00.000000Z"}}}',
    ],
)
def test_a_file_that_makes_no_sense_knows_nobody_and_does_not_keep_a_person_out(home: Path, text: str) -> None:
    kept = home / "tokens.json"
    kept.write_text(text)
    tokens = Tokens(str(home))
    assert tokens.find("a") is None
    credential = signed_in(tokens)
    assert tokens.find(credential.key) is not None
    if '"schema": 1' not in text:
        assert kept.read_text() == text
    tokens.sign_out(credential.key)
    assert tokens.find(credential.key) is None


class OfTheEventLoop(dict[str, Any]):
    """A table that fails whoever comes from another thread."""

    def _check(self) -> None:
        assert threading.current_thread() is threading.main_thread(), "a thread is at a table of the event loop's"

    def items(self) -> Any:
        self._check()
        return super().items()

    def pop(self, *key: Any) -> Any:
        self._check()
        return super().pop(*key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._check()
        super().__setitem__(key, value)


@pytest.mark.ids("S1")
def test_threads_that_wait_for_the_disk_do_not_touch_the_tables_of_the_event_loop(home: Path) -> None:
    tokens = Tokens(str(home))
    page = signed_in(tokens)
    old = tokens.new_token(page.key)
    for name in ("_pages", "_codes", "_challenges", "_tickets", "_guesses", "_noted"):
        setattr(tokens, name, OfTheEventLoop(getattr(tokens, name)))

    async def sign_in_and_out() -> None:
        await asyncio.to_thread(tokens.write_down, page.key)
        await asyncio.to_thread(tokens.note_use, page.key)
        await SignIn(tokens).sign_out(Held(page, bool))

    asyncio.run(sign_in_and_out())
    assert tokens.of_bearer(old) is None
    assert tokens.find(page.key) is None


@pytest.mark.ids("S1")
def test_a_file_that_cannot_be_read_now_is_no_wrong_token(home: Path) -> None:
    tokens, token = Tokens(str(home)), create_bearer(str(home), "test", OWNER)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            tokens.of_bearer(token)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert tokens.of_bearer(token) is not None
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        assert tokens.of_bearer(token) is not None, "what has not changed is not read again"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
