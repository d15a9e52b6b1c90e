"""S6: an id or a name in a request is looked up and never becomes a path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.ground import Ground
from tests.hubs import HubProcess
from tests.security.attacks import JSON, ask, bearer, until_running, ways
from tests.security.test_paths import everything
from tests.support import eventually

HOSTILE = [
    "..",
    ".",
    "../..",
    "../victim",
    "%2e%2e",
    "%2e%2e%2fvictim",
    "..%2Fvictim",
    "..%5cvictim",
    "%252e%252e%252fvictim",
    "..%00",
    "%00",
    "{id}%00",
    "{id}%0a",
    "%20{id}",
    "{id}%2Fruns%2F1",
    ".%2F{id}",
    "..%2Fsessions%2F{id}",
    "%2F",
    "{home}%2Fvictim",
    "*",
    "%3F" * 12,
    "[a-z]*",
    "%7B%7D",
    "x" * 10_000,
    "%C0%AE%C0%AE%C0%AF",
    "%FF%FE",
    "%ED%A0%80",
    "%D9%A3",
    ".lock",
    "0",
    "-1",
    "9" * 5000,
]
BODIES = {"prompt": {"text": "x"}, "stop": {"reason": "x"}}


def written(ground: Ground) -> dict[str, tuple[int, int, bytes]]:
    """All but what is written by itself: the hub's log, and the keeper's signs of life."""
    own = ("hub.log", "keeper.lock")
    return {path: item for path, item in everything(ground.home).items() if not path.endswith(own)}


@pytest.mark.ids("S6")
def test_S6_a_hostile_id_touches_nothing_with_any_verb(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("exec sleep 1000", name="dev")
    victim = ground.home / "victim"
    victim.mkdir()
    (victim / "state.json").write_text("{}")
    until_running(hub, dev.id)
    before = written(ground)
    verbs = [way for way in ways("{wanted}") if "{wanted}" in way[1]]
    assert len(verbs) > 15
    for hostile in HOSTILE:
        wanted = hostile.replace("{id}", dev.id).replace("{home}", str(ground.home).replace("/", "%2F"))
        if dev.id.startswith(wanted):  # the beginning of its id is a good name for a session
            continue
        for method, path in verbs:
            body = {"name": "x"} if method == "PATCH" else BODIES.get(path.rpartition("/")[2], {})
            data = b"" if method in ("GET", "DELETE") else json.dumps(body).encode()
            answer = ask(hub, method, path.replace("{wanted}", wanted), [bearer(hub), JSON], data)
            assert (method, path, wanted[:40], answer.status) in [
                (method, path, wanted[:40], status) for status in (404, 405, 422)
            ], answer
            assert set(answer.json()) == {"error"}
    after = written(ground)
    assert {Path(path).name for path in before.keys() ^ after.keys()} <= {"tokens.json", "tokens.json.lock"}
    assert {path: after[path] for path in before} == before
    assert dev.state == "running"
    ground.end(dev)


@pytest.mark.ids("S6")
def test_S6_a_run_is_a_number_and_never_a_path(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("exit 3", name="dev")
    dev.ended()
    eventually(lambda: [row["state"] for row in hub.ask("GET", "/api/sessions")] == ["failed"])
    for run in ("..", "1/../1", "%2e%2e", "0", "-1", "2", "9" * 30, "1%00", "1e0", "\u0661".encode().hex("%"), "*"):
        answer = ask(hub, "GET", f"/api/sessions/dev/recording?run={run}", [bearer(hub)])
        assert (run, answer.status) in ((run, 404), (run, 422))


@pytest.mark.ids("S6")
def test_S6_a_name_is_only_a_name(ground: Ground, hub: HubProcess) -> None:
    """Names may be almost anything; none of them makes a file anywhere."""
    known = {path.name for path in ground.home.parent.iterdir()}
    for name in ("../../evil", "/tmp/evil", "~", "$(touch evil)", "`touch evil`", "#{q:evil}", "-evil", "a/b"):
        wish = {"name": name, "command": ["true"], "folder": str(ground.place), "description": name}
        made = hub.ask("POST", "/api/sessions", wish)["session"]
        assert made["name"] == name
        assert {path.name for path in (ground.home / "sessions").iterdir() if path.is_dir()} == {
            row["id"] for row in hub.ask("GET", "/api/sessions?all=true")
        }
    assert {path.name for path in ground.home.parent.iterdir()} == known
    assert list(ground.place.iterdir()) == []
