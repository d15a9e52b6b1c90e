"""The grid: pictures of screens. Whoever looks at them changes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator

from tests.browser.windows import Window, colour, expect
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.support import eventually
from tests.watched import say

SIZES: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1440, "height": 900}},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}
WATCHFUL = "trap 'echo resized' WINCH; echo I am $0; while [ ! -e go ]; do read -t 0.05 x; done; stty size; exec cat"
PIXEL = """
(canvas, [x, y]) => {
    const [at, look] = [[x * canvas.width, y * canvas.height].map(Math.floor), canvas.getContext("2d")];
    return `rgb(${[...look.getImageData(...at, 1, 1).data].slice(0, 3).join(", ")})`;
}
"""


def begin(ground: Ground, hub: HubProcess, name: str, cols: int, rows: int) -> Truth:
    wish = {"command": ["bash", "-c", WATCHFUL, name], "folder": str(ground.place), "name": name}
    made = hub.ask("POST", "/api/sessions", {**wish, "share": True, "cols": cols, "rows": rows})
    return Truth(ground.home, made["session"]["id"])


def open_grid(window: Window) -> Locator:
    window.page.goto(f"{window.hub.url}/?grid=1")
    return window.page.locator(".cell")


def text(cell: Locator) -> Locator:
    """What the picture shows, for those who do not see it."""
    return cell.locator("canvas")


@pytest.mark.parametrize("screen", SIZES)
def test_looking_at_the_grid_resizes_no_agent(
    ground: Ground, hub: HubProcess, windows: Callable[..., Window], screen: str
) -> None:
    sizes = {"wide": (132, 30), "tall": (70, 50)}
    made = {name: begin(ground, hub, name, *size) for name, size in sizes.items()}
    window = windows(**SIZES[screen])
    window.sign_in()
    cells = open_grid(window)
    for at, (name, (cols, rows)) in enumerate(sizes.items()):
        expect(text(cells.nth(at))).to_contain_text(f"I am {name}")
        picture = text(cells.nth(at)).bounding_box()
        box = cells.nth(at).locator(".picture").bounding_box()
        assert picture is not None
        assert box is not None
        assert picture["width"] <= box["width"]
        assert picture["height"] <= box["height"]
        assert picture["width"] / picture["height"] == pytest.approx(cols / rows / 2, rel=0.15)
    (ground.place / "go").touch()
    for at, (name, (cols, rows)) in enumerate(sizes.items()):
        expect(text(cells.nth(at))).to_contain_text(f"{rows} {cols}")
        assert made[name].output() == f"I am {name}\r\n{rows} {cols}\r\n".encode()
    said = [message for wire in window.wires for message in wire.said]
    assert {message["type"] for message in said} == {"session.attach"}
    assert all(message["picture"] for message in said)
    for session in made.values():
        ground.end(session)


def test_the_grid_has_every_live_session_in_its_colours_and_a_click_opens_one(ground: Ground, window: Window) -> None:
    red = r"printf '\033[48;2;200;10;20m%1900s\033[1;1H\033[mI am one' ' '; "
    one = ground.begin_sh(f"{red}{say('blocked', ':kind=permission')}exec cat", name="one")
    two = ground.begin_sh("echo I am two; exec cat", name="two")
    over = ground.begin_sh("echo I am over; exit 0", name="over")
    over.ended()
    page = window.page
    page.get_by_role("button", name="Grid").click()
    cells = page.locator(".cell")
    expect(cells.locator(".cell-name")).to_have_text(["one", "two"])
    expect(text(cells.nth(0))).to_contain_text("I am one")
    expect(text(cells.nth(1))).to_contain_text("I am two")
    assert text(cells.nth(0)).evaluate(PIXEL, [0.5, 0.5]) == "rgb(200, 10, 20)"
    assert text(cells.nth(1)).evaluate(PIXEL, [0.5, 0.5]) != "rgb(200, 10, 20)"
    for cell, name in ((cells.nth(0), "orange"), (cells.nth(1), "green")):
        expect(cell).to_have_class(re.compile(rf"\b{name}\b"))
        border = cell.evaluate("cell => getComputedStyle(cell).borderTopColor")
        wanted = f"getComputedStyle(document.documentElement).getPropertyValue('--{name}')"
        made = f"() => {{ const one = document.createElement('i'); one.style.color = {wanted};"
        assert border == page.evaluate(f"{made} document.body.append(one); return getComputedStyle(one).color; }}")
    expect(cells.locator("header .label")).to_have_text(
        [re.compile(r"^Needs permission \d+s$"), re.compile("^Working ")]
    )
    # the picture itself opens the session, and the grid goes
    text(cells.nth(1)).click(force=True)
    window.expect_shown("I am two")
    window.type("to the second")
    window.expect_shown("to the second")
    # what has a terminal in a tab goes on in the grid without a second one, also when the tab is closed
    page.get_by_role("button", name="Grid").click()
    expect(text(cells.nth(1))).to_contain_text("to the second")
    ground.hitch("send", "two", "from elsewhere")
    expect(text(cells.nth(1))).to_contain_text("from elsewhere")
    asked = window.wires[-1].asked("session.attach", two.id)
    assert [message.get("picture", False) for message in asked] == [True, False]
    page.get_by_label("Close the tab of two").click()
    ground.hitch("send", "two", "without a tab")
    expect(text(cells.nth(1))).to_contain_text("without a tab")
    for session in (one, two):
        ground.end(session)
    expect(cells).to_have_count(0)


def test_only_what_is_in_sight_is_followed(ground: Ground, windows: Callable[..., Window]) -> None:
    names = [f"agent-{number}" for number in range(6)]
    made = [ground.begin_sh(f"echo I am {name}; exec cat", name=name) for name in names]
    window = windows(viewport={"width": 1000, "height": 300})
    window.sign_in()
    cells = open_grid(window)
    expect(cells).to_have_count(len(names))
    expect(text(cells.first)).to_contain_text("I am agent-0")
    wire = window.wires[-1]
    assert wire.asked("session.attach", made[-1].id) == []
    cells.last.scroll_into_view_if_needed()
    expect(text(cells.last)).to_contain_text("I am agent-5")
    eventually(lambda: bool(wire.asked("session.detach", made[0].id)), what="the end of what is out of sight")
    # what was said meanwhile is there when it comes into sight again
    ground.hitch("send", "agent-0", "meanwhile")
    cells.first.scroll_into_view_if_needed()
    expect(text(cells.first)).to_contain_text("meanwhile")
    for session in made:
        ground.end(session)


def test_the_next_run_is_shown_in_the_place_of_the_last(ground: Ground, window: Window) -> None:
    dev = ground.begin_sh("echo run $HITCHPOST_RUN of $$; read line", name="dev")
    other = ground.begin_sh("exec cat", name="other")
    cells = open_grid(window)
    first = f"of {dev.agent_pid()}"
    expect(text(cells.first)).to_contain_text(first)
    ground.hitch("restart", "dev")
    second = f"of {eventually(lambda: dev.agent_pid(2), what='the second run')}"
    expect(text(cells.first)).to_contain_text(second)
    expect(text(cells.first)).not_to_contain_text(first)
    for session in (dev, other):
        ground.end(session)


def test_a_pictures_colours_follow_the_theme(ground: Ground, window: Window) -> None:
    one, two = (ground.begin_sh("echo hello; exec cat", name=name) for name in ("one", "two"))
    cells = open_grid(window)
    expect(text(cells.first)).to_contain_text("hello")
    for scheme in ("light", "dark"):
        window.page.emulate_media(color_scheme=scheme)
        eventually(
            lambda: text(cells.first).evaluate(PIXEL, [0.5, 0.9]) == colour(cells.first.locator(".picture")),
            what=f"the {scheme} colour",
        )
    for session in (one, two):
        ground.end(session)
