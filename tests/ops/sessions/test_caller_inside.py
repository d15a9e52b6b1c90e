"""Commands that an agent gives about its own session, and a hub that it starts."""

from __future__ import annotations

import os
import shlex
import sys

import pytest

from hitchpost.hub import client as hub_client
from hitchpost.store import records
from tests.ground import Ground, Truth, alive
from tests.support import eventually

HITCH = shlex.join([sys.executable, "-m", "hitchpost"])


@pytest.fixture(params=["cgroup", "subreaper"])
def tier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "subreaper":
        monkeypatch.setenv("HITCHPOST_TIER", "subreaper")


def begun(ground: Ground, command: str) -> Truth:
    """A session whose agent gives the command."""
    script = f"{command} > said.tmp 2>&1; echo $? >> said.tmp; mv said.tmp said; exec sleep 1000"
    return ground.begin_sh(script, name="dev")


@pytest.mark.parametrize("inherited", ["", f"env -i HITCHPOST_HOME=$HITCHPOST_HOME PATH={os.defpath} "])
@pytest.mark.parametrize("deed", ["restart", "rm --force", "cancel"])
def test_what_would_end_the_command_halfway_is_refused_before_anything_is_done(
    ground: Ground, deed: str, inherited: str
) -> None:
    yes = " --yes" if deed == "cancel" else ""
    session = begun(ground, f"{inherited}{HITCH} {deed}{yes} dev")
    said = ground.said("said")
    assert said == (
        "hitch: this command runs inside dev and would be ended with it, halfway through; "
        f"in a terminal outside it: hitch {deed} dev\n4\n"
    )
    assert (session.state, session.state_file()["run"]) == ("running", 1)
    assert alive(session.agent_pid())
    ground.hitch(*f"{deed}{yes}".split(), "dev")
    if deed == "rm --force":
        assert records.ids(str(ground.home)) == []
    else:
        assert session.state_file()["run"] == (2 if deed == "restart" else 1)


def test_an_agent_may_stop_its_own_session(ground: Ground, tier: None) -> None:
    session = begun(ground, f"{HITCH} stop dev")
    assert session.ended() == "stopped"
    assert ground.processes() == []


def test_a_hub_that_is_started_inside_a_session_outlives_it(ground: Ground, tier: None) -> None:
    session = begun(ground, f"{HITCH} up --port 0 --json")
    assert ground.said("said").endswith("\n0\n")
    pid = hub_client.ask(str(ground.home), "GET", "/api/health")["pid"]
    try:
        ground.end(session)
        assert hub_client.ask(str(ground.home), "GET", "/api/health")["pid"] == pid
        assert session.exit()["survivors"] == 0
        hub_client.ask(str(ground.home), "POST", f"/api/sessions/{session.id}/restart")
        assert session.state_file()["run"] == 2
        ground.end(session)
        assert alive(pid)
    finally:
        ground.hitch("down")
    eventually(lambda: ground.processes() == [], what="the end of the hub")
