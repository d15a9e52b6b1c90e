"""A session's head: what it is to do, and what can be done now, as the hub says; and the drawer beside its terminal."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from tests.browser.windows import Window, box, expect, style
from tests.ground import Ground, alive
from tests.hubs import HubProcess
from tests.repos import Repo
from tests.support import eventually
from tests.watched import say

TASK = "Fix the login: encoded cookies are refused"
WORDS = {
    "answer": "Answer",
    "look": "Go to terminal",
    "reply": "Reply",
    "review": "Review",
    "resume": "Resume",
    "restart": "Restart fresh",
    "restore": "Restore the folder",
    "stop": "Stop…",
    "cancel": "Stop and archive…",
    "archive": "Archive",
    "unarchive": "Unarchive",
    "delete": "Delete…",
}
PANELS = ("review", "explain")
IN_STEP = """
(() => {
    const signs = document.getAnimations().filter((one) => one.animationName === "turn");
    const times = new Set(signs.map((one) => one.currentTime));
    return signs.every((one) => one.playState === "paused") && times.size <= 1 && !times.has(0);
})()
"""
"""They are turned a few times a second: an animation that runs takes every frame, and a key waits for the one after."""


def word(action: str, live: bool) -> str:
    """What asks first says so."""
    return WORDS[action] + ("…" if live and action == "restart" else "")


def test_the_head_says_what_a_session_is_and_offers_what_the_hub_does(
    ground: Ground, repo: Repo, hub: HubProcess, window: Window, windows: Callable[..., Window]
) -> None:
    page = window.page
    wish = {
        "command": ["sh", "-c", f"{say('idle')}exec cat"],
        "folder": str(repo.path),
        "branch": "fix-auth",
    }
    made = hub.ask("POST", "/api/sessions", {**wish, "name": "fixer", "prompt": f"{TASK}\nand more"})["session"]
    repo_file = f"{made['workspace']['path']}/new.py"
    with open(repo_file, "w", encoding="utf-8") as new:
        new.write("one\ntwo\n")
    failed = ground.begin_sh("echo oh; exit 3", name="failed")
    assert failed.ended() == "failed"
    busy = ground.begin_sh(f"{say('working', message='on it')}exec cat", name="busy")
    asks = ground.begin_sh(f"{say('blocked')}exec cat", name="asks")
    for name in ("fixer", "failed", "busy", "asks"):
        window.open_session(name)
        told = hub.ask("GET", f"/api/sessions/{name}")
        expect(page.locator(".toolbar h2")).to_have_text(name)
        # fonts need not have every sign
        glyph = page.locator(".toolbar .glyph")
        if told["glyph"] in "✋✕":
            expect(glyph.locator("svg")).to_be_visible()
        else:
            expect(glyph).to_contain_text(told["glyph"])
        # who works is left to it
        first = page.locator(".tools .first")
        offers = [] if name == "busy" else told["actions"][:1]
        expect(first).to_have_text([WORDS[action] for action in offers])
        assert [one.get_attribute("data-action") for one in first.all()] == offers
        page.get_by_label(f"More for {name}").click()
        rest = [action for action in told["actions"][len(offers) :] if action not in PANELS]
        if told["live"]:
            rest.insert(rest.index("stop") + 1, "cancel")
        offered = page.locator(".menu[open] [data-action]")
        expect(offered).to_have_text([word(action, told["live"]) for action in rest])
        page.keyboard.press("Escape")
        # what works turns, unless nothing is to move
        signs = (page.locator(".toolbar .glyph"), window.row(name).locator(".dot"))
        turns = "turn" if name == "busy" else "none"
        assert {style(sign, "animation-name") for sign in signs} == {"none"}
        page.emulate_media(reduced_motion="no-preference")
        assert {style(sign, "animation-name") for sign in signs} == {turns}
        eventually(lambda: page.evaluate(IN_STEP), what="all signs to turn in step")
        page.emulate_media(reduced_motion="reduce")
    page.locator(".tools .first").click()
    expect(page.locator(".pane .xterm-helper-textarea")).to_be_focused()
    window.tab("fixer").locator(".tab-name").click()
    # a deed of its row opens the drawer, and Back closes it
    window.choose("fixer", "Review")
    expect(page.locator(".side-panel")).to_be_visible()
    page.go_back()
    expect(page.locator(".side-panel")).to_have_count(0)
    expect(page.locator(".toolbar h2")).to_have_text("fixer")
    expect(page.locator(".toolbar .task")).to_have_text(TASK)
    expect(page.locator(".about .where")).to_contain_text("fix-auth")
    page.get_by_role("button", name="Diff").click()
    for place in (page.locator(".about"), window.row("fixer")):
        expect(place.locator(".counts")).to_have_text("+2 −0")
    page.get_by_role("button", name="Diff").click()
    page.locator(".tools .first").click()
    expect(page.get_by_label("Prompt for fixer")).to_be_focused()

    looks = windows()
    looks.sign_in(role="viewer")
    looks.open_session("fixer")
    expect(looks.page.locator(".toolbar .task")).to_have_text(TASK)
    expect(looks.page.locator("[data-action]")).to_have_count(0)
    hub.ask("POST", "/api/sessions/fixer/stop")
    for session in (busy, asks):
        ground.end(session)


def test_a_session_whose_folder_is_gone_is_not_offered_a_restart(
    ground: Ground, hub: HubProcess, window: Window
) -> None:
    place = ground.place / "gone"
    place.mkdir()
    dev = ground.begin_sh("echo ready; exec cat", name="dev", place=place)
    window.open_session("dev")
    window.expect_shown("ready")
    shutil.rmtree(place)
    expect(window.label("dev")).to_have_text("orphaned: workspace no longer exists")
    assert "restart" not in hub.ask("GET", "/api/sessions/dev")["actions"]
    page, end = window.page, window.page.locator(".end-bar")
    expect(end).to_have_text("Orphaned: workspace no longer exists.Stop…")
    end.get_by_role("button", name="Stop…").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(end).to_have_text("Orphaned: workspace no longer exists.Archive")
    eventually(lambda: not alive(dev.agent_pid()), what="the end of the agent")


@pytest.mark.parametrize("panel", ["Diff", "Timeline", "Why"])
def test_a_drawer_never_resizes_the_terminal(ground: Ground, repo: Repo, window: Window, panel: str) -> None:
    repo.write("new.txt", "a line\n")
    dev = ground.begin_sh(
        "echo ready; trap 'stty size' WINCH; while :; do read line && stty size; done", name="dev", place=repo.path
    )
    window.open_session("dev")
    window.expect_shown("ready")
    window.type("")
    page, terminal = window.page, window.page.locator(".pane .terminal-box")
    wire = window.wires[-1]
    eventually(lambda: dev.output().count(b"\n") >= 2, what="the size")
    before, said = box(terminal), wire.asked("terminal.resize", dev.id)
    page.get_by_role("button", name=panel, exact=True).click()
    drawer = page.locator(".side-panel")
    expect(drawer.locator(".panel-body > *").first).to_be_visible()
    drawer.evaluate("one => Promise.all(one.getAnimations().map(animation => animation.finished))")
    place = box(drawer)
    assert box(terminal) == before
    # in a folder that is not its own, whose lines they are is not known
    expect(page.locator(".about .counts")).to_have_count(0)
    assert place["x"] + place["width"] == before["x"] + before["width"]
    assert place["y"] == before["y"]
    share = place["width"] / before["width"]
    assert abs(share - 0.6) < 0.01 if panel == "Diff" else share < 0.5
    # the focus is still on the button that opened it
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)
    page.get_by_role("button", name=panel, exact=True).click()
    page.get_by_role("button", name="Close the panel").click()
    expect(drawer).to_have_count(0)
    # whatever would have been said of the size was said before this was
    window.type("")
    eventually(lambda: len(wire.asked("terminal.input", dev.id)) >= 2, what="what was typed")
    assert wire.asked("terminal.resize", dev.id) == said
    assert box(terminal) == before
    ground.end(dev)
