"""What the hub says about a session, the page shows: its colour, its words, and what a person may do with it."""

from __future__ import annotations

import re
from collections.abc import Callable

from hitchpost.cli.ps import table_from_files, table_from_hub
from hitchpost.model.record import LISTED
from hitchpost.text import COLOURS
from tests.browser.windows import Window, colour, expect
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.support import eventually
from tests.watched import say

DOTS = {"green": "rgb(76, 183, 130)", "orange": "rgb(240, 161, 50)"}


def test_a_session_has_the_same_colour_in_ps_and_in_the_page(ground: Ground, hub: HubProcess, window: Window) -> None:
    says = {"blocked": "blocked", "waiting": "idle", "running": "working"}
    made = {word: ground.begin_sh(f"{say(state)}exec sleep 1000", name=word) for word, state in says.items()}
    expected = {"blocked": "orange", "waiting": "orange", "running": "green"}
    headlines = {"blocked": "Needs you", "waiting": "Your turn", "running": "Working"}
    for word, name in expected.items():
        expect(window.label(word)).to_have_class(f"label {name}")
        expect(window.row(word).locator(".headline")).to_have_text(headlines[word])
        assert colour(window.row(word).locator(".dot")) == DOTS[name]
        assert ground.ps(made[word])["colour"] == name
    home = str(ground.home)
    for table in (table_from_files(home, LISTED, colour=True), table_from_hub(home, LISTED, colour=True)):
        assert table is not None
        lines = bytes(table).decode().splitlines()
        for word, name in expected.items():
            assert f"\x1b[{COLOURS[name]}mrunning" in next(line for line in lines if f" {word} " in line)
    for session in made.values():
        ground.end(session)


def test_a_viewer_sees_no_action_that_it_cannot_do(ground: Ground, windows: Callable[..., Window]) -> None:
    live = ground.begin_sh("echo ready; exec sleep 1000", name="live")
    failed = ground.begin_sh("exit 3", name="failed")
    assert failed.ended() == "failed"
    window = windows()
    window.sign_in(role="viewer")
    page = window.page
    expect(window.row("failed").locator(".dot")).to_be_visible()
    may = {"open-session", "tab-name", "tab-close", "back", "grid-toggle", "sign-out", "brand", "fold", "count"}
    may |= {"palette-hint", "card-name"}
    words = {"Why", "Timeline", "Diff", "?", "Settings and keys", "Search the terminal", "Download the recording"}
    for name in ("live", "failed"):
        window.open_session(name)
        expect(page.locator(".toolbar .label")).to_contain_text("running" if name == "live" else "failed")
        page.get_by_label(f"More for {name}").click()
        for button in page.get_by_role("button").all():
            classes = set((button.get_attribute("class") or "").split())
            name = button.get_attribute("aria-label") or button.inner_text()
            assert classes & may or name in words, name
        expect(page.locator(".prompt-box, .key-bar, button.dot, button.end-bar")).to_have_count(0)
    expect(page.locator(".end-bar")).to_have_text("Process exited with code 3.")
    ground.end(live)


def test_idle_words_come_and_go_without_another_fetch(ground: Ground, hub: HubProcess, window: Window) -> None:
    dev = ground.begin_sh("echo ready; read line; echo more; exec sleep 1000", name="dev")
    expect(window.label("dev")).to_have_text("running")
    hub.ask("PATCH", f"/api/sessions/{dev.id}", {"idle_after_s": 2})
    asked: list[str] = []
    window.page.on("request", lambda request: asked.append(request.url))
    expect(window.label("dev")).to_have_text(re.compile(r"^running \(idle [5-9]s\)$"))
    ground.hitch("send", "dev", "go on")
    eventually(lambda: b"more" in dev.output(), what="more")
    expect(window.label("dev")).to_have_text(re.compile(r"^running( \(idle [0-4]s\))?$"))
    assert asked == []
    ground.end(dev)
