"""CR-070 in the page: a container that runs without its agent, and the two ways out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.boxes import Boxed
from tests.browser.windows import Window, colour, expect
from tests.hubs import HubProcess
from tests.support import eventually

STALE = "stale (container running, session dead)"
GREY = "rgb(111, 121, 137)"
YELLOW = "rgb(226, 192, 68)"


@pytest.mark.ids("C70-2", "C70-4", "C70-8")
def test_a_stale_session_offers_its_owner_a_restart_and_a_teardown(
    boxed: Boxed, hub: HubProcess, window: Window, windows: Callable[..., Window]
):
    dev = boxed.run("sh", "-c", "echo ready; read line; exit 1")
    page = window.page
    window.open_session("dev")
    window.expect_shown("ready")
    window.type("leave")
    expect(window.label("dev")).to_have_text(STALE)
    assert colour(window.row("dev").locator(".dot")) == YELLOW
    expect(page.locator(".end-bar")).to_contain_text(STALE)
    looks = windows()
    looks.sign_in(role="viewer")
    looks.open_session("dev")
    expect(looks.page.locator(".end-bar")).to_have_text(STALE)
    expect(looks.page.get_by_role("button", name="Restart session")).to_have_count(0)
    expect(looks.page.get_by_role("button", name="Teardown")).to_have_count(0)
    page.get_by_role("button", name="Restart session").click()
    expect(window.label("dev")).to_have_text("running")
    window.type("leave again")
    expect(window.label("dev")).to_have_text(STALE)
    page.get_by_role("button", name="Teardown").click()
    page.get_by_role("button", name="Tear down").click()
    expect(window.label("dev")).to_have_text("stopped")
    assert colour(window.row("dev").locator(".dot")) == GREY
    expect(page.locator(".end-bar")).to_have_text("Process stopped. Click to restart.")
    eventually(lambda: boxed.engine.containers() == [], what="the end of the container")
    assert dev.state == "failed"
