"""F16: a session that crashes again and again starts again only as often as the policy allows."""

from __future__ import annotations

import pytest

from tests.ground import Ground
from tests.hubs import HubProcess, hub_of
from tests.support import eventually


@pytest.mark.ids("F16")
def test_F16_on_failure_restarts_at_most_five_times_in_ten_seconds_then_waits(ground: Ground) -> None:
    ground.configure('restart = "on-failure"')
    with hub_of(ground) as hub:
        dev = ground.begin_sh("exit 1", name="dev")
        eventually(lambda: dev.state_file()["run"] == 6 and dev.state == "failed", what="five restarts")
        eventually(lambda: "so the next waits" in hub.log(), what="the back-off")
        assert dev.state_file()["run"] == 6
        ended = ground.begin_sh("exit 0", name="well")
        assert ended.ended() == "completed"
        stopped = ground.begin_sh("sleep 1000", name="asked")
        ground.end(stopped)
        assert (ended.state_file()["run"], stopped.state_file()["run"]) == (1, 1)


@pytest.mark.ids("E-8")
def test_by_default_nothing_starts_again_by_itself(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("exit 1", name="dev")
    eventually(lambda: hub.ask("GET", "/api/sessions/dev")["state"] == "failed")
    assert dev.state_file()["run"] == 1
    assert "restart decided" not in hub.log()


def test_metrics_tell_what_there_is(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("sleep 1000", name="dev")
    ground.begin_sh("exit 3", name="dead").ended()

    def text() -> str:
        with hub.http("viewer") as client:
            return client.get("/metrics").text

    eventually(lambda: 'hitchpost_sessions{status="running"} 1.0' in text())
    eventually(lambda: 'hitchpost_runs_ended_total{state="failed"} 1.0' in text())
    ground.end(dev)
