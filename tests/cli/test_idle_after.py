"""When silence counts as idle: for each kind of program, in the settings, for one session, and later."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.support import Hitch, eventually

SILENT = "#!/bin/sh\nexec sleep 1000\n"


def program(ground: Ground, name: str) -> str:
    """A program of that name that says nothing."""
    path = ground.place / name
    path.write_text(SILENT)
    path.chmod(0o755)
    return str(path)


def after_s(ground: Ground, *words: str) -> float:
    """What a new session counts as idle, by its JSON and by its record."""
    made = ground.hitch("run", "--json", "--workspace", str(ground.place), *words).json()
    session = Truth(ground.home, made["id"])
    assert json.loads((session.folder / "session.json").read_bytes())["idle_after_s"] == made["idle_after_s"]
    ground.hitch("stop", "--now", session.id)
    return made["idle_after_s"]


@pytest.mark.ids("A31-7", "X25")
@pytest.mark.parametrize(("name", "seconds"), [("python3", 30), ("make", 300), ("cargo", 300), ("aider", 60)])
def test_each_kind_of_program_has_its_own_time(ground: Ground, name: str, seconds: float) -> None:
    assert after_s(ground, "--", program(ground, name)) == seconds


@pytest.mark.ids("A31-7", "X25")
def test_the_settings_change_it_for_all_for_a_kind_and_for_an_agent(ground: Ground) -> None:
    ground.configure("idle_after_s = 45\n[idle_after]\ncompile = 600\ncargo = 7.5\n")
    wanted = {"python3": 45, "make": 600, "cargo": 7.5, "aider": 60}
    assert {name: after_s(ground, "--", program(ground, name)) for name in wanted} == wanted
    assert after_s(ground, "--idle-after", "2m", "--", program(ground, "cargo")) == 120
    assert after_s(ground, "--idle-after", "90", "--", program(ground, "cargo")) == 90


@pytest.mark.ids("A31-7")
@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("idle_after_s = -1", "expected idle_after_s to be a number from 0 to 31622400, but got -1"),
        ("idle_after = 5", "expected idle_after to be a table of seconds, but got 5"),
        ("[idle_after]\nmake = '5m'", "expected idle_after.make to be a number from 0 to 31622400, but got '5m'"),
        ("[idle_after]\nmake = true", "expected idle_after.make to be a number from 0 to 31622400, but got True"),
    ],
)
def test_settings_that_are_wrong_are_named(ground: Ground, text: str, wrong: str) -> None:
    ground.configure(text)
    assert wrong in ground.hitch("run", "--", "true", check=2).err


@pytest.mark.ids("A31-7")
@pytest.mark.parametrize("text", ["", "soon", "5 apples", "-5", "nan", "1e999"])
def test_a_duration_that_is_none_starts_nothing(hitch: Hitch, text: str) -> None:
    answer = hitch("run", f"--idle-after={text}", "--", "true", check=2)
    assert "expected --idle-after to be a duration such as 45s, 5m or 1h 30m" in answer.err
    assert hitch("ps", "--all", "--json").json() == []


@pytest.mark.ids("A31-7")
def test_a_time_that_no_clock_measures_starts_nothing(hitch: Hitch) -> None:
    answer = hitch("run", "--idle-after", "999999d", "--", "true", check=2)
    assert "expected a time until idle of 0 to 31622400 seconds" in answer.err
    assert hitch("ps", "--all", "--json").json() == []


@pytest.mark.ids("A31-7", "A31-14")
def test_ps_says_idle_after_the_session_s_own_time(ground: Ground) -> None:
    words = ("run", "--json", "--workspace", str(ground.place))
    soon = ground.hitch(*words, "--idle-after", "0", "--", program(ground, "make")).json()["id"]
    late = ground.hitch(*words, "--", program(ground, "make")).json()["id"]
    rows = {row["id"]: row["label"] for row in ground.hitch("ps", "--json").json()}
    assert rows[soon].startswith("running (idle ")
    assert rows[late] == "running"
    for session in (soon, late):
        ground.hitch("stop", "--now", session)


@pytest.mark.ids("A31-7")
def test_the_hub_takes_it_tells_it_and_changes_it(ground: Ground, hub: HubProcess) -> None:
    wish = {"command": ["sleep", "1000"], "folder": str(ground.place), "name": "dev", "idle_after_s": 90}
    made = hub.ask("POST", "/api/sessions", wish)["session"]
    assert (made["idle_after_s"], made["label"]) == (90, "running")
    changed = hub.ask("PATCH", "/api/sessions/dev", {"idle_after_s": 0})
    assert changed["idle_after_s"] == 0
    assert changed["label"].startswith("running (idle ")
    dev = Truth(ground.home, made["id"])
    assert ground.ps(dev)["label"].startswith("running (idle ")
    assert "silent for longer than 0s, which counts as idle" in ground.hitch("explain", "dev").out
    (dev.folder / "session.json").unlink()  # the story has it too
    assert ground.hitch("doctor", "--fix", check=False).code in (0, 1)
    eventually(lambda: json.loads((dev.folder / "session.json").read_bytes())["idle_after_s"] == 0)
    with hub.http() as client:
        for wrong in (-1, 1e300, "5m"):
            assert client.patch("/api/sessions/dev", json={"idle_after_s": wrong}).status_code == 422
            assert client.post("/api/sessions", json={**wish, "idle_after_s": wrong}).status_code == 422
    ground.end(dev)


def test_working_counts_from_the_end_of_the_silence(ground: Ground) -> None:
    session = ground.begin_sh("echo begun; while read -r it; do echo $it; done", name="dev")
    eventually(lambda: ground.ps(session)["headline"] == "Quiet", 60, what="its silence")
    sent = datetime.now(UTC)
    ground.hitch("send", "dev", "go")
    working = eventually(lambda: found if (found := ground.ps(session))["headline"] == "Working" else None)
    assert datetime.fromisoformat(working["since"]) >= sent
    ground.end(session)
