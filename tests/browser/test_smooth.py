"""The page keeps up: a key is answered at once, frames come in time, and what waits for its turn is shown in full.

Figures are held against a page without anything in the same browser at the same moment, and the best of a few rounds
counts: a busy machine makes some of them slow, a slow page makes all of them slow. ``script/bench`` tells the rest.
"""

from __future__ import annotations

import json
from statistics import median

from bench.page import bare, frames, keystrokes
from tests.browser.windows import Window, expect
from tests.ground import Ground
from tests.support import eventually

ROUNDS = 4
KEYS = 15
FRAMES_S = 0.7
TALK = "n=0; while [ $n -lt {} ]; do n=$((n + 1)); echo talk-$n-end; read -t 0.05 line; done; exec cat"


def test_a_key_is_answered_within_50_ms(ground: Ground, window: Window) -> None:
    dev = ground.begin("cat", name="dev")
    window.open_session("dev")
    expect(window.page.locator(".pane .terminal:not(.read-only) .xterm-rows")).to_be_visible()
    blank = bare(window.context.new_page())
    took = []
    for _ in range(ROUNDS):
        blank.bring_to_front()
        least_ms = median(keystrokes(blank, "body", KEYS))
        window.page.bring_to_front()
        window.page.locator(".pane .xterm-helper-textarea").focus()
        took.append(median(keystrokes(window.page, ".pane .xterm-rows", KEYS)) - least_ms)
        if took[-1] <= 50:
            break
    assert min(took) <= 50, took
    ground.end(dev)


def test_frames_come_in_time_beside_talking_sessions_and_all_is_shown_in_the_end(
    ground: Ground, window: Window
) -> None:
    names = [f"agent-{number}" for number in range(1, 9)]
    sessions = [ground.begin("bash", "-c", TALK.format(120), name=name) for name in names]
    page = window.page
    expect(page.locator(".row")).to_have_count(len(names))
    kept = {"tabs": [one.id for one in sessions], "current": sessions[0].id}
    page.evaluate("kept => sessionStorage.setItem('tabs', kept)", json.dumps(kept))
    page.reload()
    page.get_by_role("button", name="Grid").click()
    rows = page.locator(".cell canvas")
    expect(rows).to_have_count(len(names))
    blank = bare(window.context.new_page())
    took = []
    for _ in range(ROUNDS):
        blank.bring_to_front()
        least_ms = median(frames(blank, FRAMES_S).frames)
        page.bring_to_front()
        took.append(median(frames(page, FRAMES_S).frames) / least_ms)
        if took[-1] <= 2.5:
            break
    assert min(took) <= 2.5, took
    for row in rows.all():
        expect(row).to_contain_text("talk-120-end")
    page.get_by_role("button", name="Grid").click()
    for name in names[-2:]:
        window.open_session(name)
        window.expect_shown("talk-119-end")
        last = [line for line in window.lines() if line][-2:]
        assert last == ["talk-119-end", "talk-120-end"]
    for session in sessions:
        ground.end(session)


def test_what_a_terminal_that_nobody_sees_is_asked_is_answered(ground: Ground, window: Window) -> None:
    """Where the cursor is can only be told by who has taken all the output before."""
    ask = r"""stty raw -echo; printf '\rfour\033[6n'; head -c 6 | od -An -c"""
    asks = ground.begin_sh(f"read line; while [ ! -e go ]; do sleep 0.05; done; {ask}; exec cat", name="asks")
    other = ground.begin_sh("echo I am other; exec cat", name="other")
    window.open_session("asks")
    window.type("mine")
    window.expect_shown("mine")
    window.open_session("other")
    window.expect_shown("I am other")
    (ground.place / "go").touch()
    eventually(lambda: b"033   [   2   ;   5   R" in asks.output(), what="the answer")
    for session in (asks, other):
        ground.end(session)
