"""Without a mouse: copy and paste, the way out of a terminal, help, and a terminal that speaks."""

from __future__ import annotations

from collections.abc import Callable

from tests.browser.windows import Window, expect
from tests.ground import Ground
from tests.support import eventually

CLIPBOARD = ["clipboard-read", "clipboard-write"]
PASTED = "printf '\\033[?2004h'; echo ready; exec cat -v"


def clipboard(window: Window) -> str:
    return window.page.evaluate("navigator.clipboard.readText()").replace("\r", "")


def test_what_is_selected_is_copied_and_what_is_pasted_is_marked(
    ground: Ground, windows: Callable[..., Window]
) -> None:
    dev = ground.begin_sh(PASTED, name="dev")
    window = windows(permissions=CLIPBOARD)
    window.sign_in()
    window.open_session("dev")
    window.expect_shown("ready")
    box = window.rows.locator("> div").first.bounding_box()
    assert box is not None
    window.page.mouse.dblclick(box["x"] + 12, box["y"] + 5)
    window.page.keyboard.press("Control+Shift+C")
    eventually(lambda: clipboard(window) == "ready", what="the copy")
    window.page.evaluate("navigator.clipboard.writeText('two\\nlines')")
    window.page.locator(".pane .xterm-helper-textarea").focus()
    window.page.keyboard.press("Control+Shift+V")
    eventually(lambda: b"^[[200~two" in dev.output(), what="what was pasted")
    window.type("")
    window.expect_shown("lines^[[201~")

    # a phone has buttons for both
    phone = windows(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, permissions=CLIPBOARD)
    phone.sign_in()
    phone.open_session("dev")
    phone.expect_shown("ready")
    phone.page.get_by_role("button", name="Copy").tap()
    eventually(lambda: clipboard(phone).startswith("ready\n"), what="the copy of the screen")
    phone.page.evaluate("navigator.clipboard.writeText('by touch')")
    phone.page.get_by_role("button", name="Paste").tap()
    phone.page.get_by_role("button", name="Enter").tap()
    phone.expect_shown("^[[200~by touch^[[201~")
    keys = phone.page.get_by_role("toolbar", name="Keys").bounding_box()
    assert keys is not None
    assert keys["width"] <= 390
    ground.end(dev)


def test_a_terminal_holds_nobody_and_the_help_tells_how(ground: Ground, window: Window) -> None:
    dev = ground.begin_sh("echo ready; exec cat -v", name="dev")
    page = window.page
    window.open_session("dev")
    window.expect_shown("ready")
    terminal = page.locator(".pane .xterm-helper-textarea")
    expect(terminal).to_be_focused()

    # what is typed there belongs to the program, a question mark and Escape too
    page.keyboard.type("?")
    page.keyboard.press("Escape")
    window.type("")
    window.expect_shown("?^[")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Control+Shift+Enter")
    expect(page.get_by_label("Prompt for dev")).to_be_focused()
    page.keyboard.press("Escape")
    expect(terminal).to_be_focused()
    page.keyboard.press("Control+Shift+L")
    expect(page.get_by_label("Filter sessions")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("?")
    help_ = page.get_by_role("dialog", name="Settings")
    expect(help_).to_contain_text("to the list of sessions")

    # a terminal that speaks does so after a reload too
    help_.get_by_label("Terminals speak to a screen reader").check()
    page.keyboard.press("Escape")
    expect(help_).to_have_count(0)
    spoken = page.locator(".pane .xterm-accessibility")
    expect(spoken).to_contain_text("ready")
    page.reload()
    expect(spoken).to_contain_text("ready")

    # one that has ended lets Tab pass
    ground.end(dev)
    expect(page.locator(".end-bar")).to_have_text("Process stopped. Click to restart.")
    terminal.focus()
    page.keyboard.press("Tab")
    expect(terminal).not_to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_label("Filter sessions")).to_be_focused()
