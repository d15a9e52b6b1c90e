"""``hitch ps``: the table of ADR 31 and the one JSON shape."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from hitchpost.store.index import INDEX
from hitchpost.system.shortpath import ShortPath
from tests.cli.live import live
from tests.cli.places import HOSTILE, SHAPE, cells, is_harmless, new_session
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.support import Hitch, eventually, halt

HEADER = "SESSION  NAME  DESCRIPTION  AGENT  WORKSPACE  STATUS  IN STATUS  TOTAL TIME"


@pytest.mark.ids("A31-14")
def test_without_sessions_only_the_header_is_printed_and_no_home_is_made(hitch: Hitch, home: Path) -> None:
    home.rmdir()
    assert hitch("ps").out == HEADER + "\n"
    assert hitch("ps", "--json").json() == []
    assert not home.exists()
    home.mkdir(mode=0o700)


@pytest.mark.ids("D-7")
@pytest.mark.parametrize("with_hub", [False, True])
def test_sessions_are_listed_by_their_records(ground: Ground, request: pytest.FixtureRequest, with_hub: bool) -> None:
    names = ("active", "suspended", "archived", "error")
    sessions = {name: new_session(ground.home, ground.place, name=name) for name in names}
    for name, session in sessions.items():
        path = ground.home / "sessions" / session / "session.json"
        path.with_name("new").write_text(json.dumps({**json.loads(path.read_bytes()), "record": name}))
        path.with_name("new").rename(path)
    if with_hub:
        hub: HubProcess = request.getfixturevalue("hub")
        for query, found in (("?record=error,archived", names[2:]), ("?record=active&record=error", names[::3])):
            assert [row["name"] for row in hub.ask("GET", f"/api/sessions{query}")] == list(found)
        with hub.http() as client:
            refused = client.get("/api/sessions?record=done")
        assert (refused.status_code, "active|suspended" in refused.json()["error"]["message"]) == (422, True)

    def listed(*words: str) -> list[str]:
        rows = ground.hitch("ps", *words, "--json").json()
        lines = ground.hitch("ps", *words).out.splitlines()[1:]
        assert [row["name"] for row in rows] == [cells(line)[1] for line in lines]
        return [row["name"] for row in rows]

    assert listed() == list(names[:2])
    assert listed("--all") == list(names)
    for name in names:
        assert listed("--record", name) == [name]
        assert listed(f"--record={name}") == [name]
    assert listed("--record", "archived", "--record", "active") == ["active", "archived"]
    assert listed("--record", "archived,error") == ["archived", "error"]
    refused_here = ground.hitch("ps", "--record", "done", check=2).err
    assert "expected a record to be one of active, suspended, archived, error, but got 'done'" in refused_here


@pytest.mark.ids("D-7")
def test_records_are_completed_also_behind_a_comma(hitch: Hitch) -> None:
    def offered(begun: str) -> list[str]:
        env = {"_HITCH_COMPLETE": "bash_complete", "COMP_WORDS": f"hitch ps --record {begun}", "COMP_CWORD": "3"}
        return [line.partition(",")[2] for line in hitch(env=env).out.splitlines()]

    assert offered("a") == ["active", "archived"]
    assert offered("archived,a") == ["archived,active"]


@pytest.mark.ids("A31-14")
def test_the_columns_are_those_of_adr_31(ground: Ground) -> None:
    ground.hitch("run", "--name", "dev", "--description", "fix it", "--workspace", ground.place, "--", "sleep", "1000")
    header, row = ground.hitch("ps").out.splitlines()
    assert cells(header) == [
        "SESSION",
        "NAME",
        "DESCRIPTION",
        "AGENT",
        "WORKSPACE",
        "STATUS",
        "IN STATUS",
        "TOTAL TIME",
    ]
    found = cells(row)
    assert found[:6] == ["1", "dev", "fix it", "sleep", "place", "running"]
    assert all(re.fullmatch(r"\d+s", duration) for duration in found[6:])
    assert [header.index(word) for word in ("NAME", "WORKSPACE", "STATUS")] == [
        row.index(word) for word in ("dev", "place", "running")
    ]
    ground.hitch("stop", "--now", "dev")


def test_json_is_a_list_of_the_one_shape(ground: Ground) -> None:
    session = ground.sh("echo out; exit 3", name="dev")
    session.ended()
    (row,) = ground.hitch("ps", "--json").json()
    assert set(row) == SHAPE
    assert (row["state"], row["status"], row["label"]) == (
        "failed",
        "failed",
        "failed: command exited with code 3",
    )
    assert set(row["exit"]) == {"code", "signal", "core_dumped", "intent", "ended_at", "ended_at_known"}
    assert (row["exit"]["code"], row["exit"]["signal"], row["exit"]["intent"]) == (3, None, None)
    moments = [row[key] for key in ("created_at", "started_at", "last_activity_at", "state_changed_at")]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", moment) for moment in moments)
    assert row["created_at"] < row["started_at"] < row["state_changed_at"]


def test_the_second_look_at_an_ended_session_says_the_same(ground: Ground) -> None:
    session = ground.sh("exit 3")
    session.ended()
    first, second = (ground.hitch("ps", "--json").out for _ in range(2))
    assert first == second


def test_archived_sessions_are_shown_only_with_all(ground: Ground) -> None:
    new_session(ground.home, ground.place, name="kept")
    new_session(ground.home, ground.place, name="old")
    ground.hitch("archive", "old")
    assert [row["name"] for row in ground.hitch("ps", "--json").json()] == ["kept"]
    for flag in ("--all", "-a"):
        assert [row["name"] for row in ground.hitch("ps", flag, "--json").json()] == ["kept", "old"]
    assert "archived" in ground.hitch("ps", "--all").out
    assert "old" not in ground.hitch("ps").out


@pytest.mark.ids("A31-14")
def test_total_time_is_that_of_all_runs(ground: Ground) -> None:
    session = ground.run("sleep", "1000", name="dev")
    ground.hitch("stop", "--now", "dev")
    record = json.loads((session.folder / "session.json").read_text())
    (session.folder / "session.json").write_text(json.dumps({**record, "earlier_runs_s": 3661.0}))
    (row,) = ground.hitch("ps").out.splitlines()[1:]
    assert cells(row)[-1] == "1h 1m"
    ground.hitch("restart", "dev")
    (row,) = ground.hitch("ps").out.splitlines()[1:]
    assert cells(row)[-1] == "1h 1m"
    ground.hitch("stop", "--now", "dev")
    assert json.loads((session.folder / "session.json").read_text())["earlier_runs_s"] > 3661.0


@pytest.mark.ids("S8")
def test_hostile_names_and_descriptions_cannot_change_another_row(ground: Ground) -> None:
    new_session(ground.home, ground.place, name=HOSTILE, description=HOSTILE)
    new_session(ground.home, ground.place, name="dev")
    out = ground.hitch("ps").out
    assert is_harmless(out)
    assert len(out.splitlines()) == 3
    assert "a\\x1b[2J\\x1b]0;x\\x07\\x0aroot" in out
    assert ground.hitch("ps", "--json").json()[0]["name"] == HOSTILE


@pytest.mark.ids("S8")
@pytest.mark.parametrize("verb", ["stop", "restart", "archive", "explain"])
def test_hostile_names_are_escaped_by_every_command_that_prints_them(ground: Ground, verb: str) -> None:
    session = new_session(ground.home, ground.place, name=HOSTILE)
    answer = ground.hitch(verb, session, check=False)
    assert is_harmless(answer.out)
    assert is_harmless(answer.err)
    assert answer.out + answer.err
    ground.hitch("rm", "--force", session)


@pytest.mark.ids("S8")
def test_hostile_names_are_escaped_in_errors(hitch: Hitch) -> None:
    answer = hitch("stop", HOSTILE, check=3)
    assert is_harmless(answer.err)
    assert len(answer.err.splitlines()) == 1


def test_wide_letters_keep_the_columns_aligned(ground: Ground) -> None:
    new_session(ground.home, ground.place, name="日本")
    new_session(ground.home, ground.place, name="four")
    first, second = ground.hitch("ps").out.splitlines()[1:]
    assert first.index("true") == second.index("true") - 2


def test_a_long_description_is_shortened_in_the_table_only(ground: Ground) -> None:
    new_session(ground.home, ground.place, name="dev", description="x" * 300)
    assert "x" * 39 + "…" in ground.hitch("ps").out
    assert ground.hitch("ps", "--json").json()[0]["description"] == "x" * 300


@pytest.mark.ids("F36")
@pytest.mark.parametrize("content", [b"", b"{", b"\x00\xff" * 100, b"[]", b'{"state": 7}', b'{"schema": "x"}'])
def test_a_state_file_full_of_garbage_is_told_from_the_story(ground: Ground, content: bytes) -> None:
    session = ground.sh("exit 3", name="dev")
    session.ended()
    new_session(ground.home, ground.place, name="other")
    (session.folder / "state.json").unlink()
    (session.folder / "state.json").write_bytes(content)
    rows = {row["name"]: row for row in ground.hitch("ps", "--json").json()}
    assert rows["dev"]["label"] == "failed: command exited with code 3 (unreadable file, see hitch doctor)"
    assert rows["other"]["status"] == "created"
    assert (session.folder / "state.json").read_bytes() == content


@pytest.mark.ids("F36")
@pytest.mark.parametrize("kind", ["garbage", "link", "folder", "missing"])
def test_a_record_that_cannot_be_read_hides_no_session(ground: Ground, kind: str) -> None:
    session = ground.home / "sessions" / new_session(ground.home, ground.place, name="dev")
    new_session(ground.home, ground.place, name="other")
    (session / "session.json").unlink()
    if kind == "garbage":
        (session / "session.json").write_bytes(os.urandom(500))
    elif kind == "link":
        (session / "session.json").symlink_to("/etc/passwd")
    elif kind == "folder":
        (session / "session.json").mkdir()
    assert {row["name"] for row in ground.hitch("ps", "--json").json()} == {"dev", "other"}
    shutil.rmtree(session)


@pytest.mark.ids("F34")
def test_a_session_of_a_newer_version_is_listed_as_unknown(ground: Ground) -> None:
    session = ground.home / "sessions" / new_session(ground.home, ground.place, name="dev")
    state = json.loads((session / "state.json").read_text())
    (session / "state.json").write_text(json.dumps({**state, "schema": 99}))
    (row,) = ground.hitch("ps", "--json").json()
    assert set(row) == SHAPE
    assert (row["status"], row["label"]) == ("unknown", "unknown (written by a newer hitchpost)")


def test_a_session_of_an_unknown_runtime_does_not_stop_the_table(ground: Ground) -> None:
    session = ground.run("sleep", "1000", name="dev")
    new_session(ground.home, ground.place, name="other")
    record = (session.folder / "session.json").read_text()
    (session.folder / "session.json").write_text(record.replace('"runtime": "local"', '"runtime": "moon"'))
    rows = {row["name"]: row["label"] for row in ground.hitch("ps", "--json").json()}
    assert rows == {"dev": "unknown (see hitch doctor)", "other": "created"}
    (session.folder / "session.json").write_text(record)
    ground.hitch("stop", "--now", "dev")


@pytest.mark.ids("F17")
def test_a_lost_keeper_is_told_at_once_and_nothing_is_written(ground: Ground) -> None:
    session = ground.run("sleep", "1000", name="dev")
    session.kill_keeper()
    assert ground.ps(session)["label"] == "failed: keeper lost"
    assert session.state == "running"


@pytest.mark.ids("F10")
def test_an_agent_that_a_signal_stopped_is_shown_so(ground: Ground) -> None:
    session = ground.run("sleep", "1000", name="dev")
    halt(session.agent_pid())
    eventually(lambda: ground.ps(session)["label"] == "running (process stopped)")
    ground.hitch("stop", "--now", "dev")


@pytest.mark.ids("A31-14")
def test_an_idle_session_is_running_with_an_attribute(ground: Ground) -> None:
    session = ground.run("sleep", "1000", name="dev")
    record = json.loads((session.folder / "session.json").read_text())
    (session.folder / "session.json").write_text(json.dumps({**record, "idle_after_s": 0.0}))
    row = ground.ps(session)
    assert (row["state"], row["status"]) == ("running", "running")
    assert re.fullmatch(r"running \(idle \d+s\)", row["label"])
    ground.hitch("stop", "--now", "dev")


def test_an_index_that_is_garbage_is_rebuilt(ground: Ground) -> None:
    new_session(ground.home, ground.place, name="dev")
    expected = ground.hitch("ps", "--json").out
    stored = (ground.home / INDEX).read_bytes()
    middle = len(stored) // 2
    cut = (stored[:middle], stored[: middle - 1] + b"?" + stored[middle:], stored + b"\nmore", stored[middle:])
    for content in (b"", b"\x00\xff", b"[]", b"hitchpost index\n", *cut):
        (ground.home / INDEX).write_bytes(content)
        assert ground.hitch("ps", "--json").out == expected


def test_a_reader_that_goes_away_is_no_error(ground: Ground) -> None:
    new_session(ground.home, ground.place, name="dev")
    gone = Hitch(("sh", "-c", '"$@" | true', "sh", *ground.hitch.command))
    answer = gone("ps")
    assert answer.err == ""


def test_an_option_that_ps_does_not_know_is_a_usage_error(hitch: Hitch) -> None:
    assert "No such option" in hitch("ps", "--nonsense", check=2).err
    assert "unexpected extra argument" in hitch("ps", "word", check=2).err


@contextmanager
def without(hub: HubProcess) -> Iterator[None]:
    """Hide the hub from the command."""
    socket, away = f"{hub.home}/hub.sock", f"{hub.home}/away"
    os.rename(socket, away)
    try:
        yield
    finally:
        os.rename(away, socket)


def on_terminal(*words: str) -> str:
    with live("ps", *words, terminal=(80, 24)) as command:
        assert command.code() == 0
        return command.out().decode()


@pytest.mark.ids("S8")
def test_every_way_to_list_is_the_same_with_and_without_a_hub(ground: Ground, hub: HubProcess) -> None:
    for name, description in (("日本", "…" * 50), ("four", "日" * 50), (HOSTILE, HOSTILE), ("e\u0301clair", "x" * 41)):
        new_session(ground.home, ground.place, name=name, description=description)
    for name in ("old", "older"):  # both have the same number
        ground.hitch("archive", new_session(ground.home, ground.place, name=name))
    ground.begin_sh("exit 3", name="failed").ended()
    running = ground.begin("sleep", "1000", name="running")
    newer = ground.home / "sessions" / new_session(ground.home, ground.place, name="newer") / "state.json"
    newer.with_name("new").write_text(json.dumps({**json.loads(newer.read_text()), "schema": 99}))
    newer.with_name("new").rename(newer)
    expected = {"created", "failed", "running", "archived", "unknown"}
    eventually(lambda: {row["status"] for row in hub.ask("GET", "/api/sessions?all=true")} == expected)
    assert len(hub.ask("GET", "/api/sessions?all=true")) == 9

    def same(listed: Callable[[], str]) -> str:
        """A second may end between the two."""

        def both() -> str | None:
            told = listed()
            with without(hub):
                return told if listed() == told else None

        return eventually(both, 60, what="the same")

    for words, count in (((), 7), (("--all",), 9)):
        table = same(lambda words=words: ground.hitch("ps", *words).out)  # type: ignore[misc]
        assert is_harmless(table)
        assert len(table.splitlines()) == 1 + count
        painted = same(lambda words=words: on_terminal(*words))  # type: ignore[misc]
        assert "\x1b[31mfailed: command exited with code 3 " in painted
        assert "\x1b[32mrunning" in painted
        shapes = same(lambda words=words: ground.hitch("ps", "--json", *words).out)  # type: ignore[misc]
        assert len(json.loads(shapes)) == count
    ground.end(running)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nSESSION",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nSESSION",
        b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\nSESSION",
        b"HTTP/1.1 200 OK\r\n\r\nSESSION",
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 7\r\n\r\nSESSION",
    ],
)
def test_a_hub_that_gives_no_whole_answer_is_as_good_as_none(ground: Ground, answer: bytes) -> None:
    new_session(ground.home, ground.place, name="dev")

    def serve(listening: socket.socket) -> None:
        asked, _ = listening.accept()
        with asked:
            asked.recv(4096)
            asked.sendall(answer)

    with ShortPath(str(ground.home), "hub.sock") as path, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        with ThreadPoolExecutor(1) as pool:
            served = pool.submit(serve, listening)
            header, row = ground.hitch("ps").out.splitlines()
            served.result(20)
    assert header.split() == HEADER.split()
    assert cells(row)[:2] == ["1", "dev"]


def test_beside_a_hub_nothing_that_reads_sessions_is_imported(ground: Ground, hub: HubProcess) -> None:
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "hitchpost", "ps"],
        env=Hitch.environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    imported = {line.rpartition("|")[2].strip() for line in told.splitlines()}
    ours = {name for name in imported if name.startswith("hitchpost.")}
    cli = {"hitchpost.cli", "hitchpost.cli.main", "hitchpost.cli.ps", "hitchpost.__main__"}
    light = {"hitchpost.cli.failing", "hitchpost.system.descriptors", "hitchpost.errors", "hitchpost.system.shortpath"}
    assert ours - cli - light == {
        "hitchpost.model",
        "hitchpost.model.record",
        "hitchpost.store",
        "hitchpost.store.home",
        "hitchpost.system",
    }
    assert imported.isdisjoint({"json", "socket", "datetime", "click"})
