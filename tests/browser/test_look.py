"""How the page looks: its fonts, its colours, what moves; what a person can set; and what notices cover."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.test_barriers import AXE, EVERY_RULE, barriers
from tests.browser.windows import Window, box, expect, overlap, style
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.support import eventually

FONTS = "[...document.fonts].filter(font => font.status === 'loaded').map(font => font.family.replaceAll('\"', ''))"
GROUND = "getComputedStyle(document.body).backgroundColor"
DARK, LIGHT = "rgb(15, 17, 21)", "rgb(255, 255, 255)"


@pytest.mark.parametrize(("scheme", "colour"), [("dark", DARK), ("light", LIGHT)])
def test_the_page_brings_its_fonts_and_controls(
    ground: Ground, windows: Callable[..., Window], scheme: str, colour: str
) -> None:
    dev = ground.begin_sh("echo ready; exec cat", name="dev")
    window = windows(color_scheme=scheme, reduced_motion="no-preference")
    window.sign_in()
    window.open_session("dev")
    window.expect_shown("ready")
    page = window.page
    assert set(page.evaluate(FONTS)) == {"Inter", "JetBrains Mono"}
    assert page.evaluate(GROUND) == colour
    assert style(window.rows, "background-color") in (colour, "rgba(0, 0, 0, 0)")
    assert style(page.locator("body"), "font-family").startswith("Inter")
    assert style(page.locator("body"), "font-variant-numeric") == "tabular-nums"
    assert style(window.rows, "font-family").replace('"', "").startswith("JetBrains Mono")
    for control in ("select", "input[type=checkbox]"):
        assert style(page.locator(control).first, "appearance") == "none"
    assert style(page.locator(".toolbar button").first, "transition-duration").startswith("0.15s")
    page.emulate_media(reduced_motion="reduce")
    assert style(page.locator(".toolbar button").first, "transition-duration").startswith("0s")
    ground.end(dev)


def test_what_is_set_has_an_address_and_outlives_a_reload(ground: Ground, window: Window) -> None:
    dev = ground.begin_sh("echo ready; exec cat", name="dev")
    page = window.page
    window.open_session("dev")
    window.expect_shown("ready")
    page.evaluate(AXE.read_text())
    page.get_by_role("button", name="Settings and keys").click()
    settings = page.get_by_role("dialog", name="Settings")
    assert "settings=1" in page.url
    assert barriers(page, "settings", EVERY_RULE) == []
    settings.get_by_label("Light").check()
    expect(page.locator("body")).to_have_css("background-color", LIGHT)
    assert barriers(page, "settings in light", EVERY_RULE) == []
    tall = box(page.locator(".toolbar"))["height"]
    settings.get_by_label("Compact").check()
    assert box(page.locator(".toolbar"))["height"] < tall - 8
    settings.get_by_label("Font size").get_by_role("button", name="Larger").click()
    settings.get_by_label("Font size").get_by_role("button", name="Larger").click()
    expect(settings.get_by_text("15 px")).to_be_visible()
    expect(settings).to_contain_text("hitch attach is left with Ctrl B D, inside tmux with Ctrl \\ Ctrl \\.")
    # a larger font has room for fewer letters, and the agent is told
    eventually(lambda: window.wires[-1].asked("terminal.resize", dev.id), what="the smaller size")
    settings.get_by_role("group", name="Font", exact=True).get_by_label("System").check()
    page.reload()
    expect(settings).to_be_visible()
    assert page.evaluate(GROUND) == LIGHT
    assert page.evaluate("document.documentElement.dataset.density") == "compact"
    expect(settings.get_by_label("Light")).to_be_checked()
    page.go_back()
    expect(settings).to_have_count(0)
    window.expect_shown("ready")
    assert style(window.rows, "font-size") == "15px"
    assert "JetBrains" not in style(window.rows, "font-family")
    ground.end(dev)


@pytest.mark.parametrize(("setting", "shown"), [("ctrl-]", "Ctrl ]"), ("Ctrl-A x", "Ctrl A X")])
def test_the_settings_say_the_detach_key_that_is_set(
    ground: Ground, hub: HubProcess, window: Window, setting: str, shown: str
) -> None:
    ground.configure(f'detach_key = "{setting}"')
    window.page.get_by_role("button", name="Settings and keys").click()
    settings = window.page.get_by_role("dialog", name="Settings")
    expect(settings).to_contain_text(f"hitch attach is left with {shown}.")


def test_stopping_asks_and_archiving_offers_a_way_back_where_it_covers_no_field(
    ground: Ground, hub: HubProcess, window: Window
) -> None:
    dev = ground.begin_sh("echo ready; exec cat", name="dev")
    window.open_session("dev")
    window.expect_shown("ready")
    page = window.page
    for word, answer in (("Restart fresh…", "No, keep it"), ("Stop…", "No, keep it"), ("Stop…", "Stop")):
        page.get_by_label("More for dev").click()
        page.get_by_role("button", name=word).click()
        expect(page.get_by_role("dialog")).to_contain_text("The agent gets 10 s to quit, then it is killed.")
        assert (dev.state, ground.ps(dev)["run"]) == ("running", 1)
        page.get_by_role("dialog").get_by_role("button", name=answer).click()
    expect(window.label("dev")).to_have_text("stopped")

    page.get_by_label("More for dev").click()
    page.get_by_role("button", name="Archive", exact=True).click()
    notice = page.locator(".notice")
    expect(notice).to_contain_text("Archived dev.")
    expect(page.locator(".end-bar")).to_have_text("Session is archived")
    place, width = box(notice), page.viewport_size
    assert width is not None
    assert place["y"] < 120
    assert not overlap(place, box(page.locator(".tools")))
    assert place["x"] + place["width"] > width["width"] - 40
    for field in page.locator("textarea:visible, input:visible").all():
        assert not overlap(place, box(field))
    notice.get_by_role("button", name="Undo").click()
    expect(notice).to_have_count(0)
    expect(page.locator(".end-bar")).not_to_have_text("Session is archived")
    assert hub.ask("GET", "/api/sessions/dev")["record"] != "archived"


def test_a_session_is_renamed(ground: Ground, window: Window) -> None:
    dev = ground.begin_sh("echo ready; exec cat", name="dev")
    window.open_session("dev")
    page = window.page
    page.get_by_label("More for dev").click()
    page.get_by_role("button", name="Rename…").click()
    dialog = page.get_by_role("dialog", name="Rename dev")
    expect(dialog.get_by_label("Name")).to_have_value("dev")
    page.keyboard.type("better")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.locator(".toolbar h2")).to_have_text("better")
    ground.end(dev)
