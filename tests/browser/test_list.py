"""The list of sessions: who is in it, in which words, and that it is always up to date."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from tests.browser.windows import Window, colour, expect
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.support import eventually
from tests.watched import say

ECHO = 'stty -echo; while read line; do echo "<$line>"; done'
GREEN = "rgb(76, 183, 130)"
GREY = "rgb(111, 121, 137)"
HOSTILE = '<img src=x onerror="window.harm=1">&amp;<script>window.harm=2</script>'


def test_a_link_signs_in_once_and_leaves_the_address(hub: HubProcess, windows: Callable[..., Window]) -> None:
    first, second = windows(), windows()
    link = first.link()
    first.page.goto(link)
    expect(first.page.locator(".link.open")).to_be_attached()
    assert first.page.url == f"{hub.url}/"
    first.page.reload()
    expect(first.page.locator(".link.open")).to_be_attached()
    second.page.goto(link)
    expect(second.page.locator("main")).to_contain_text("hitch up prints a link")
    assert "code=" not in second.page.url


def test_a_page_that_is_not_signed_in_is_let_in_by_a_link_in_the_same_tab(windows: Callable[..., Window]) -> None:
    window = windows()
    window.page.goto(window.hub.url)
    expect(window.page.locator("main")).to_contain_text("hitch up prints a link")
    window.page.goto(window.link())
    expect(window.page.locator(".link.open")).to_be_attached()


@pytest.mark.ids("D-4", "D-5", "D-6", "D-7")
def test_the_list_is_live_and_counts_active_and_suspended_sessions(ground: Ground, window: Window) -> None:
    page = window.page
    expect(page.locator(".badge")).to_have_text("0")
    dev, other = ground.begin_sh(ECHO, name="dev"), ground.begin_sh(ECHO, name="other")
    expect(window.label("dev")).to_have_text("running")
    expect(page.locator(".badge")).to_have_text("2")
    expect(window.row("dev").locator(".where")).to_have_text("sh · place")
    expect(window.row("dev").locator(".since")).to_have_text(re.compile(r"^[1-9]\d*s$"))
    assert colour(window.row("dev").locator(".dot")) == GREEN
    ground.end(dev)
    window.unfold("Ended")
    expect(window.label("dev")).to_have_text("stopped")
    assert colour(window.row("dev").locator(".dot")) == GREY
    assert window.names() == ["other", "dev"]
    ground.hitch("archive", "dev")
    expect(page.locator(".badge")).to_have_text("1")
    expect(window.row("dev")).to_have_count(0)
    window.set_view("Show archived", True)
    expect(window.label("dev")).to_have_text("archived")
    window.set_view("Show archived", False)
    expect(window.row("dev")).to_have_count(0)
    window.set_view("Records", "archived")
    expect(page.locator(".row .name")).to_have_text(["dev"])
    window.open_session("dev")
    expect(page.locator(".end-bar")).to_have_text("Session is archived")
    expect(page.get_by_label("Prompt for dev")).to_be_disabled()
    ground.hitch("rm", "dev")
    expect(window.row("dev")).to_have_count(0)
    expect(page.locator(".nothing")).to_have_text("No matches.")
    window.set_view("Records", "")
    expect(page.locator(".tab")).to_have_count(0)
    page.get_by_label("Filter sessions").fill("nobody")
    expect(page.locator(".nothing")).to_have_text("No matches.")
    page.get_by_label("Filter sessions").fill("OTH run")
    expect(page.locator(".row .name")).to_have_text(["other"])
    ground.end(other)


def test_who_wants_something_comes_first(ground: Ground, window: Window) -> None:
    calm = ground.begin_sh("sleep 1000", name="calm")
    failed = ground.begin_sh("exit 3", name="failed")
    blocked = ground.begin_sh(f"{say('blocked')}sleep 1000", name="blocked")
    waiting = ground.begin_sh(f"{say('idle')}sleep 1000", name="waiting")
    expect(window.label("failed")).to_have_text("failed: command exited with code 3")
    expect(window.label("blocked")).to_contain_text("needs you")
    expect(window.row("waiting").locator(".headline")).to_have_text("Your turn")
    expect(window.page.locator(".row .name")).to_have_text(["blocked", "waiting", "failed", "calm"])
    assert failed.ended() == "failed"
    for session in (calm, blocked, waiting):
        ground.end(session)


@pytest.mark.ids("S9")
def test_hostile_names_are_only_text(ground: Ground, window: Window) -> None:
    place = ground.place / "<b onmouseover=alert(1)>"
    place.mkdir()
    dev = ground.begin_sh("echo '<img src=x onerror=window.harm=3>'; exec cat", name=HOSTILE, place=place)
    expect(window.row(HOSTILE)).to_be_visible()
    window.open_session(HOSTILE)
    window.expect_shown("<img src=x onerror=window.harm=3>")
    expect(window.tab(HOSTILE)).to_be_visible()
    window.page.get_by_role("button", name="Why").click()
    expect(window.page.locator(".because")).to_contain_text("because")
    assert window.page.evaluate("window.harm") is None
    assert window.page.locator("#app img, #app b, #app script").count() == 0
    ground.end(dev)


def test_the_list_is_walked_with_the_keyboard(ground: Ground, window: Window) -> None:
    sessions = [ground.begin_sh(ECHO, name=name) for name in ("one", "two", "three")]
    expect(window.page.locator(".row")).to_have_count(3)
    window.row("three").locator(".open-session").focus()
    window.page.keyboard.press("ArrowDown")
    window.page.keyboard.press("End")
    window.page.keyboard.press("ArrowUp")
    window.page.keyboard.press("Enter")
    expect(window.page.locator(".pane")).to_have_attribute("aria-label", "two")
    for session in sessions:
        ground.end(session)


@pytest.mark.ids("F34")
def test_a_session_of_a_newer_version_is_shown_and_nothing_is_offered(
    ground: Ground, hub: HubProcess, window: Window
) -> None:
    newer = ground.begin_sh("exit 0", name="newer")
    newer.ended()
    path = newer.folder / "state.json"
    path.with_name("new").write_text(json.dumps({**newer.state_file(), "schema": 99}))
    path.with_name("new").rename(path)
    eventually(lambda: [row["status"] for row in hub.ask("GET", "/api/sessions")] == ["unknown"], what="unknown")
    window.page.reload()
    expect(window.label("newer")).to_have_text("unknown (written by a newer hitchpost)")
    window.open_session("newer")
    expect(window.page.locator(".end-bar")).to_contain_text("upgrade hitchpost")
    expect(window.page.get_by_role("button", name="Resume")).to_have_count(0)
    expect(window.page.get_by_text("Click to restart")).to_have_count(0)
