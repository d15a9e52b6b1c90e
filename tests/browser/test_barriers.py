"""The accessibility checker finds nothing serious, on any screen, in both colour schemes, wide and narrow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.browser.windows import Window, expect
from tests.ground import Ground
from tests.repos import Repo
from tests.support import eventually

AXE = Path(__file__).parents[2] / "ui" / "node_modules" / "axe-core" / "axe.min.js"
ECHO = 'stty -echo; while read line; do echo "<$line>"; done'
WIDE: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
EVERY_RULE, ONLY_COLOURS = "", "runOnly: ['color-contrast']"


def barriers(page: Page, screen: str, rules: str) -> list[str]:
    """What keeps people out of what is shown now, when nothing fades any more."""
    fading = "document.getAnimations().some(one => one.effect.getComputedTiming().endTime !== Infinity)"
    eventually(lambda: not page.evaluate(fading), what="the end of all fades")
    found = page.evaluate(f"axe.run(document, {{resultTypes: ['violations'], {rules}}})")
    return [
        f"{screen}: {one['id']}: {node['html'][:120]} {node['failureSummary']}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


class Walk:
    """Through every screen of a window, with what is found on the way."""

    def __init__(self, window: Window, narrow: bool) -> None:
        self.window, self.page, self.narrow = window, window.page, narrow
        self.found: list[str] = []

    def look(self, screen: str) -> None:
        self.found += barriers(self.page, screen, EVERY_RULE)
        if self.narrow:
            return  # the colours are the same
        self.page.emulate_media(color_scheme="light")
        self.found += barriers(self.page, f"{screen} in light", ONLY_COLOURS)
        self.page.emulate_media(color_scheme="dark")

    def panel(self, name: str, shows: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()
        expect(self.page.locator(shows).first).to_be_visible()
        self.look(name)

    def close_panel(self) -> None:
        self.page.get_by_role("button", name="Close the panel").click()

    def dialog(self, name: str, button: str) -> None:
        self.page.get_by_role("button", name=button, exact=True).first.click()
        expect(self.page.get_by_role("dialog")).to_be_visible()
        self.look(name)
        self.page.keyboard.press("Escape")
        expect(self.page.get_by_role("dialog")).to_have_count(0)

    def all(self) -> None:
        self.page.evaluate(AXE.read_text())
        if self.narrow:  # it was seen in the wide window
            self.window.unfold("Ended")
        expect(self.window.row("failed")).to_be_visible()
        self.look("list")
        self.dialog("new session", "New")
        self.dialog("help", "Settings and keys")
        self.window.open_session("failed")
        self.window.expect_shown("oh")
        self.look("crash")
        if self.narrow:
            self.page.get_by_role("button", name="Back to the list").click()
        self.window.open_session("live")
        self.window.expect_shown("hello")
        self.look("terminal")
        self.page.get_by_label("More for live").click()
        self.look("menu")
        self.dialog("confirm", "Stop and archive…")
        self.panel("Why", ".because")
        self.close_panel()
        self.panel("Diff", ".patch")
        self.page.get_by_role("option", name="a line").click()
        expect(self.page.locator(".comment-box")).to_be_visible()
        self.look("comment")
        self.close_panel()
        self.panel("Timeline", ".timeline li")
        self.page.get_by_role("button", name="starting → running").click()
        expect(self.page.locator(".player")).to_have_attribute("data-settled", "true")
        self.look("player")
        self.page.get_by_role("button", name="Back to now").click()
        if self.narrow:  # a phone has no room for the button: the palette leads there
            self.page.goto(f"{self.window.hub.url}/?grid=1")
            self.page.evaluate(AXE.read_text())
        else:
            self.page.get_by_role("button", name="Grid").click()
        expect(self.page.locator(".cell canvas").nth(1)).to_contain_text("other")
        self.look("grid")


def test_there_are_no_serious_barriers(ground: Ground, repo: Repo, windows: Callable[..., Window]) -> None:
    repo.write("new.txt", "a line\n")
    live = ground.begin_sh(f"echo hello; {ECHO}", name="live", place=repo.path)
    other = ground.begin_sh("echo other; exec cat", name="other")
    failed = ground.begin_sh("echo oh; exit 1", name="failed")
    assert failed.ended() == "failed"
    found = []
    for size in (WIDE, PHONE):
        window = windows(**size)
        window.page.add_init_script("localStorage.setItem('screen reader', 'on')")
        window.sign_in()
        walk = Walk(window, narrow=size is PHONE)
        walk.all()
        found += walk.found
    assert found == []
    for session in (live, other):
        ground.end(session)
