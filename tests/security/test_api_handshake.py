"""S1: the sign-in proves both sides to each other, and no secret goes over the wire."""

from __future__ import annotations

import hashlib
import json
import secrets
import statistics
import time
from dataclasses import replace
from pathlib import Path

import pytest

from hitchpost.hub.http.grants import OWNER
from hitchpost.hub.http.tokenfile import BROWSER_S
from hitchpost.hub.http.tokens import CHALLENGE_S, CODE_S, MOST_CHALLENGES, Tokens
from tests.hubs import HubProcess
from tests.security.attacks import JSON, ask, launch_code, sign_in
from tests.signing import Exchange, challenged, decoded, encoded, post, proved, taken_apart

ORIGIN = "http://127.0.0.1:8750"


def asked(tokens: Tokens, name: str, secret: bytes) -> Exchange:
    nonce = encoded(secrets.token_bytes(24))
    hub_nonce, proof = tokens.challenge(name, nonce, ORIGIN)
    return Exchange(name, secret, nonce, hub_nonce, ORIGIN, proof)


@pytest.mark.ids("S1")
def test_S1_a_code_signs_in_once_and_the_browser_signs_in_again_by_itself(hub: HubProcess) -> None:
    launch_url = hub.ask("POST", "/api/launch-code")["launch_url"]
    address, _, code = launch_url.partition("#code=")
    assert address == f"{hub.url}/"
    name, secret = taken_apart(code)
    assert len(secret) == 32
    exchange = challenged(hub.url, name, secret)
    assert exchange.is_the_hub
    status, answer = proved(exchange)
    assert status == 200
    assert set(answer) == {"id", "page", "token", "ticket", "name", "user", "role", "may", "sessions", "expires_at"}
    assert (answer["role"], answer["sessions"]) == ("owner", None)
    signed = [("Authorization", f"Bearer {answer['token']}")]
    assert ask(hub, "GET", "/api/me", signed).json()["role"] == "owner"
    assert not challenged(hub.url, name, secret).is_the_hub, "the code is used up"
    again = challenged(hub.url, answer["id"], exchange.browser_secret)
    assert again.is_the_hub
    assert proved(again)[0] == 200


@pytest.mark.ids("S1")
def test_S1_no_secret_goes_over_the_wire_in_either_direction(hub: HubProcess) -> None:
    exchange = challenged(hub.url, *taken_apart(launch_code(hub)))
    _, answer = proved(exchange)
    sent = json.dumps([exchange.name, exchange.page_nonce, exchange.hub_nonce, exchange.hub_proof, exchange.page_proof])
    for secret in (exchange.secret, exchange.browser_secret):
        for spelt in (encoded(secret), secret.hex()):
            assert spelt not in sent + json.dumps(answer)


@pytest.mark.ids("S1")
def test_S1_a_proof_is_for_one_challenge_and_one_time(hub: HubProcess) -> None:
    page = sign_in(hub)
    first, second = (challenged(hub.url, page.name, page.secret) for _ in range(2))
    assert first.hub_nonce != second.hub_nonce
    assert post(hub.url, "/api/sign-in", {"nonce": second.hub_nonce, "proof": first.page_proof})[0] == 401
    assert proved(second)[0] == 401, "a wrong proof uses the challenge up"
    for wrong in ({"origin": "http://localhost:1"}, {"secret": bytes(32)}, {"name": "x"}, {"page_nonce": "n" * 32}):
        exchange = challenged(hub.url, page.name, page.secret)
        body = {"nonce": exchange.hub_nonce, "proof": replace(exchange, **wrong).page_proof}
        assert (wrong, post(hub.url, "/api/sign-in", body)[0]) == (wrong, 401)
    third = challenged(hub.url, page.name, page.secret)
    assert [proved(third)[0] for _ in range(2)] == [200, 401]


@pytest.mark.ids("S1")
def test_S1_the_hub_proves_itself_for_its_own_origins_only(hub: HubProcess) -> None:
    page = sign_in(hub)
    port = hub.url.rpartition(":")[2]
    nonce = encoded(secrets.token_bytes(24))
    for origin in (
        "http://127.0.0.1:1",
        "https://evil.example",
        f"https://127.0.0.1:{port}",
        "null",
        "",
        f"{hub.url}/",
    ):
        body = {"id": page.name, "nonce": nonce, "origin": origin}
        for headers in ([JSON], [JSON, ("Origin", hub.url)], [JSON, ("Origin", origin)]):
            answer = ask(hub, "POST", "/api/sign-in/challenge", headers, json.dumps(body).encode())
            assert (origin, answer.status, answer.code) == (origin, 403, "forbidden_origin")
    other = {"id": page.name, "nonce": nonce, "origin": f"http://localhost:{port}"}
    mixed = ask(hub, "POST", "/api/sign-in/challenge", [JSON, ("Origin", hub.url)], json.dumps(other).encode())
    assert mixed.status == 403


@pytest.mark.ids("S1")
def test_S1_who_is_not_known_gets_an_answer_of_the_same_shape(hub: HubProcess) -> None:
    page, secret = sign_in(hub), secrets.token_bytes(32)
    shapes = set()
    for name in (page.name, secrets.token_hex(10), "x", taken_apart(launch_code(hub))[0]):
        body = {"id": name, "nonce": encoded(secrets.token_bytes(24)), "origin": hub.url}
        answer = ask(hub, "POST", "/api/sign-in/challenge", [JSON], json.dumps(body).encode())
        told = answer.json()
        shapes.add((answer.status, tuple(told), len(told["nonce"]), len(told["proof"])))
    assert len(shapes) == 1
    unknown = challenged(hub.url, secrets.token_hex(10), secret)
    assert not unknown.is_the_hub
    assert proved(unknown)[0] == 401


@pytest.mark.ids("S1")
def test_S1_who_is_not_known_is_answered_as_fast(home: Path) -> None:
    tokens = Tokens(str(home))
    exchange = asked(tokens, *taken_apart(tokens.new_code()))
    known = tokens.sign_in(exchange.hub_nonce, decoded(exchange.page_proof))
    assert known is not None
    took: dict[str, list[int]] = {known.key: [], "f" * len(known.key): []}
    for _ in range(1000):
        for name, times in took.items():
            began = time.perf_counter_ns()
            tokens.challenge(name, "n" * 32, ORIGIN)
            times.append(time.perf_counter_ns() - began)
    first, second = (statistics.median(times) for times in took.values())
    assert 0.7 < first / second < 1.4


@pytest.mark.ids("S1", "S5")
def test_S1_what_is_on_the_disk_signs_nobody_in(hub: HubProcess) -> None:
    page = sign_in(hub)
    kept = json.loads((Path(hub.home) / "tokens.json").read_bytes())["signed_in"][page.name]
    stored, hub_key = bytes.fromhex(kept["stored_key"]), bytes.fromhex(kept["hub_key"])
    for guess in (stored, hub_key, hashlib.sha256(stored).digest()):
        assert proved(challenged(hub.url, page.name, guess))[0] == 401
    assert page.again() is not None


@pytest.mark.ids("S1", "S14")
def test_S1_codes_and_challenges_expire_and_take_no_memory(home: Path) -> None:
    now = 1000.0
    tokens = Tokens(str(home), clock=lambda: now, wall=lambda: 1.8e9 + now)
    code, late = (taken_apart(tokens.new_code()) for _ in range(2))
    slow = asked(tokens, *code)
    now += CODE_S - 1
    exchange = asked(tokens, *code)
    known = tokens.sign_in(exchange.hub_nonce, decoded(exchange.page_proof))
    assert known is not None
    assert known.grant.role == OWNER
    now += 2
    assert tokens.sign_in(slow.hub_nonce, decoded(slow.page_proof)) is None
    exchange = asked(tokens, *late)
    assert tokens.sign_in(exchange.hub_nonce, decoded(exchange.page_proof)) is None
    now += BROWSER_S - 3
    assert tokens.find(known.key) is not None
    now += 3
    assert tokens.find(known.key) is None
    for number in range(MOST_CHALLENGES + 10):
        tokens.challenge(str(number), "n" * 32, ORIGIN)
    assert len(tokens._challenges) == MOST_CHALLENGES
    now += CHALLENGE_S + 1
    tokens.challenge("x", "n" * 32, ORIGIN)
    assert len(tokens._challenges) == 1


@pytest.mark.ids("S1")
def test_S1_just_after_the_machine_has_started_nothing_is_worth_anything(home: Path) -> None:
    """Its clock is near zero then."""
    tokens = Tokens(str(home), clock=lambda: 0.0)
    assert tokens.sign_in("never given", bytes(32)) is None
    assert tokens.of_bearer("never given") is None
    assert tokens.of_ticket("never given") is None


@pytest.mark.ids("S1")
def test_S1_nonsense_is_refused_in_the_one_shape(hub: HubProcess) -> None:
    right = {"id": "a", "nonce": "n" * 32, "origin": hub.url}
    wrong: list[dict[str, object]] = [
        {"id": "a\nb"}, {"id": ""}, {"id": "a" * 65}, {"id": None}, {"nonce": "short"}, {"nonce": "n" * 32 + "\n"},
        {"nonce": 7}, {"origin": None}, {"origin": "x" * 200}, {"more": 1},
    ]  # fmt: skip
    for part in wrong:
        answer = ask(hub, "POST", "/api/sign-in/challenge", [JSON], json.dumps({**right, **part}).encode())
        assert (part, answer.status, answer.code) == (part, 422, "bad_input")
    for body in (
        {},
        {"nonce": "n" * 32, "proof": ""},
        {"nonce": "n" * 32, "proof": "x" * 44},
        {"nonce": [], "proof": 1},
    ):
        assert ask(hub, "POST", "/api/sign-in", [JSON], json.dumps(body).encode()).status == 422
    assert "Traceback" not in hub.log()
