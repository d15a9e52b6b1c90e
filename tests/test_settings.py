"""What the environment says about the settings."""

from __future__ import annotations

import os

import pytest

from hitchpost import settings
from hitchpost.errors import BadSettings
from tests.ground import Ground
from tests.hubs import HubProcess

NAME = "AGENT_SESSION_IDLE_TIMEOUT"


@pytest.mark.ids("D-9")
@pytest.mark.parametrize(("text", "minutes"), [("45", 45), ("0.5", 0.5), ("0", 0), ("", 7), (" ", 7), (None, 7)])
def test_the_idle_timeout_of_the_environment_counts_more_than_the_file(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, text: str | None, minutes: float
) -> None:
    ground.configure("reap_idle_minutes = 7")
    monkeypatch.delenv(NAME, raising=False)
    if text is not None:
        monkeypatch.setenv(NAME, text)
    assert settings.load().reap_idle_minutes == minutes
    os.unlink(settings.config_path())
    assert settings.load().reap_idle_minutes == (30 if minutes == 7 else minutes)


@pytest.mark.ids("D-9")
@pytest.mark.parametrize("text", ["soon", "30m", "-1", "nan", "inf", "1e99"])
def test_an_idle_timeout_that_is_no_time_is_named(home: object, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(NAME, text)
    with pytest.raises(BadSettings, match=f"the environment: expected {NAME} to be a number from 0 to 527040, but got"):
        settings.load()


@pytest.mark.ids("D-9")
def test_a_hub_reaps_after_the_time_in_its_environment(ground: Ground, hub: HubProcess) -> None:
    hub.stop()
    ground.configure("reap_every_minutes = 0.002")
    dev = ground.begin_sh("exec sleep 1000")
    hub.start(AGENT_SESSION_IDLE_TIMEOUT="0.005")
    assert dev.ended() == "stopped"
    assert dev.exit()["intent"] == "reaper"
