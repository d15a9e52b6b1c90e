"""Working with sessions in the page: starting them, several at once, their story, their changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hitchpost.agents import catalog
from tests.browser.windows import Window, expect
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.repos import Repo

ECHO = 'stty -echo; while read line; do echo "<$line>"; done'


def test_a_session_is_started_in_a_worktree_of_its_own(repo: Repo, hub: HubProcess, window: Window) -> None:
    page = window.page
    page.locator(".list-head").get_by_role("button", name="New").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("a command").check()
    dialog.get_by_label("Command", exact=True).fill("sh -c 'echo \"one  word\"; exec cat'")
    dialog.get_by_label("Folder", exact=True).fill(str(repo.path))
    dialog.get_by_label("in its own worktree").check()
    dialog.get_by_label("Branch").fill("fix-auth")
    dialog.get_by_label("Name").fill("fixer")
    dialog.get_by_label("First prompt").fill("hello")
    dialog.get_by_role("button", name="Start").click()
    expect(page.locator(".pane")).to_have_attribute("aria-label", "fixer")
    window.expect_shown("one  word")
    window.expect_shown("hello")
    expect(window.row("fixer").locator(".where")).to_have_text("sh · fix-auth")
    made = hub.ask("GET", "/api/sessions/fixer")
    assert made["workspace"]["branch"] == "fix-auth"
    assert {line["actor"] for line in hub.ask("GET", "/api/sessions/fixer/story")} == {"browser", "keeper"}
    (Path(made["workspace"]["path"]) / "new.txt").write_text("a line\n<b>bold</b>\n")
    page.get_by_role("button", name="Diff").click()
    expect(page.locator(".changed-files")).to_contain_text("new.txt")
    expect(page.locator(".patch .added")).to_have_text(["+a line\n", "+<b>bold</b>\n"])
    page.get_by_role("button", name="Timeline").click()
    expect(page.locator(".timeline")).to_contain_text("starting → running (run 1)")
    page.get_by_role("button", name="Stop").click()
    expect(window.label("fixer")).to_have_text("stopped")
    expect(page.locator(".timeline")).to_contain_text("stopping → stopped (run 1)")


def test_what_is_wrong_is_said_beside_its_field(ground: Ground, window: Window) -> None:
    dev = ground.begin_sh(ECHO, name="dev")
    programs = ground.place / "programs"
    programs.mkdir()
    for name in ("bash", "cat"):
        (programs / name).symlink_to(f"/bin/{name}")
    ground.configure(f'[env]\nPATH = "{programs}"')
    page = window.page
    page.locator(".list-head").get_by_role("button", name="New").click()
    dialog = page.get_by_role("dialog")
    start = dialog.get_by_role("button", name="Start")
    dialog.get_by_label("Folder", exact=True).fill(str(ground.place))
    agents = dialog.get_by_label("Agent", exact=True)
    expect(agents).to_have_value("bash")
    expect(agents.locator("option").first).to_have_text("Bash")
    expect(agents.get_by_text("(not installed)")).to_have_count(len(catalog.names()) - 1)
    agents.select_option("aider")
    expect(dialog.locator("#agent-about")).to_have_text("pip install aider-chat")
    start.click()
    expect(dialog.locator("#agent-about.trouble")).to_contain_text("aider")
    dialog.get_by_label("a command").check()
    dialog.get_by_label("Command", exact=True).fill("cat")
    dialog.get_by_label("Name").fill("dev")
    start.click()
    expect(dialog.locator("#name-about")).to_contain_text("already named")
    dialog.get_by_label("Name").fill("other")
    dialog.get_by_label("Folder", exact=True).fill(f"{ground.place}/nowhere")
    start.click()
    expect(dialog.locator("#folder-about")).to_contain_text("nowhere")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert window.names() == ["aider-place", "dev"]
    ground.end(dev)


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
    assert ground_colour == {"dark": "rgb(36, 41, 51)", "light": "rgb(236, 239, 244)"}[scheme]
    ground.end(dev)
