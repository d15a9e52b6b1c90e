"""Story 2.9 in the page: a crash is seen, explained and undone with one click, and the others do not notice."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.windows import Window, colour, expect
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.repos import Repo
from tests.support import eventually

RED = "rgb(191, 97, 106)"
GREEN = "rgb(76, 183, 130)"
CRASHED = "Session crashed. Click to restart."
AGENT = 'echo "run in $PWD"; while read line; do echo "<$line>"; test "$line" = crash && exit 1; done'


def begin(hub: HubProcess, repo: Repo, branch: str) -> Truth:
    wanted: dict[str, Any] = {
        "command": ["sh", "-c", AGENT],
        "folder": str(repo.path),
        "branch": branch,
        "name": branch,
    }
    made = hub.ask("POST", "/api/sessions", wanted)["session"]
    return Truth(hub.ground.home, made["id"])


@pytest.mark.ids("E-1", "E-5", "E-6", "E-7", "E-8", "E-13", "E-14")
def test_one_of_three_crashes_and_is_restarted_with_a_click(
    repo: Repo, ground: Ground, hub: HubProcess, window: Window
) -> None:
    one, two, three = (begin(hub, repo, name) for name in ("session-1", "session-2", "session-3"))
    others = {session.id: session.agent_pid() for session in (one, three)}
    page = window.page
    for name in ("session-1", "session-3", "session-2"):
        window.open_session(name)
        window.expect_shown("run in")
    folder = hub.ask("GET", f"/api/sessions/{two.id}")["workspace"]["path"]
    with open(os.path.join(folder, "work.txt"), "w") as file:
        file.write("not committed\n")
    window.type("crash")

    # known, in red, in both places; the output stays, and what happened stands under it
    for place in (window.row("session-2"), window.tab("session-2")):
        expect(place.locator(".dot")).to_have_attribute("title", CRASHED)
        expect(place.locator(".dot")).to_have_css("background-color", RED)
    expect(page.locator(".end-bar")).to_have_text("Process exited with code 1. Click to restart.")
    window.expect_shown("<crash>")
    expect(window.label("session-2")).to_have_text("failed: command exited with code 1")
    expect(page.get_by_label("Prompt for session-2")).to_be_disabled()
    # it crashed before somebody's eyes: it is listed with what is ended, and nobody is called
    expect(window.part("Ended").locator(".name")).to_have_text(["session-2"])
    expect(page).to_have_title("Hitchpost")
    window.type("typed into nothing")
    for name in ("session-1", "session-3"):
        expect(window.row(name).locator(".dot")).to_have_css("background-color", GREEN)
        expect(window.tab(name).locator(".dot")).to_have_css("background-color", GREEN)

    # a click
    page.locator(".end-bar").click()
    expect(window.label("session-2")).to_have_text("running")
    window.expect_shown("— run 2 —")
    expect(page.locator(".end-bar")).to_have_count(0)
    assert [message["sessionId"] for message in window.wires[-1].asked("session.resume", two.id)] == [two.id]
    for place in (window.row("session-2"), window.tab("session-2")):
        expect(place.locator(".dot")).to_have_css("background-color", GREEN)
    window.type("hello again")
    window.expect_shown("<hello again>")
    shown = [line for line in window.lines() if line]
    assert shown == [
        *wrapped(f"run in {folder}", window),
        "crash",
        "<crash>",
        "— run 2 —",
        *wrapped(f"run in {folder}", window),
        "hello again",
        "<hello again>",
    ]
    with open(os.path.join(folder, "work.txt")) as file:
        assert file.read() == "not committed\n"

    # the others did not notice
    assert {session.id: session.agent_pid() for session in (one, three)} == others
    for name in ("session-1", "session-3"):
        window.tab(name).locator(".tab-name").click()
        window.type(f"still {name}")
        window.expect_shown(f"<still {name}>")
    for session in (one, two, three):
        ground.end(session)


def wrapped(text: str, window: Window) -> list[str]:
    """A long line as the terminal shows it."""
    cols = [event for event in window.wires[-1].events if event["type"] == "terminal.size"][-1]["cols"]
    return [text[at : at + cols] for at in range(0, len(text), cols)]


@pytest.mark.ids("E-4", "E-5")
def test_a_signal_is_named_and_the_dot_restarts_too(ground: Ground, window: Window) -> None:
    dev = ground.begin_sh("echo ready; sleep 1000", name="dev")
    window.open_session("dev")
    window.expect_shown("ready")
    os.kill(dev.agent_pid(), signal.SIGSEGV)
    expect(window.page.locator(".end-bar")).to_have_text("Process killed by SIGSEGV. Click to restart.")
    window.row("dev").locator(".dot").click()
    window.expect_shown("— run 2 —")
    expect(window.label("dev")).to_have_text("running")
    ground.end(dev)


def test_a_full_screen_program_that_crashed_leaves_no_mess(ground: Ground, window: Window) -> None:
    script = "printf 'before\\r\\n\\033[?1049h\\033[?1000h\\033[5;10r\\033[31;7mfull screen'; read line; exit 2"
    dev = ground.begin_sh(script, name="dev")
    window.open_session("dev")
    window.expect_shown("full screen")
    window.type("x")
    expect(window.page.locator(".end-bar")).to_have_text("Process exited with code 2. Click to restart.")
    window.page.locator(".end-bar").click()
    window.expect_shown("full screen")
    eventually(lambda: dev.state == "running" and dev.state_file()["run"] == 2)
    ground.end(dev)
    expect(window.page.locator(".end-bar")).to_have_text("Process stopped. Click to restart.")


def test_exit_0_is_shown_calmly(ground: Ground, window: Window) -> None:
    dev = ground.begin_sh("echo all done; read line; exit 0", name="dev")
    window.open_session("dev")
    window.expect_shown("all done")
    window.type("go")
    expect(window.label("dev")).to_have_text("completed")
    bar = window.page.locator(".end-bar")
    expect(bar).to_have_text("Process exited with code 0. Click to restart.")
    assert "red" not in (bar.get_attribute("class") or "")
    for place in (window.row("dev"), window.tab("dev")):
        assert colour(place.locator(".dot")) != RED
        assert place.locator(".dot").get_attribute("title") != CRASHED
    assert dev.ended() == "completed"


@pytest.mark.ids("D-4", "D-6")
def test_a_suspended_session_is_looked_at_and_resumed(
    ground: Ground, hub: HubProcess, windows: Callable[..., Window]
) -> None:
    ground.configure('on_shutdown = "suspend"')
    hub.stop()
    hub.start()
    dev = ground.begin_sh("echo ready; exec cat", name="dev")
    eventually(lambda: b"ready" in dev.output())
    hub.stop()
    hub.start()
    window = windows()
    window.sign_in()
    expect(window.page.locator(".badge")).to_have_text("1")
    window.unfold("Ended")
    window.open_session("dev")
    window.expect_shown("ready")
    expect(window.page.locator(".end-bar")).to_contain_text("may be resumable when agent supports it")
    expect(window.page.get_by_label("Prompt for dev")).to_be_disabled()
    window.page.locator(".end-bar").get_by_role("button", name="Resume").click()
    expect(window.label("dev")).to_have_text("running")
    window.expect_shown("— run 2 —")
    expect(window.page.get_by_label("Prompt for dev")).to_be_enabled()
    ground.end(dev)


@pytest.mark.ids("D-11")
def test_cancel_and_delete_ask_first(ground: Ground, hub: HubProcess, window: Window) -> None:
    dev = ground.begin_sh("echo ready; exec cat", name="dev")
    window.open_session("dev")
    window.expect_shown("ready")
    page = window.page
    for way in ("row", "palette"):
        if way == "row":
            window.choose("dev", "Stop and archive…")
        else:
            page.keyboard.press("Control+Shift+K")
            page.keyboard.type("stop and archive")
            page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_contain_text("Stop and archive dev?")
        page.get_by_role("dialog").get_by_role("button", name="No, keep it").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
    for answer in ("No, keep it", "Stop and archive"):
        page.get_by_label("More for dev").click()
        page.get_by_role("button", name="Stop and archive…").click()
        expect(page.get_by_role("dialog")).to_contain_text("Stop and archive dev?")
        assert dev.state == "running"
        page.get_by_role("dialog").get_by_role("button", name=answer).click()
        expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".end-bar")).to_have_text("Session is archived")
    page.get_by_label("More for dev").click()
    page.get_by_role("button", name="Delete…").click()
    expect(page.get_by_role("dialog")).to_contain_text("Delete dev?")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator(".tab")).to_have_count(0)
    assert hub.ask("GET", "/api/sessions?all=true") == []
