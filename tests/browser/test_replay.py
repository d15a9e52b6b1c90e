"""A moment of the timeline is shown as it was, and played from there."""

from __future__ import annotations

import re
from collections.abc import Callable

from hitchpost import wire
from tests.browser.windows import Window, expect
from tests.ground import Ground, Truth
from tests.support import eventually
from tests.watched import say

SCRIPT = """trap 'sleep 0.1; . ./hostile; exit 0' TERM
echo before; while :; do read x; done"""


HOSTILE = """printf '\\033[2J\\033[Hthe end\\n\\033]8;;javascript:window.harm=1\\033\\\\bad\\033]8;;\\033\\\\'
printf '\\033]0;<img src=x onerror=window.harm=2>\\007\\033[c'
"""


def stopped(ground: Ground) -> Truth:
    """A session that shows one screen, and another when it is stopped: with a link that would run a script, a title
    that would be an element, and a question that a live terminal answers."""
    (ground.place / "hostile").write_text(HOSTILE)
    dev = ground.begin_sh(SCRIPT, name="dev")
    eventually(lambda: b"before" in dev.output())
    ground.end(dev)
    return dev


def go_to(window: Window, moment: str) -> None:
    """Click a moment of the timeline, and wait until it is shown."""
    window.page.locator(".timeline").get_by_role("button", name=moment).click()
    expect(window.page.locator(".player")).to_have_attribute("data-settled", "true")


def test_a_click_on_a_moment_shows_the_terminal_as_it_was(ground: Ground, window: Window) -> None:
    stopped(ground)
    page = window.page
    window.unfold("Ended")
    window.open_session("dev")
    page.get_by_role("button", name="Timeline").click()
    go_to(window, "running → stopping")
    player = page.get_by_role("region", name="Replay of dev, run 1")
    window.expect_shown("before")
    expect(window.rows).not_to_contain_text("the end")
    expect(player.locator(".clock")).to_have_text(re.compile(r"\d\d?:\d\d:\d\d"))
    assert player.locator(".ticks i").count() >= 4

    # the other way round
    go_to(window, "stopping → stopped")
    window.expect_shown("the end")
    expect(window.rows).not_to_contain_text("before")
    go_to(window, "running → stopping")
    window.expect_shown("before")

    # played to its end, with the keyboard
    player.get_by_label("Speed").select_option("8")
    player.focus()
    page.keyboard.press("Space")
    window.expect_shown("the end")
    expect(player.get_by_role("button", name="Play")).to_be_visible()

    # what is played can do nothing, and nothing that is typed goes to the session
    box = window.rows.locator("> div").nth(1).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 4, box["y"] + 4)
    page.mouse.click(box["x"] + 5, box["y"] + 5)
    page.keyboard.type("x")
    assert len(window.context.pages) == 1
    assert page.evaluate("window.harm") is None
    assert {message["type"] for message in window.wires[-1].said} <= {
        "session.attach",
        "session.seen",
        "terminal.resize",
    }

    page.keyboard.press("Home")
    expect(player).to_have_attribute("data-settled", "true")
    expect(player.get_by_label("Moment")).to_have_value("0")
    page.keyboard.press("ArrowRight")
    expect(player).to_have_attribute("data-settled", "true")
    window.expect_shown("the end")
    page.keyboard.press("Escape")
    expect(player).to_have_count(0)
    expect(page.locator(".end-bar")).to_have_text("Process stopped. Click to restart.")


def test_the_end_of_a_run_shows_what_was_read_just_after_it(ground: Ground, window: Window) -> None:
    index = stopped(ground).run() / "output" / wire.TIMES
    records, size = index.read_bytes(), wire.TIME_RECORD_BYTES
    late = [records[at : at + size] for at in range(0, len(records), size)]
    first = next(number for number, record in enumerate(late) if record[:1] == wire.AT_OFFSET)
    for number, record in enumerate(late[first + 1 :], first + 1):
        at_us = int.from_bytes(record[1:9], "big") + 300_000  # less than an idle stretch that is shortened
        late[number] = record[:1] + at_us.to_bytes(8, "big") + record[9:]
    index.write_bytes(b"".join(late))
    window.unfold("Ended")
    window.open_session("dev")
    window.page.get_by_role("button", name="Timeline").click()
    go_to(window, "running → stopping")
    window.expect_shown("before")
    go_to(window, "stopping → stopped")
    window.expect_shown("the end")


def test_a_long_recording_is_fetched_in_parts(ground: Ground, window: Window) -> None:
    dev = ground.begin_sh("for i in $(seq 9); do seq 1 20000; done; echo all of it; read x; exit 1", name="dev")
    eventually(lambda: b"all of it" in dev.output(), timeout_s=60)
    ground.hitch("send", "dev", "x")
    assert dev.ended() == "failed"
    asked: list[str] = []
    window.page.on("request", lambda request: asked.append(request.url))
    window.open_session("dev")
    window.page.get_by_role("button", name="Timeline").click()
    go_to(window, "starting → running")
    player = window.page.locator(".player")
    player.get_by_label("Speed").select_option("8")
    player.get_by_role("button", name="Play").click()
    window.expect_shown("all of it")
    expect(player.get_by_role("button", name="Play")).to_be_visible()
    lines = [line for line in window.lines() if line]
    end = lines.index("all of it")
    assert lines[:end] == [str(number) for number in range(20001 - end, 20001)]
    assert len([url for url in asked if "from=" in url]) >= len(dev.output()) // (256 * 1024) - 1


def test_on_a_phone_the_player_has_the_whole_page(ground: Ground, windows: Callable[..., Window]) -> None:
    stopped(ground)
    window = windows(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    window.sign_in()
    window.unfold("Ended")
    window.open_session("dev")
    window.page.get_by_role("button", name="Timeline").click()
    go_to(window, "running → stopping")
    expect(window.page.locator(".side-panel")).to_have_count(0)
    window.expect_shown("before")
    assert window.page.evaluate("document.documentElement.scrollWidth") == 390
    for part in (".controls", ".player > header", ".player .xterm-screen"):
        box = window.page.locator(part).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


def test_the_timeline_shows_what_the_session_was_and_plays_from_a_click(ground: Ground, window: Window) -> None:
    steps = f"{say('working')}echo first; read x; {say('blocked')}echo second; read x; echo third"
    dev = ground.begin_sh(f"{steps}; exec sleep 1000", name="dev")
    other = ground.begin_sh("exec cat", name="other")
    eventually(lambda: b"first" in dev.output())
    ground.hitch("send", "dev", "go on")
    eventually(lambda: b"second" in dev.output())
    eventually(lambda: any(line.get("state") == "blocked" for line in dev.story()), what="the report in the story")
    ground.hitch("send", "--force", "dev", "and on")
    eventually(lambda: b"third" in dev.output())
    page = window.page
    window.open_session("dev")
    page.get_by_role("button", name="Timeline").click()
    bar = page.locator(".spans .bar")
    stretches = bar.locator(".stretches i")
    expect(stretches.last).to_have_attribute("title", re.compile("^Needs you · "))
    assert [one.get_attribute("class") for one in stretches.all()] == ["blue", "green", "orange"]
    expect(page.locator(".spans .legend li")).to_have_text(["Starting", "Working", "Needs you"])
    pins = bar.locator(".pin")
    expect(pins.first).to_have_attribute("title", re.compile(r"^Prompt at .*: go on$"))
    expect(pins).to_have_count(2)

    # from the prompt on, by itself
    pins.first.click()
    player = page.get_by_role("region", name="Replay of dev, run 1")
    expect(player.get_by_role("button", name="Pause")).to_be_visible()
    window.expect_shown("third")
    page.keyboard.press("Escape")

    # and from the beginning of the bar
    bar.locator(".run").click(position={"x": 1, "y": 15})
    expect(player.get_by_role("button", name="Pause")).to_be_visible()
    window.expect_shown("first")
    for session in (dev, other):
        ground.end(session)
