"""The page's address says what it shows: Back, Forward, a reload and a link all lead to the same state."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.windows import Window, expect
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.repos import Repo

ECHO = 'stty -echo; echo "I am $0"; while read line; do echo "<$line>"; done'


def begin(ground: Ground, name: str):
    return ground.begin_sh(ECHO.replace("$0", name), name=name)


def panel(window: Window):
    return window.page.locator(".side-panel h2")


def test_back_and_forward_walk_through_sessions_and_panels(ground: Ground, hub: HubProcess, window: Window) -> None:
    page = window.page
    first, second = begin(ground, "first"), begin(ground, "second")
    window.open_session("first")
    assert page.url == f"{hub.url}/?session={first.id}"
    page.get_by_role("button", name="Diff").click()
    expect(panel(window)).to_have_text("Changes")
    assert page.url == f"{hub.url}/?session={first.id}&panel=diff"
    window.open_session("second")
    page.get_by_role("button", name="Grid").click()
    expect(page.locator(".cell")).to_have_count(2)

    page.go_back()
    window.expect_shown("I am second")
    expect(panel(window)).to_have_text("Changes")
    page.go_back()
    window.expect_shown("I am first")
    expect(panel(window)).to_have_text("Changes")
    page.go_back()
    expect(page.locator(".side-panel")).to_have_count(0)
    window.expect_shown("I am first")
    page.go_back()
    expect(page.locator(".pane")).to_have_count(0)
    assert page.url == f"{hub.url}/"
    for _ in range(4):
        page.go_forward()
    expect(page.locator(".cell")).to_have_count(2)
    assert page.url == f"{hub.url}/?session={second.id}&panel=diff&grid=1"

    # a dialog that was left is no step of the way back
    for keys in ("?", "Control+k"):
        page.keyboard.press(keys)
        expect(page.get_by_role("dialog")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page).to_have_url(f"{hub.url}/?session={second.id}&panel=diff&grid=1")
    page.go_back()
    window.expect_shown("I am second")
    expect(page.locator(".cell")).to_have_count(0)
    for session in (first, second):
        ground.end(session)


def test_a_reload_keeps_the_session_its_panel_and_the_grid(ground: Ground, hub: HubProcess, window: Window) -> None:
    page = window.page
    first, second = begin(ground, "first"), begin(ground, "second")
    for name in ("second", "first"):
        window.open_session(name)
    page.get_by_role("button", name="Timeline").click()
    expect(panel(window)).to_have_text("Timeline")
    page.reload()
    window.expect_shown("I am first")
    expect(page.locator(".pane")).to_have_attribute("aria-label", "first")
    expect(panel(window)).to_have_text("Timeline")
    expect(page.locator(".tab-name")).to_have_text(["second", "first"])
    page.go_back()
    expect(page.locator(".side-panel")).to_have_count(0)
    page.get_by_role("button", name="Grid").click()
    page.reload()
    expect(page.locator(".cell canvas").first).to_contain_text("I am first")
    expect(page.locator(".cell")).to_have_count(2)
    # the address without a session is home, whatever was open here before
    for address in (f"{hub.url}/", f"{hub.url}/?new=1"):
        page.goto(address)
        expect(page.locator(".tab-name")).to_have_text(["second", "first"])
        expect(page.locator(".home")).to_be_visible()
        assert page.url == address
    for session in (first, second):
        ground.end(session)


@pytest.mark.keeps_page
def test_a_link_opens_a_session_and_its_panel_also_when_it_signs_in(
    ground: Ground, hub: HubProcess, windows: Callable[..., Window]
) -> None:
    dev = begin(ground, "dev")
    window = windows()
    code = window.link().partition("#")[2]
    window.page.goto(f"{hub.url}/?session={dev.id}&panel=explain#{code}")
    window.expect_shown("I am dev")
    expect(panel(window)).to_have_text("Why this status")
    assert window.page.url == f"{hub.url}/?session={dev.id}&panel=explain"
    # with the service worker, in another tab of the same browser
    window.page.wait_for_function("() => navigator.serviceWorker.ready.then(() => true)")
    other = window.context.new_page()
    other.goto(f"{hub.url}/?session={dev.id}")
    expect(other.locator(".pane")).to_have_attribute("aria-label", "dev")
    other.goto(f"{hub.url}/?session=nobody")
    expect(other.locator(".notice")).to_have_text("There is no session at this address.")
    expect(other.locator(".pane")).to_have_count(0)
    assert other.url == f"{hub.url}/"
    ground.end(dev)


def test_settings_have_an_address_and_back_closes_them(hub: HubProcess, window: Window) -> None:
    page = window.page
    page.get_by_role("button", name="Settings and keys").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    assert page.url == f"{hub.url}/?settings=1"
    page.reload()
    expect(dialog).to_be_visible()
    page.go_back()
    expect(dialog).to_have_count(0)
    page.go_forward()
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page).to_have_url(f"{hub.url}/")


def test_the_dialog_that_finishes_has_an_address_and_back_closes_it(
    ground: Ground, hub: HubProcess, repo: Repo, window: Window
) -> None:
    repo.commit("README", "old\n")
    made = ground.hitch("run", "--name", "dev", "--branch", "fix", "--json", "--", "cat", cwd=repo.path).json()
    dev, page = Truth(ground.home, made["id"]), window.page
    window.open_session("dev")
    page.get_by_role("button", name="Diff").click()
    panel_only = page.url
    page.get_by_role("button", name="Finish…").click()
    dialog = page.get_by_role("dialog", name="Finish dev")
    expect(dialog).to_be_visible()
    assert page.url == f"{hub.url}/?session={dev.id}&panel=diff&finish=1"
    page.reload()
    expect(dialog).to_be_visible()
    page.go_back()
    expect(dialog).to_have_count(0)
    expect(panel(window)).to_have_text("Changes")
    page.go_forward()
    # a dialog that was left is no step of the way back, whichever way it was
    for leave in (lambda: page.keyboard.press("Escape"), dialog.get_by_role("button", name="Close").click):
        expect(dialog).to_be_visible()
        leave()
        expect(dialog).to_have_count(0)
        expect(page).to_have_url(panel_only)
        page.get_by_role("button", name="Finish…").click()
    expect(dialog).to_be_visible()
    page.go_back()
    expect(dialog).to_have_count(0)
    page.go_back()
    expect(page.locator(".side-panel")).to_have_count(0)
    # a link leads there, and has nothing before it
    page.goto(f"{hub.url}/?session={dev.id}&panel=diff&finish=1")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert page.url == panel_only
    page.get_by_role("button", name="Finish…").click()
    expect(dialog.get_by_label("Merge fix into")).to_be_visible()
    dialog.get_by_label("remove the worktree").check()
    dialog.get_by_role("button", name="Remove").click()
    expect(page.locator(".notices")).to_contain_text("orktree removed")
    expect(dialog).to_have_count(0)
    expect(page).to_have_url(panel_only)
    ground.end(dev)


def test_a_session_that_is_removed_leaves_no_way_back_to_it(ground: Ground, hub: HubProcess, window: Window) -> None:
    dev = begin(ground, "dev")
    window.open_session("dev")
    ground.end(dev)
    ground.hitch("rm", "dev")
    expect(window.page.locator(".pane")).to_have_count(0)
    assert window.page.url == f"{hub.url}/"
    expect(window.page.locator(".notice")).to_have_count(0)


def test_a_key_that_comes_right_after_escape_opens_what_it_says(hub: HubProcess, window: Window) -> None:
    page = window.page
    page.goto(f"{hub.url}/?settings=1")
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    page.evaluate(
        """() => {
            document.querySelector("dialog[open]").requestClose();  // as Escape does: it is closed, and told later
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "n", bubbles: true }));
        }"""
    )
    expect(page.get_by_label("What should be done?")).to_be_visible()
    page.get_by_label("What should be done?").fill("a thought")
    expect(page).to_have_url(f"{hub.url}/?new=1")
