"""Working with sessions in the page: starting them, several at once, their story, their changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.windows import Window, expect
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.repos import Repo

ECHO = 'stty -echo; while read line; do echo "<$line>"; done'


def test_a_session_is_started_in_a_worktree_of_its_own(repo: Repo, hub: HubProcess, window: Window) -> None:
    page = window.page
    page.locator(".list-head").get_by_role("button", name="New").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("What should be done?").fill("hello")
    dialog.get_by_label("Project", exact=True).fill(str(repo.path))
    dialog.get_by_label("on branch").fill("fix-auth")
    dialog.get_by_role("radio", name="Command").check()
    dialog.get_by_role("textbox", name="Command").fill("sh -c 'echo \"one  word\"; exec cat'")
    dialog.locator(".more > summary").click()
    dialog.get_by_label("Name").fill("fixer")
    dialog.get_by_role("button", name="Start").click()
    expect(page.locator(".pane")).to_have_attribute("aria-label", "fixer")
    window.expect_shown("one  word")
    window.expect_shown("hello")
    expect(window.row("fixer").locator(".where")).to_have_text(f"sh · {repo.path.name} ⎇ fix-auth")
    made = hub.ask("GET", "/api/sessions/fixer")
    assert made["workspace"]["branch"] == "fix-auth"
    assert {line["actor"] for line in hub.ask("GET", "/api/sessions/fixer/story")} == {"browser", "keeper"}
    (Path(made["workspace"]["path"]) / "new.txt").write_text("a line\n<b>bold</b>\n")
    page.get_by_role("button", name="Diff").click()
    expect(page.locator(".changed-files")).to_contain_text("new.txt")
    expect(page.locator(".patch .added")).to_have_text(["+a line\n", "+<b>bold</b>\n"])
    page.get_by_role("button", name="Timeline").click()
    expect(page.locator(".timeline")).to_contain_text("Starting → running (run 1)")
    page.get_by_label("More for fixer").click()
    page.get_by_role("button", name="Stop…").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(window.label("fixer")).to_have_text("stopped")
    expect(page.locator(".timeline")).to_contain_text("Stopping → stopped (run 1)")


def test_the_recording_is_downloaded(ground: Ground, window: Window) -> None:
    dev = ground.begin_sh("echo hello; exec cat", name="dev")
    window.open_session("dev")
    window.expect_shown("hello")
    window.page.get_by_label("More for dev").click()
    with window.page.expect_download() as waited:
        window.page.get_by_role("button", name="Download the recording").click()
    assert waited.value.suggested_filename == "dev.cast"
    head, *events = Path(waited.value.path()).read_text().splitlines()
    assert json.loads(head)["version"] == 3
    assert any("hello" in json.loads(event)[2] for event in events)
    ground.end(dev)


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_the_page_follows_the_colours_of_the_system(
    ground: Ground, windows: Callable[..., Window], scheme: str
) -> None:
    dev = ground.begin_sh("echo hello; exec cat", name="dev")
    window = windows(color_scheme=scheme)
    window.sign_in()
    window.open_session("dev")
    window.expect_shown("hello")
    ground_colour = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground_colour == {"dark": "rgb(15, 17, 21)", "light": "rgb(255, 255, 255)"}[scheme]
    ground.end(dev)
