"""Prompts to sessions without a process: one rule, whoever asks."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from typing import Any

import pytest

from hitchpost.hub.client import HubRefused
from hitchpost.model import record as recs
from hitchpost.model import run as runs
from hitchpost.ops.sessions.stop import stop
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.support import eventually
from tests.tmuxes import Panes

ECHO = 'stty -echo; [ -e worked ] || { touch worked; exit 0; }; while read line; do echo "<$line>"; done'
"""An agent that has done its work the first time, and answers from then on."""


def echoing(ground: Ground, name: str = "dev") -> Truth:
    (ground.place / "worked").touch()
    return ground.begin_sh(ECHO, name=name)


def reaped(ground: Ground, session: Truth) -> None:
    stop(str(ground.home), session.id, actor="hub", by=runs.REAPER, reason="idle for too long")
    assert (session.state, session.exit()["intent"]) == ("stopped", "reaper")


def answers(session: Truth, text: str, run: int) -> None:
    eventually(lambda: f"<{text}>".encode() in session.output(run), what="the answer")


@pytest.mark.ids("D-9", "X7")
def test_send_wakes_a_session_that_was_ended_because_it_was_idle(ground: Ground) -> None:
    dev = echoing(ground)
    reaped(ground, dev)
    answer = ground.hitch("send", "dev", "hello")
    assert answer.out == "dev was started again (run 2)\nsent to dev\n"
    answers(dev, "hello", run=2)
    assert ground.hitch("send", "dev", "again").out == "sent to dev\n"
    answers(dev, "again", run=2)
    actors = [line["actor"] for line in dev.story() if line["event"] == "run"]
    assert actors == ["cli"]
    ground.end(dev)


@pytest.mark.ids("D-9")
def test_send_wakes_a_session_that_had_done_its_work_and_json_says_so(ground: Ground) -> None:
    dev = ground.begin_sh(ECHO, name="dev")
    assert dev.ended() == "completed"
    told = ground.hitch("send", "--json", "dev", "hello").json()
    assert (told["started"], told["session"]["run"], told["session"]["state"]) == (True, 2, "running")
    answers(dev, "hello", run=2)
    assert ground.hitch("send", "--json", "dev", "again").json()["started"] is False
    ground.end(dev)


def ended_as(ground: Ground, end: str, record: str, name: str) -> Truth:
    """A session that has ended in that way, with that record; its next run echoes."""
    if end in ("reaped", "stopped"):
        session = echoing(ground, name)
        stop(str(ground.home), session.id, actor="test", by=runs.REAPER if end == "reaped" else runs.USER)
    else:
        first = f"[ -e {name} ] || {{ touch {name}; exit {1 if end == 'failed' else 0}; }}"
        session = ground.begin_sh(f"{first}; {ECHO}", name=name)
    session.ended()
    value = json.loads((session.folder / "session.json").read_bytes())
    (ground.home / "new.json").write_text(json.dumps({**value, "record": record}))
    (ground.home / "new.json").rename(session.folder / "session.json")
    return session


def has_record(hub: HubProcess, session: Truth, record: str) -> bool:
    return bool(hub.ask("GET", f"/api/sessions/{session.id}")["record"] == record)


@pytest.mark.ids("D-9", "D-4", "X7")
def test_the_command_and_the_hub_treat_every_ended_session_alike(ground: Ground, hub: HubProcess) -> None:
    (ground.place / "worked").touch()
    for end, record in product(("reaped", "completed", "stopped", "failed"), recs.RECORD_TRANSITIONS):
        first, second = (ended_as(ground, end, record, f"{end}-{record}-{who}") for who in ("hub", "cli"))
        eventually(partial(has_record, hub, first, record), what="the hub to see its record")
        try:
            told = hub.ask("POST", f"/api/sessions/{first.id}/prompt", {"text": "x"})["started"], ""
        except HubRefused as error:
            told = False, str(error).replace("-hub", "-cli").replace(first.id, second.id)
        answer = ground.hitch("send", "--json", second.id, "x", check=False)
        # what it waits for is told, too, when that takes long
        said = answer.code == 0 and answer.json()["started"], answer.err.rstrip().rpartition("hitch: ")[2]
        said = said if answer.code else (said[0], "")
        assert told == said, (end, record)
        woken = record == recs.ACTIVE and end in ("reaped", "completed")
        assert told[0] is woken, (end, record)
        for session in (first, second):
            assert session.state_file()["run"] == 1 + woken
            if woken:
                answers(session, "x", run=2)
                ground.end(session)


@pytest.mark.ids("D-9")
def test_a_text_that_is_too_long_wakes_nobody(ground: Ground) -> None:
    dev = echoing(ground)
    reaped(ground, dev)
    answer = ground.hitch("send", "dev", "-", stdin="x" * 600_000, check=4)
    assert "the text has 600000 bytes" in answer.err
    assert (dev.state, dev.state_file()["run"]) == ("stopped", 1)


@pytest.mark.ids("D-9", "F42")
def test_prompts_at_the_same_moment_start_one_run_and_all_arrive(ground: Ground) -> None:
    dev = echoing(ground)
    reaped(ground, dev)
    with ThreadPoolExecutor(3) as pool:
        told: list[Any] = list(pool.map(lambda n: ground.hitch("send", "--json", "dev", f"text {n}").json(), range(3)))
    assert sorted(one["started"] for one in told) == [False, False, True]
    for number in range(3):
        answers(dev, f"text {number}", run=2)
    assert dev.state_file()["run"] == 2
    ground.end(dev)


@pytest.mark.ids("D-9")
def test_reaping_in_tmux_leaves_the_pane_to_the_user_and_the_next_prompt_goes_on_in_it(panes: Panes) -> None:
    ground = panes.ground
    dev = panes.sh('stty -echo; while read line; do echo "<$line>"; done')
    server = panes.server(dev)
    reaped(ground, dev)
    assert panes.server(dev) == server
    ground.hitch("send", dev.id, "hello")
    answers(dev, "hello", run=2)
    assert panes.server(dev) == server
