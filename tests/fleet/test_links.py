"""Launch links of a fleet: every hub takes them, once in all, and knows the browsers that they have signed in."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from hitchpost.errors import DatabaseAway
from hitchpost.hub.http.grants import OWNER, Grant
from hitchpost.hub.http.tokens import Tokens
from tests.fleet.hubs import Fleet, fleet_of
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.people import People, closed_with
from tests.security.attacks import JSON, Page, ask, launch_code
from tests.security.test_api_handshake import asked
from tests.security.test_api_signins import socket_of
from tests.signing import Exchange, challenged, decoded, encoded, proved, taken_apart
from tests.support import eventually

SOON_S = 2.0
ROUNDS = 5


@pytest.fixture
def fleet(ground: Ground, database: str) -> Iterator[Fleet]:
    with fleet_of(ground, database) as made:
        yield made


def known(hub: HubProcess, code: str, within_s: float = SOON_S) -> Exchange:
    """The hub's proof that it knows a code, once it does."""

    def proof() -> Exchange | None:
        exchange = challenged(hub.url, *taken_apart(code))
        return exchange if exchange.is_the_hub else None

    return eventually(proof, within_s, what="the code at the hub")


def page_of(hub: HubProcess, exchange: Exchange) -> Page:
    status, answer = proved(exchange)
    assert status == 200, answer
    return Page(hub, answer["token"], answer["id"], exchange.browser_secret)


def is_forgotten(hub: HubProcess, code: str) -> bool:
    return not challenged(hub.url, *taken_apart(code)).is_the_hub


def test_a_link_of_one_hub_signs_in_at_another_and_the_browser_at_all_of_them(fleet: Fleet) -> None:
    code = launch_code(fleet.first)
    page = page_of(fleet.second, known(fleet.second, code))
    for hub in fleet.hubs:
        eventually(lambda: is_forgotten(hub, code), SOON_S, what="the code to be used up")  # noqa: B023
        again = eventually(lambda: replace(page, hub=hub).again(), SOON_S, what="the browser there")  # noqa: B023
        assert ask(hub, "GET", "/api/me", again.signed).json()["role"] == OWNER


def test_a_link_that_two_hubs_get_in_the_same_moment_signs_in_once(fleet: Fleet) -> None:
    for _ in range(ROUNDS):
        code, together = launch_code(fleet.first), threading.Barrier(4)
        exchanges = [known(hub, code) for hub in fleet.hubs for _ in range(2)]

        def prove(exchange: Exchange) -> int:
            together.wait()  # noqa: B023
            return proved(exchange)[0]

        with ThreadPoolExecutor(len(exchanges)) as threads:
            assert sorted(threads.map(prove, exchanges)) == [200, 401, 401, 401]
    assert len(fleet.first.ask("GET", "/api/tokens")) == ROUNDS


def test_a_link_ends_at_every_hub_with_its_time_and_with_its_person_and_when_it_is_taken_back(fleet: Fleet) -> None:
    people = People(fleet.first)
    people.add("anna")
    short, hers = launch_code(fleet.first, lasts_s=3), launch_code(fleet.first, user="anna", role="member", lasts_s=600)
    lasting = launch_code(fleet.first, lasts_s=600)
    late = [known(fleet.second, code) for code in (short, hers, lasting)]
    (row,) = [row for row in fleet.second.ask("GET", "/api/tokens") if row["id"] == taken_apart(lasting)[0][:10]]
    assert (row["kind"], row["role"], row["used_at"]) == ("link", OWNER, "")
    fleet.first.ask("DELETE", "/api/users/anna")
    fleet.first.ask("DELETE", f"/api/tokens/{row['id']}")
    for hub in fleet.hubs:
        for code in (hers, lasting):
            eventually(lambda: is_forgotten(hub, code), SOON_S, what="its end")  # noqa: B023
        eventually(lambda: is_forgotten(hub, short), 3 + SOON_S, what="the end of its time")  # noqa: B023
    assert [proved(exchange)[0] for exchange in late] == [401] * 3, "what was asked before is refused, too"
    assert fleet.first.ask("GET", "/api/tokens") == []


def test_a_browser_that_is_signed_out_at_one_hub_ends_at_the_other(fleet: Fleet) -> None:
    code = launch_code(fleet.first)
    page = page_of(fleet.second, known(fleet.second, code))
    at_first = eventually(lambda: replace(page, hub=fleet.first).again(), SOON_S, what="the browser there")
    with socket_of(at_first) as client:
        assert ask(fleet.second, "POST", "/api/sign-out", page.ours).status == 204
        assert closed_with(client) == 1008
    assert at_first.again() is None


def test_a_code_is_no_token_and_signs_nobody_in_without_its_secret(fleet: Fleet) -> None:
    name, secret = taken_apart(launch_code(fleet.first, lasts_s=600))
    kept = stored_links(fleet.address)
    for spelt in (encoded(secret), secret.hex()):
        assert spelt.encode() not in kept
    for hub in fleet.hubs:
        for token in (name, encoded(secret), f"{name}.{encoded(secret)}"):
            assert ask(hub, "GET", "/api/me", [("Authorization", f"Bearer {token}"), JSON]).status in (401, 429)
        assert proved(challenged(hub.url, name, bytes(32)))[0] == 401


def stored_links(address: str) -> bytes:
    with psycopg.connect(address) as asking:
        row = asking.execute("select data from files where name = 'tokens.json' and data is not null").fetchone()
    assert row is not None
    assert b'"links"' in row[0]
    return bytes(row[0])


def launch(tokens: Tokens) -> str:
    return asyncio.run(tokens.launch_code(Grant(OWNER), 60))


class Away:
    """A guard of a fleet whose PostgreSQL can be taken away."""

    is_away = False

    @contextmanager
    def __call__(self) -> Iterator[None]:
        if self.is_away:
            raise DatabaseAway("db.example/fleet", "it is away")
        yield


def test_while_postgresql_is_away_a_link_is_for_its_own_hub_and_shared_ones_wait(home: Path) -> None:
    away = Away()
    tokens = Tokens(str(home), guard=away)
    shared = launch(tokens)
    away.is_away = True
    own = asked(tokens, *taken_apart(launch(tokens)))
    found = tokens.sign_in(own.hub_nonce, decoded(own.page_proof))
    assert found is not None
    assert tokens.write_down(found.key), "it lasts as long as its hub"
    exchange = asked(tokens, *taken_apart(shared))
    waits = tokens.sign_in(exchange.hub_nonce, decoded(exchange.page_proof))
    assert waits is not None
    assert tokens.find(waits.key) is None, "nobody has counted it yet"
    with pytest.raises(DatabaseAway):
        tokens.write_down(waits.key)
    away.is_away = False
    exchange = asked(tokens, *taken_apart(shared))
    counted = tokens.sign_in(exchange.hub_nonce, decoded(exchange.page_proof))
    assert counted is not None
    assert tokens.write_down(counted.key)
    assert tokens.find(counted.key) is not None
    assert tokens.find(waits.key) is None
