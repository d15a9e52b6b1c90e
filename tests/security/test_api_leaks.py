"""S5 and S10: what signs somebody in, and what an agent is told in its environment, is found nowhere else."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import pytest

from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.security.attacks import JSON, SIGN_IN, Reply, ask, bearer, knock, launch_code, raw, sign_in
from tests.security.test_secrets import holders, written
from tests.signing import encoded
from tests.support import Process, eventually


@pytest.mark.ids("S5")
def test_S5_what_signs_somebody_in_is_written_nowhere(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("exec sleep 1000", name="dev")
    page, wrong = sign_in(hub), f"wrong-{secrets.token_hex(16)}"
    code = launch_code(hub).partition(".")[2]
    ticket, used = page.ticket(), page.ticket()
    ours = ("Origin", hub.url)
    assert knock(hub, f"/ws?ticket={used}", [ours]).status == 101
    canaries = [
        page.token,
        encoded(page.secret),
        page.secret.hex(),
        code,
        ticket,
        used,
        wrong,
        hub.token("owner"),
        hub.token("viewer"),
    ]
    answers: list[Reply] = []
    for canary in canaries:
        told = [("Referer", f"{hub.url}/#code={canary}"), ("User-Agent", canary), ("X-Request-Id", canary)]
        answers += [
            ask(hub, "GET", f"/api/sessions?token={canary}", [("Authorization", f"Bearer {wrong}"), *told]),
            ask(hub, "GET", f"/api/health?code={canary}", [*page.signed, *told]),
            ask(hub, "GET", f"/{canary}", [*page.signed, *told]),
            ask(hub, "GET", f"/api/health?{canary}", told, host=f"{canary}.example"),
            ask(hub, "GET", "/api/health", [("Origin", f"http://{canary}.example")]),
            ask(hub, "POST", "/api/sessions", [bearer(hub), JSON], b'{"' + canary.encode()),
            ask(hub, "POST", "/api/sessions", [bearer(hub), ("Content-Type", canary)], b"{}"),
            ask(hub, "POST", "/api/sign-in", [JSON], json.dumps({"nonce": [canary], "proof": canary}).encode()),
            ask(hub, "POST", "/api/sign-in/challenge", [JSON], json.dumps({"id": canary * 9}).encode()),
            knock(hub, f"/ws?ticket=x{canary}", [ours]),
            raw(hub, f"{canary}\r\n\r\n".encode()),
            raw(hub, f"GET /{canary} HTTP/9.9\r\n\r\n".encode()),
        ]
    for answer in answers:
        heads = [value for _, value in answer.headers]
        said = "".join([answer.text if answer.status != 200 else "", *heads])
        assert [canary for canary in canaries if canary in said] == []
    for canary in canaries:
        assert written(canary, ground.home, ground.watch.scratch) == []
        assert holders(canary) == (set(), set())
    ground.end(dev)


@pytest.mark.ids("S5")
def test_S5_no_address_is_told_to_another_site_and_nothing_is_cached(hub: HubProcess) -> None:
    page = sign_in(hub)
    for answer in (ask(hub, "GET", "/"), ask(hub, "GET", "/api/me", page.signed), ask(hub, *SIGN_IN[1], [JSON], b"{}")):
        assert (answer.header("Referrer-Policy"), answer.header("Cache-Control")) == ("no-referrer", "no-store")


@pytest.mark.ids("S5")
def test_S5_the_command_prints_a_token_once_and_keeps_its_digest(ground: Ground, hub: HubProcess) -> None:
    token = ground.hitch("token", "create", "--name", "ci").out.strip()
    assert ask(hub, "GET", "/api/me", [("Authorization", f"Bearer {token}")]).json()["role"] == "owner"
    assert written(token, ground.home) == []
    assert (ground.home / "tokens.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.ids("S10", "S5")
def test_S10_a_value_given_over_the_api_is_in_the_agents_environment_and_nowhere_else(
    ground: Ground, hub: HubProcess
) -> None:
    canary = f"canary-{secrets.token_hex(8)}"
    script = 'printf %s "$SECRET" | cksum > sum; exec sleep 1000'
    wish = {"command": ["sh", "-c", script], "folder": str(ground.place), "env": {"SECRET": canary}}
    answers = [ask(hub, "POST", "/api/sessions", [bearer(hub), JSON], json.dumps(wish).encode())]
    assert answers[0].status == 201, answers[0]
    dev = Truth(ground.home, answers[0].json()["session"]["id"])
    assert ground.said("sum").split()[1] == str(len(canary))
    eventually(lambda: Process.read(dev.agent_pid()).argv[0] == "sleep")  # type: ignore[union-attr]
    other = hub.ask("POST", "/api/sessions", {"command": ["sleep", "1000"], "folder": str(ground.place)})["session"]
    assert holders(canary) == ({dev.agent_pid()}, set())
    for part in ("", "/story", "/runs", "/screen", "/recording"):
        answers.append(ask(hub, "GET", f"/api/sessions/{dev.id}{part}", [bearer(hub)]))
    answers += [ask(hub, "GET", path, [bearer(hub)]) for path in ("/api/status", "/api/sessions/export", "/metrics")]
    for bad in (
        {"env": {"SECRET": [canary]}},
        {"env": {"SECRET": canary + "\0"}},
        {"env": {"SE CRET": canary}},
        {"env": canary},
        {"env": {"SECRET": canary}, "command": [7]},
        {"env": {"SECRET": canary}, "command": ["/no/such/program"]},
        {"env": {"SECRET": canary}, "command": []},
        {"env": {"SECRET": canary}, "folder": "/no/such/folder"},
        {"env": {"SECRET": canary}, "runtime": "none"},
        {"env": {"SECRET": canary * 1000}},
        {"env": {"SECRET": canary}, "unknown": canary},
    ):
        answer = ask(hub, "POST", "/api/sessions", [bearer(hub), JSON], json.dumps({**wish, **bad}).encode())
        assert answer.status >= 400, answer
        answers.append(answer)
    assert [answer for answer in answers if canary in answer.text] == []
    assert holders(canary) == ({dev.agent_pid()}, set())
    restarted = hub.ask("POST", f"/api/sessions/{dev.id}/restart")
    assert canary not in str(restarted)
    assert holders(canary) == (set(), set())
    for session in (dev.id, other["id"]):
        hub.ask("POST", f"/api/sessions/{session}/stop")
    assert written(canary, ground.home) == []


@pytest.mark.ids("S10")
def test_S10_a_keeper_that_the_hub_starts_has_next_to_nothing_of_the_hubs_environment(
    ground: Ground, hub: HubProcess
) -> None:
    session = hub.ask("POST", "/api/sessions", {"command": ["sleep", "1000"], "folder": str(ground.place)})["session"]
    dev = Truth(ground.home, session["id"])
    texts = Path(f"/proc/{dev.keeper_pid()}/environ").read_bytes().split(b"\0")[:-1]
    assert {text.split(b"=")[0] for text in texts} <= {b"LANG", b"LC_ALL", b"HITCHPOST_KEEPER", b"LC_CTYPE"}
    ground.end(dev)
