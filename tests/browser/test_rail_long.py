"""Three hundred sessions: what nobody scrolls to is not drawn, and a change is. How fast, ``script/bench`` says."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from bench.ps import write_sessions
from tests.browser.windows import Window, expect
from tests.ground import Ground
from tests.hubs import HubProcess

COUNT = 300
STEP = 60


def test_of_three_hundred_sessions_only_what_is_looked_at_is_drawn(
    ground: Ground, hub: HubProcess, windows: Callable[..., Window]
) -> None:
    write_sessions(SimpleNamespace(home=str(ground.home), work=str(ground.place)), 1, COUNT)  # type: ignore[arg-type]
    hub.stop()
    hub.start()
    window = windows()
    page = window.page
    window.sign_in()
    expect(page.locator(".badge")).to_have_text(str(COUNT))
    finished = window.part("Finished")
    expect(finished.locator(".row")).to_have_count(STEP)
    finished.locator(".more").scroll_into_view_if_needed()
    expect(finished.locator(".row")).to_have_count(2 * STEP)
    expect(window.part("Ended").locator(".row")).to_have_count(0)
    page.locator(".rows").evaluate("list => list.scrollTo(0, 0)")
    shown = finished.locator(".row").first.get_attribute("data-session")
    hub.ask("PATCH", f"/api/sessions/{shown}", {"name": "renamed"})
    expect(window.row("renamed")).to_be_visible()
