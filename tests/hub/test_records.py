"""The record axis, as the hub serves it: what may follow what, who asks for it, and what time does."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hitchpost.hub.client import HubRefused
from tests.ground import Ground, Truth, alive
from tests.hubs import HubProcess
from tests.repos import Repo
from tests.security.attacks import sign_in
from tests.support import eventually

ECHO = 'stty -echo; while read line; do echo "<$line>"; done'


def record_file(session: Truth) -> dict[str, Any]:
    return json.loads((session.folder / "session.json").read_bytes())


def rewrite_record(session: Truth, **fields: Any) -> None:
    """Change ``session.json`` as every writer does: by rename."""
    path = session.folder / "session.json"
    new = session.folder.parent.parent / "changed.json"
    new.write_text(json.dumps({**record_file(session), **fields}))
    new.rename(path)


def ago(**units: float) -> str:
    return (datetime.now(UTC) - timedelta(**units)).isoformat()


def shape(hub: HubProcess, session: Truth) -> dict[str, Any]:
    return hub.ask("GET", f"/api/sessions/{session.id}")


def refused(hub: HubProcess, method: str, path: str, body: object = None) -> tuple[int, str]:
    with pytest.raises(HubRefused) as raised:
        hub.ask(method, path, body)
    error = raised.value
    return error.status, "; ".join(filter(None, (error.message, error.hint)))


def ended(ground: Ground, script: str = "exit 0", **options: Any) -> Truth:
    session = ground.begin_sh(script, **options)
    session.ended()
    return session


def as_record(ground: Ground, hub: HubProcess, word: str, name: str) -> Truth:
    """A session that has ended, with that record."""
    session = ended(ground, name=name)
    rewrite_record(session, record=word)
    eventually(lambda: shape(hub, session)["record"] == word, what=f"the hub to see {word}")
    return session


@pytest.mark.ids("D-1", "D-2", "E-14", "X1", "X3")
def test_the_end_of_a_process_leaves_the_record_active(ground: Ground, hub: HubProcess) -> None:
    async def ends(session: Truth) -> str:
        async with hub.ws() as client:
            await client.attach(session.id)
            await client.say("terminal.input", sessionId=session.id, data="\r")
            return (await client.until("session.status", session.id))["status"]

    for number, (script, state, word) in enumerate(
        [("exit 0", "completed", "stopped"), ("exit 1", "failed", "error"), ("kill -9 $$", "failed", "error")], 1
    ):
        wish = {"command": ["sh", "-c", f"read line; {script}"], "folder": str(ground.place)}
        made = hub.ask("POST", "/api/sessions", wish)["session"]
        assert (made["record"], made["state"]) == ("active", "running")
        session = Truth(ground.home, made["id"])
        assert asyncio.run(ends(session)) == word
        seen = shape(hub, session)
        assert (seen["record"], seen["state"]) == ("active", state)
        assert record_file(session)["record"] == "active"
        assert len(hub.ask("GET", "/api/sessions")) == number
        assert hub.ask("POST", f"/api/sessions/{session.id}/resume")["status"] == "active"
        hub.ask("POST", f"/api/sessions/{session.id}/stop")


@pytest.mark.ids("D-4", "D-6", "D-8", "D-12")
def test_what_each_record_allows(ground: Ground, hub: HubProcess) -> None:
    suspended, archived, broken = (as_record(ground, hub, word, word) for word in ("suspended", "archived", "error"))
    rows = hub.ask("GET", "/api/sessions")
    assert [row["record"] for row in rows] == ["suspended"]
    assert len(hub.ask("GET", "/api/sessions?all=true")) == 3
    for session in (suspended, archived, broken):
        word = record_file(session)["record"]
        status, why = refused(hub, "POST", f"/api/sessions/{session.id}/prompt", {"text": "x"})
        assert (status, f"is {word} and takes no input" in why) == (409, True)
        assert shape(hub, session)["record"] == word
    for session in (archived, broken):
        word = record_file(session)["record"]
        for verb in ("resume", "restart"):
            status, why = refused(hub, "POST", f"/api/sessions/{session.id}/{verb}")
            assert (status, why.startswith(f"{word} is {word}: it takes no new run")) == (409, True)
        status, why = refused(hub, "POST", f"/api/sessions/{session.id}/archive")
        what = "is archived already" if session is archived else "is error: it cannot be archived"
        assert (status, why.startswith(f"{word} {what}")) == (409, True)
        assert session.state_file()["run"] == 1
    answer = hub.ask("POST", f"/api/sessions/{suspended.id}/resume")
    assert (answer["sessionId"], answer["status"], answer["session"]["run"]) == (suspended.id, "active", 2)
    suspended.ended(run=2)
    for session in (suspended, archived, broken):
        assert hub.ask("DELETE", f"/api/sessions/{session.id}") is None
        assert not session.folder.exists()


@pytest.mark.ids("D-5")
def test_only_a_person_archives_and_not_while_it_runs(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh(ECHO, name="dev")
    eventually(lambda: shape(hub, dev)["state"] == "running")
    status, why = refused(hub, "POST", "/api/sessions/dev/archive")
    assert (status, why) == (409, "dev is running; stop it before you archive it")
    assert refused(hub, "DELETE", "/api/sessions/dev")[0] == 409
    hub.ask("POST", "/api/sessions/dev/stop")
    assert hub.ask("POST", "/api/sessions/dev/archive")["record"] == "archived"
    assert [line["reason"] for line in dev.story() if line["event"] == "record"] == ["archived by the user"]
    assert [row["label"] for row in hub.ask("GET", "/api/sessions?all=true")] == [shape(hub, dev)["label"]]


@pytest.mark.ids("D-3", "X4", "X5")
def test_a_hub_that_is_told_to_suspends_every_active_record(ground: Ground, hub: HubProcess) -> None:
    hub.stop()
    ground.configure('on_shutdown = "suspend"')
    live = [ground.begin_sh(ECHO, name=f"live{number}") for number in range(3)]
    done = [ended(ground, f"exit {code}", name=f"done{code}") for code in range(2)]
    put_away = ended(ground, name="put-away")
    rewrite_record(put_away, record="archived")
    hub.start()
    before = {session.id: shape(hub, session)["last_active_at"] for session in (*live, *done)}
    late = ended(ground, name="late")
    eventually(lambda: shape(hub, late)["state"] == "completed")
    assert hub.stop() == 0
    for session in live:
        assert session.ended() == "stopped"
        assert session.exit()["intent"] == "shutdown"
        record = record_file(session)
        assert record["record"] == "suspended"
        assert record["last_active_at"] > before[session.id]
        assert session.states() == ["starting", "running", "stopping", "stopped"]
    assert record_file(put_away)["record"] == "archived"
    hub.start()
    rows = {row["name"]: row for row in hub.ask("GET", "/api/sessions")}
    assert {name: (row["status"], row["state"]) for name, row in rows.items()} == {
        **{f"live{number}": ("suspended", "stopped") for number in range(3)},
        "done0": ("suspended", "completed"),
        "done1": ("suspended", "failed"),
        "late": ("suspended", "completed"),
    }
    assert all(rows[f"done{code}"]["last_active_at"] > before[done[code].id] for code in range(2))
    assert ground.ps(done[0])["last_active_at"] == rows["done0"]["last_active_at"]
    again = hub.ask("POST", "/api/sessions/live0/resume")
    assert (again["status"], again["session"]["state"], again["session"]["run"]) == ("active", "running", 2)
    ground.end(live[0])


@pytest.mark.ids("D-3", "X5")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_hub_that_leaves_keeps_what_runs(ground: Ground, hub: HubProcess, number: signal.Signals) -> None:
    dev = ground.begin_sh(ECHO)
    assert hub.process is not None
    hub.process.send_signal(number)
    assert hub.process.wait(30) == 0
    assert (dev.state, record_file(dev)["record"], alive(dev.agent_pid())) == ("running", "active", True)
    assert not (ground.home / "hub.sock").exists()
    hub.start()
    assert shape(hub, dev)["status"] == "running"
    ground.end(dev)


@pytest.mark.ids("D-9", "D-5", "X7")
def test_an_idle_process_is_reaped_and_the_next_prompt_starts_it_again(ground: Ground, hub: HubProcess) -> None:
    hub.stop()
    ground.configure("reap_idle_minutes = 0.01\nreap_every_minutes = 0.002")
    hub.start()
    busy = ground.begin_sh("while :; do echo x; sleep 0.05; done", name="busy")

    async def scene() -> Truth:
        async with hub.ws() as client:  # before the session: idle it lives for less than a second
            dev = await asyncio.to_thread(ground.begin_sh, ECHO, name="dev")
            told = await client.until("session.status", dev.id, status="idle")
            assert told["session"]["record"] == "active"
            return dev

    dev = asyncio.run(scene())
    assert dev.ended() == "stopped"
    assert (dev.exit()["intent"], record_file(dev)["record"]) == ("reaper", "active")
    assert busy.state == "running"
    hub.stop()
    ground.configure("")
    hub.start()
    receipt = hub.ask("POST", "/api/sessions/dev/prompt", {"text": "hello again"})
    assert (receipt["delivered"], receipt["started"], receipt["session"]["run"]) == (True, True, 2)
    eventually(lambda: b"<hello again>" in dev.output(run=2))
    receipt = hub.ask("POST", "/api/sessions/dev/prompt", {"text": "and again"})
    assert (receipt["started"], receipt["session"]["run"]) == (False, 2)
    for session in (dev, busy):
        ground.end(session)


@pytest.mark.ids("E-8", "X7", "D-9")
def test_a_crash_starts_nothing_by_itself_and_takes_no_prompt(ground: Ground, hub: HubProcess) -> None:
    dev = ended(ground, "exit 1", name="dev")
    eventually(lambda: shape(hub, dev)["state"] == "failed")
    status, why = refused(hub, "POST", "/api/sessions/dev/prompt", {"text": "x"})
    assert (status, "is not running" in why) == (409, True)
    hub.kill()
    hub.start()
    assert (shape(hub, dev)["state"], shape(hub, dev)["run"]) == ("failed", 1)
    assert not (dev.folder / "runs" / "2").exists()


def test_a_refused_prompt_says_why_and_names_no_option_of_a_command(ground: Ground, hub: HubProcess) -> None:
    blocked = ground.begin_sh(r"printf '\033]7501;state=blocked\033\\'; exec cat", name="dev")
    eventually(lambda: shape(hub, blocked)["attention"] == "blocked")
    status, why = refused(hub, "POST", "/api/sessions/dev/prompt", {"text": "x"})
    assert status == 409
    assert why.endswith("not sent to dev: the agent is waiting for a permission; see to that first")
    ground.end(blocked)


@pytest.mark.ids("D-10", "D-5")
def test_old_records_go_as_the_retention_says(ground: Ground, hub: HubProcess) -> None:
    table: dict[str, tuple[str, bool, dict[str, float], bool]] = {
        "suspended-6d": ("suspended", False, {"days": 6}, False),
        "suspended-8d": ("suspended", False, {"days": 8}, True),
        "resumable-8d": ("suspended", True, {"days": 8}, False),
        "resumable-31d": ("suspended", True, {"days": 31}, True),
        "error-23h": ("error", False, {"hours": 23}, False),
        "error-25h": ("error", False, {"hours": 25}, True),
        "archived-9y": ("archived", False, {"days": 3285}, False),
        "active-9y": ("active", False, {"days": 3285}, False),
    }
    made = {name: ground.begin_sh("exit 0", name=name) for name in table}
    for name, (record, resumable, age, _) in table.items():
        made[name].ended()
        rewrite_record(made[name], record=record, supports_resume=resumable, last_active_at=ago(**age))
    wanted = {name: gone for name, (_, _, _, gone) in table.items()}
    decisions = {one["name"]: one for one in ground.hitch("prune", "--dry-run", "--json").json()}
    assert {name: one["delete"] for name, one in decisions.items()} == wanted
    assert decisions["archived-9y"]["at"] is None
    assert all(session.folder.exists() for session in made.values())
    assert ground.hitch("prune").out.count("deleted, ") == 3
    assert {name: not session.folder.exists() for name, session in made.items()} == wanted
    left = {name for name, gone in wanted.items() if not gone}
    eventually(lambda: {row["name"] for row in hub.ask("GET", "/api/sessions?all=true")} == left)
    assert ground.hitch("prune").out == "nothing is due\n"


@pytest.mark.ids("C17")
def test_a_prompt_that_cannot_be_typed_starts_nothing(ground: Ground, hub: HubProcess) -> None:
    done = ended(ground, name="done")
    status, why = refused(hub, "POST", "/api/sessions/done/prompt", {"text": "a\x01"})
    assert (status, "not sent to done: the text holds control characters" in why) == (409, True)
    assert done.state_file()["run"] == 1
    wish = {"command": ["cat"], "folder": str(ground.place), "name": "new", "prompt": "a\x01"}
    status, why = refused(hub, "POST", "/api/sessions", wish)
    assert (status, "the first prompt cannot be sent: the text holds control characters" in why) == (422, True)
    assert [row["name"] for row in hub.ask("GET", "/api/sessions?all=true")] == ["done"]


@pytest.mark.ids("D-10")
def test_a_suspended_record_whose_process_lives_is_kept(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh(ECHO)
    rewrite_record(dev, record="suspended", last_active_at=ago(days=99))
    assert [one["delete"] for one in ground.hitch("prune", "--json").json()] == [False]
    assert alive(dev.agent_pid())
    ground.end(dev)


@pytest.mark.ids("D-7", "F34")
def test_records_of_the_old_model_are_served_in_the_new_words(ground: Ground, hub: HubProcess) -> None:
    hub.stop()
    for old in ("completed", "cancelled"):
        session = ended(ground, name=old)
        value = {key: item for key, item in record_file(session).items() if key not in ("schema", "record")}
        (session.folder / "session.json").write_text(json.dumps(value | {"status": old}))
    hub.start()
    rows = {row["name"]: row["record"] for row in hub.ask("GET", "/api/sessions?all=true")}
    assert rows == {"completed": "active", "cancelled": "archived"}
    assert hub.ask("POST", "/api/sessions/completed/resume")["status"] == "active"
    assert refused(hub, "POST", "/api/sessions/cancelled/resume")[0] == 409


@pytest.mark.ids("F34")
def test_a_session_of_a_newer_version_is_refused_and_stops_nobody_else(ground: Ground, hub: HubProcess) -> None:
    hub.stop()
    newer, dev = ended(ground, name="newer"), ended(ground, name="dev")
    rewrite_record(newer, schema=99)
    before = (newer.folder / "session.json").read_bytes()
    hub.start()
    rows = {row["name"]: row["status"] for row in hub.ask("GET", "/api/sessions")}
    assert rows == {"newer": "unknown", "dev": "completed"}
    for method, path in (("GET", ""), ("POST", "/resume"), ("GET", "/story")):
        status, why = refused(hub, method, f"/api/sessions/{newer.id}{path}")
        assert (status, bool(why)) in ((404, True), (409, True))
    assert refused(hub, "GET", "/api/sessions/newer") == refused(hub, "GET", f"/api/sessions/{newer.id}")
    assert hub.ask("POST", f"/api/sessions/{dev.id}/resume")["status"] == "active"
    assert (newer.folder / "session.json").read_bytes() == before
    dev.ended(run=2)


@pytest.mark.ids("E-6", "E-7")
def test_resume_over_the_socket_is_refused_for_what_cannot_be_resumed(ground: Ground, hub: HubProcess) -> None:
    live = ground.begin_sh(ECHO, name="live")
    archived = as_record(ground, hub, "archived", "archived")

    async def scene() -> None:
        async with hub.ws() as client:
            for session, code, text in (
                (live.id, "wrong_state", "live is running; there is nothing to resume"),
                (archived.id, "wrong_state", "archived is archived: it takes no new run"),
                ("nobody", "not_found", "nobody"),
            ):
                await client.say("session.resume", sessionId=session)
                told = await client.until("error")
                assert (told["code"], text in told["message"]) == (code, True)

    asyncio.run(scene())
    assert (live.state_file()["run"], archived.state_file()["run"]) == (1, 1)
    ground.end(live)


@pytest.mark.ids("E-6", "E-7", "E-14", "E-11")
def test_every_way_of_story_2_9_through_the_words(ground: Ground, hub: HubProcess, repo: Repo) -> None:
    wish = {"command": ["sh", "-c", ECHO], "folder": str(repo.path), "branch": "fix", "name": "dev"}
    made = hub.ask("POST", "/api/sessions", wish)["session"]
    dev = Truth(ground.home, made["id"])
    tree = made["workspace"]["path"]
    (Path(tree) / "work.txt").write_text("unsaved\n")

    async def word(want: str, act: str, **fields: Any) -> dict[str, Any]:
        async with hub.ws() as client:
            if act == "kill":
                os.kill(dev.agent_pid(fields["run"]), signal.SIGKILL)
            elif act == "stop":
                await asyncio.to_thread(hub.ask, "POST", "/api/sessions/dev/stop")
            else:
                await client.say("session.resume", sessionId=dev.id)
            return await client.until("session.status", dev.id, status=want)

    told = asyncio.run(word("error", "kill", run=1))
    assert (told["reason"], told["session"]["record"]) == ("Process crashed", "active")
    hub.kill()
    hub.start()
    assert shape(hub, dev)["label"] == "failed: command killed by SIGKILL"
    told = asyncio.run(word("active", "resume"))
    assert (told["session"]["id"], told["session"]["run"]) == (dev.id, 2)
    assert told["session"]["workspace"] == made["workspace"]
    eventually(lambda: dev.state == "running", 2, "the next run within 2 s")
    assert os.readlink(f"/proc/{dev.agent_pid(2)}/cwd") == tree
    assert (Path(tree) / "work.txt").read_text() == "unsaved\n"
    asyncio.run(word("stopped", "stop"))
    asyncio.run(word("active", "resume"))
    eventually(lambda: (dev.state_file()["run"], dev.state) == (3, "running"))
    ground.end(dev)


@pytest.mark.ids("E-14", "F50", "X12")
def test_a_session_whose_folder_is_gone_stays_and_is_not_started_elsewhere(ground: Ground, hub: HubProcess) -> None:
    place = ground.place / "gone"
    place.mkdir()
    dev = ground.begin_sh("sleep 1000", name="dev", place=place)

    async def scene() -> None:
        async with hub.ws() as client:
            shutil.rmtree(place)
            told = await client.until("session.status", dev.id, status="error")
            assert told["session"]["state"] == "orphaned"

    asyncio.run(scene())
    assert alive(dev.agent_pid())
    hub.ask("POST", "/api/sessions/dev/stop")
    assert refused(hub, "POST", "/api/sessions/dev/resume")[0] == 409
    assert shape(hub, dev)["status"] == "orphaned"


@pytest.mark.ids("C70-13")
def test_the_agents_view_says_whether_the_session_lives(ground: Ground, hub: HubProcess) -> None:
    live, dead = ground.begin_sh(ECHO, name="live"), ended(ground, "exit 1", name="dead")
    eventually(lambda: len(hub.ask("GET", "/api/agents")) == 2)
    eventually(lambda: hub.ask("GET", "/api/agents/dead")["state"] == "error")
    views = {name: hub.ask("GET", f"/api/agents/{name}") for name in ("live", "dead")}
    assert {name: (one["state"], one["session_alive"], one["sandbox_alive"]) for name, one in views.items()} == {
        "live": ("running", True, None),
        "dead": ("error", False, None),
    }
    assert hub.ask("GET", f"/api/agents/{live.id}") == views["live"]
    status = hub.ask("GET", "/api/status")
    assert {one["name"]: one["session_alive"] for one in status["agents"]} == {"live": True, "dead": False}
    assert status["counts"] == {"running": 1, "error": 1}
    assert refused(hub, "POST", "/api/agents/live/start") == (
        409,
        "live is already running. Use 'hitch attach live' to connect.",
    )
    assert refused(hub, "POST", "/api/agents/live/restart-session") == (409, "live is running, not stale")
    assert refused(hub, "POST", "/api/agents/dead/restart-session") == (409, "dead is error, not stale")
    assert refused(hub, "GET", "/api/agents/nobody")[0] == 404
    assert hub.ask("POST", "/api/agents/live/stop")["state"] == "stopped"
    assert hub.ask("POST", "/api/agents/live/start")["state"] == "running"
    assert live.state_file()["run"] == 2
    assert dead.state_file()["run"] == 1
    ground.end(live)


@pytest.mark.ids("E-16", "X14")
def test_the_export_has_every_session_in_one_object(ground: Ground, hub: HubProcess) -> None:
    live, old = ground.begin_sh(ECHO, name="live"), as_record(ground, hub, "archived", "put-away")
    crashed = ground.begin_sh("kill -SEGV $$", name="crashed")
    crashed.ended()
    export = hub.ask("GET", "/api/sessions/export")
    assert set(export) == {"version", "exported_at", "sessions"}
    found = {one["sessionId"]: one for one in export["sessions"]}
    assert {session: one["session"]["record"] for session, one in found.items()} == {
        live.id: "active",
        old.id: "archived",
        crashed.id: "active",
    }
    assert {one["name"]: one["status"] for one in found.values()} == {
        "live": "active",
        "put-away": "stopped",
        "crashed": "error",
    }
    told = shape(hub, crashed)
    assert found[crashed.id] == {
        "sessionId": crashed.id,
        "name": "crashed",
        "status": "error",
        "reason": "Process crashed",
        "worktreePath": str(ground.place),
        "branch": None,
        "createdAt": told["created_at"],
        "lastActivity": told["last_activity_at"],
        "exitCode": 128 + signal.SIGSEGV,
        "signal": "SIGSEGV",
        "session": told,
    }
    ground.end(live)


@pytest.mark.ids("D-5", "D-11")
def test_the_story_says_who_asked(ground: Ground, hub: HubProcess) -> None:
    with hub.http(None, **dict(sign_in(hub).ours)) as page:
        wish = {"command": ["sh", "-c", ECHO], "folder": str(ground.place), "name": "dev"}
        assert page.post("/api/sessions", json=wish).status_code == 201
        dev = Truth(ground.home, shape_of(hub, "dev")["id"])
        assert page.post("/api/sessions/dev/restart").status_code == 200
        assert page.patch("/api/sessions/dev", json={"description": "x"}).status_code == 200
    with hub.http() as script:
        assert script.post("/api/sessions/dev/stop").status_code == 200
        assert script.post("/api/sessions/dev/resume").status_code == 200
    hub.ask("POST", "/api/sessions/dev/cancel")
    told = [(line["event"], line["actor"], line.get("reason", "")) for line in dev.story() if line["actor"] != "keeper"]
    assert told == [
        ("created", "browser", ""),
        ("state", "browser", ""),
        ("run", "browser", "restart"),
        ("state", "browser", "restart"),
        ("edited", "browser", ""),
        ("run", "token test", "resume"),
        ("state", "token test", "resume"),
        ("record", "cli", "archived by the user"),
    ]
    asked = [line["reason"] for line in dev.story() if line.get("to") == "stopping"]
    assert asked == ["restart, asked by browser", "asked by token test", "cancelled, asked by cli"]
    assert "asked by browser" in ground.hitch("explain", "dev", "--all").out
    assert "by token test" in ground.hitch("explain", "dev", "--all").out


def shape_of(hub: HubProcess, name: str) -> dict[str, Any]:
    return hub.ask("GET", f"/api/sessions/{name}")


BAD = os.fsdecode(b"n\xff")


@pytest.mark.ids("X8", "E-16")
def test_what_is_not_utf8_spoils_no_surface(ground: Ground, hub: HubProcess, repo: Repo) -> None:
    place = ground.place / BAD
    place.mkdir()
    subprocess.run(["git", "init", "-q", place], check=True)
    (place / BAD).write_text("new\n")
    (place / BAD).chmod(0o755)
    dev = ground.begin("sleep", "1000", name="dev", place=place)
    program = place / "run\udcff"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    odd = ground.begin(str(program), name="odd", place=place)
    odd.ended()
    rewrite_record(dev, name=BAD, description=BAD, branch=BAD)  # as an older version made them
    ground.hitch("workspace", "create", "b\udcffranch", "--json", cwd=repo.path, check=False)
    eventually(lambda: any(row["name"] == r"n\udcff" for row in hub.ask("GET", "/api/sessions?all=true")))
    shown = str(ground.place / r"n\udcff")
    with hub.http() as client:
        for one in ("status", "agents", "sessions?all=true", "sessions/export", "workspaces"):
            assert client.get(f"/api/{one}").status_code == 200, one
        assert client.get("/metrics").status_code == 200
        for session in (dev, odd):
            assert client.get(f"/api/agents/{session.id}").status_code == 200
            for one in ("", "/story", "/runs", "/explain", "/diff", "/screen", "/recording"):
                assert client.get(f"/api/sessions/{session.id}{one}").status_code == 200, one
            assert client.get(f"/api/sessions/{session.id}").json()["workspace"]["path"] == shown
        assert client.post(f"/api/sessions/{dev.id}/resume").status_code == 409
        wish = {"command": ["true"], "folder": shown, "name": "\ud800"}
        assert client.post("/api/sessions", content=json.dumps(wish)).status_code in (415, 422)
    for words in (("status",), ("ps", "--all"), ("ps", "--json"), ("explain", dev.id), ("doctor",), ("services",)):
        assert "Traceback" not in ground.hitch(*words, check=False).err
    assert ground.ps(dev)["workspace"]["path"] == shown
    ground.end(dev)


@pytest.mark.ids("X8")
def test_a_name_that_is_not_utf8_is_refused(ground: Ground, hub: HubProcess) -> None:
    for words in (("--name", BAD), ("--description", BAD)):
        answer = ground.hitch("run", *words, "--", "cat", check=2)
        assert r"to be UTF-8, but got n\udcff" in answer.err
    assert hub.ask("GET", "/api/sessions?all=true") == []
