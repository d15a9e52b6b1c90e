"""The page in a hand: fingers scroll and pinch, keys are where they are needed, and what is asked is near the thumb."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.agents.conftest import agent_home, model
from tests.agents.driving import Driven
from tests.agents.homes import AgentHome
from tests.browser.test_barriers import AXE, EVERY_RULE, PHONE, barriers
from tests.browser.windows import Window, box, expect, style
from tests.ground import Ground
from tests.support import eventually
from tests.watched import say

__all__ = ["agent_home", "model"]
SIDEWAYS: dict[str, Any] = {**PHONE, "viewport": {"width": 844, "height": 390}}
KEYS = ("1", "2", "3", "y", "n", "Esc", "Shift Tab", "Control C", "PgUp", "PgDn")
TYPED = "123yn^[^[[Z"


class Fingers:
    """Touches as the browser's own input has them, not events of a script."""

    def __init__(self, page: Page) -> None:
        self.page, self.devtools = page, page.context.new_cdp_session(page)

    def _send(self, kind: str, *points: tuple[float, float]) -> None:
        touches = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        self.devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    def swipe(self, x: float, begin: float, end: float, steps: int = 10) -> None:
        """It stands still at the end: nothing glides on."""
        self._send("touchStart", (x, begin))
        for step in range(1, steps + 1):
            self._send("touchMove", (x, begin + (end - begin) * step / steps))
        self._send("touchMove", (x, end))
        self._send("touchEnd")

    def pinch(self, x: float, y: float, begin: float, end: float, steps: int = 10) -> None:
        self._send("touchStart", (x, y - begin / 2), (x, y + begin / 2))
        for step in range(1, steps + 1):
            half = (begin + (end - begin) * step / steps) / 2
            self._send("touchMove", (x, y - half), (x, y + half))
        self._send("touchEnd")


def shown_rows(window: Window) -> list[int]:
    """The numbers of the rows that can be seen now."""
    return [int(line.split("-")[1]) for line in window.lines() if line.startswith("row-")]


@pytest.mark.parametrize("size", [PHONE, SIDEWAYS], ids=["upright", "sideways"])
def test_a_finger_scrolls_the_history(ground: Ground, windows: Callable[..., Window], size: dict[str, Any]) -> None:
    dev = ground.begin_sh("for n in $(seq 300); do echo row-$n; done; exec cat", name="dev")
    window = windows(**size, reduced_motion="reduce")
    window.sign_in()
    window.open_session("dev")
    window.expect_shown("row-300")
    place = box(window.page.locator(".pane .terminal-box"))
    fingers, middle, height = Fingers(window.page), place["x"] + 100, place["height"]
    before = shown_rows(window)[0]
    fingers.swipe(middle, place["y"] + 10, place["y"] + height - 10)
    eventually(lambda: shown_rows(window)[0] < before - 3, what="earlier rows")
    # what was under the finger is still there
    line = box(window.rows.locator("> div").first)["height"]
    assert abs((before - shown_rows(window)[0]) - (height - 20) / line) < 2
    earlier = shown_rows(window)[0]
    fingers.swipe(middle, place["y"] + height - 10, place["y"] + 10)
    eventually(lambda: shown_rows(window)[0] > earlier, what="later rows")
    ground.end(dev)


def test_a_program_that_has_the_screen_is_scrolled_by_a_finger(ground: Ground, windows: Callable[..., Window]) -> None:
    text = ground.place / "text"
    text.write_text("".join(f"row-{number}\n" for number in range(1, 301)))
    less = ground.begin("less", str(text), name="less")
    mouse = ground.begin_sh("stty raw -echo; printf '\\033[?1000h\\033[?1006hready'; exec cat -v", name="mouse")
    window = windows(**PHONE, reduced_motion="reduce")
    window.sign_in()
    window.open_session("less")
    window.expect_shown("row-1")
    place = box(window.page.locator(".pane .terminal-box"))
    fingers = Fingers(window.page)
    fingers.swipe(place["x"] + 100, place["y"] + 300, place["y"] + 100)
    eventually(lambda: shown_rows(window)[0] > 5, what="later rows")
    window.page.get_by_role("button", name="Back to the list").tap()
    window.open_session("mouse")
    window.expect_shown("ready")
    fingers.swipe(place["x"] + 100, place["y"] + 300, place["y"] + 200)
    window.expect_shown("^[[<65;")
    for session in (less, mouse):
        ground.end(session)


def test_two_fingers_and_two_keys_change_the_letters(ground: Ground, windows: Callable[..., Window]) -> None:
    dev = ground.begin_sh("echo ready; exec cat", name="dev")
    window = windows(**PHONE)
    window.sign_in()
    window.open_session("dev")
    window.expect_shown("ready")
    assert style(window.rows, "font-size") == "12px"
    place = box(window.page.locator(".pane .terminal-box"))
    Fingers(window.page).pinch(place["x"] + 150, place["y"] + 250, 100, 150)
    eventually(lambda: style(window.rows, "font-size") == "18px", what="larger letters")
    assert window.page.evaluate("visualViewport.scale") == 1
    window.page.get_by_role("button", name="A− smaller letters").tap()
    eventually(lambda: style(window.rows, "font-size") == "17px", what="smaller letters")
    ground.end(dev)


@pytest.mark.parametrize("size", [PHONE, SIDEWAYS], ids=["upright", "sideways"])
def test_fingers_have_keys_and_a_mouse_has_none(
    ground: Ground, windows: Callable[..., Window], size: dict[str, Any]
) -> None:
    dev = ground.begin_sh("stty -isig -icanon -echo; for n in $(seq 99); do echo row-$n; done; exec cat -v", name="dev")
    window = windows(**size)
    window.sign_in()
    window.open_session("dev")
    window.expect_shown("row-99")
    keys = window.page.get_by_role("toolbar", name="Keys")
    last = shown_rows(window)[-1]
    for key in KEYS:
        keys.get_by_role("button", name=key, exact=True).tap()
        if key == "PgUp":
            eventually(lambda: shown_rows(window)[-1] < last, what="the page before")
    window.expect_shown(f"{TYPED}^C")
    for button in keys.get_by_role("button").all():
        assert box(button)["height"] >= 32
        assert box(button)["width"] >= 24
    assert window.page.evaluate("document.documentElement.scrollWidth") == size["viewport"]["width"]

    narrow = windows(viewport={"width": 390, "height": 844})
    narrow.sign_in()
    narrow.open_session("dev")
    expect(narrow.page.get_by_role("toolbar", name="Keys")).to_be_hidden()
    ground.end(dev)


def test_the_list_says_the_tasks_on_a_phone_too(ground: Ground, windows: Callable[..., Window]) -> None:
    ground.hitch("run", "--name", "dev", "--description", "Keep it warm", "--", "cat")
    window = windows(**PHONE)
    window.sign_in()
    expect(window.row("dev").locator(".task")).to_be_visible()
    ground.hitch("stop", "dev")


def test_a_bar_at_the_bottom_leads_everywhere(ground: Ground, windows: Callable[..., Window]) -> None:
    asks = [ground.begin_sh(f"{say('idle')}exec cat", name=name) for name in ("one", "two")]
    busy = ground.begin_sh("echo busy; exec cat", name="busy")
    window = windows(**PHONE)
    page = window.page
    window.sign_in()
    bar = page.get_by_role("navigation", name="Go to")
    place = box(bar)
    assert place["y"] + place["height"] == 844
    expect(bar.get_by_role("button", name="Needs you")).to_have_text("Needs you2")
    assert style(bar.get_by_role("button", name="Needs you"), "margin") == "0px"
    # only the place that is shown looks chosen
    assert style(bar.get_by_role("button", name="Needs you"), "color") == style(
        bar.get_by_role("button", name="New"), "color"
    )
    seen = set()
    for _ in asks:
        bar.get_by_role("button", name="Needs you").tap()
        seen.add(page.locator(".toolbar h2").inner_text())
    assert seen == {"one", "two"}
    # one line
    assert box(page.locator(".toolbar"))["height"] <= 44
    expect(page.locator(".tabs")).to_be_hidden()
    page.evaluate(AXE.read_text())
    assert barriers(page, "phone", EVERY_RULE) == []
    bar.get_by_role("button", name="List").tap()
    expect(window.row("busy")).to_be_visible()
    bar.get_by_role("button", name="New").tap()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    # a setting is one line
    page.get_by_role("button", name="Settings and keys").tap()
    for name in ("Theme", "Density", "Font", "Font size"):
        assert box(page.get_by_role("group", name=name, exact=True))["height"] <= 44, name
    page.keyboard.press("Escape")
    for session in (*asks, busy):
        ground.end(session)


@pytest.mark.timeout(300)
def test_the_answers_are_above_the_keys(
    ground: Ground, windows: Callable[..., Window], agent_home: Callable[[str], AgentHome]
) -> None:
    claude = Driven.begin(ground, agent_home("claude"), "--name", "dev")
    claude.becomes("waiting")
    claude.send("[[bash touch asked]]")
    claude.asks()
    window = windows(**PHONE)
    window.sign_in()
    window.open_session("dev")
    yes = window.page.locator(".headline-bar").get_by_role("button", name="Yes")
    expect(yes).to_be_enabled()
    terminal, keys = box(window.page.locator(".terminal-box")), box(window.page.get_by_role("toolbar", name="Keys"))
    assert terminal["y"] + terminal["height"] <= box(yes)["y"]
    assert box(yes)["y"] + box(yes)["height"] <= keys["y"]
    yes.tap()
    claude.becomes("done")
    assert (claude.home.place / "asked").exists()
    claude.end()


def test_a_long_name_leaves_the_headline_its_place_in_the_palette(
    ground: Ground, windows: Callable[..., Window]
) -> None:
    name = "a-name-that-is-much-longer-than-a-telephone-is-wide-" * 2
    dev = ground.begin_sh(f"{say('blocked')}exec cat", name=name)
    window = windows(**PHONE, reduced_motion="reduce")
    window.sign_in()
    window.page.goto(f"{window.hub.url}/?palette=1")
    found = window.page.get_by_role("dialog").get_by_role("option").first
    expect(found.locator(".hint")).to_contain_text("Needs you")
    assert found.locator(".hint").evaluate("hint => hint.scrollWidth <= hint.clientWidth")
    assert box(found)["x"] + box(found)["width"] <= PHONE["viewport"]["width"]
    ground.end(dev)
