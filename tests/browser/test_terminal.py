"""Terminals in the page: what is typed, what is shown, late, early, in two sizes and on a phone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.browser.windows import Window, expect
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.support import eventually

ECHO = 'stty -echo; while read line; do echo "<$line>"; done'


def test_what_is_typed_is_answered(ground: Ground, window: Window) -> None:
    dev = ground.begin_sh(f"echo ready; {ECHO}", name="dev")
    window.open_session("dev")
    window.expect_shown("ready")
    window.type("häßlich 漢字")
    window.expect_shown("<häßlich 漢字>")
    assert "<häßlich 漢字>".encode() in dev.output()
    window.page.get_by_label("Prompt for dev").fill("sent as a prompt")
    window.page.keyboard.press("Enter")
    window.expect_shown("<sent as a prompt>")
    expect(window.page.get_by_label("Prompt for dev")).to_have_value("")
    window.page.keyboard.press("ArrowUp")
    expect(window.page.get_by_label("Prompt for dev")).to_have_value("sent as a prompt")
    ground.end(dev)


@pytest.mark.ids("F73")
def test_a_late_tab_shows_the_screen_and_its_history_at_once(ground: Ground, windows: Callable[..., Window]) -> None:
    script = "for n in $(seq 200); do echo row-$n-end; done; printf '\\033[31mred\\033[m prompt> '; exec cat"
    dev = ground.begin_sh(script, name="dev")
    eventually(lambda: b"prompt>" in dev.output())
    for width in (1280, 700):
        window = windows(viewport={"width": width, "height": 700})
        window.sign_in()
        window.open_session("dev")
        window.expect_shown("red prompt>")
        shown = [line for line in window.lines() if line]
        assert shown[-1] == "red prompt>"
        assert shown[:-1] == [f"row-{number}-end" for number in range(202 - len(shown), 201)]
        window.page.get_by_label("More for dev").click()
        window.page.get_by_role("button", name="Search the terminal").click()
        window.page.get_by_label("Search the terminal").fill("row-7-end")
        window.expect_shown("row-7-end")
        expect(window.page.locator(".search-bar [role=status]")).to_have_text("1 of 1")
        window.page.get_by_label("Search the terminal").fill("row-777-end")
        expect(window.page.locator(".search-bar [role=status]")).to_have_text("not found")
    ground.end(dev)


def test_a_reload_shows_the_same_tabs_and_screens(ground: Ground, window: Window) -> None:
    sessions = [ground.begin_sh(f"echo I am {name}; {ECHO}", name=name) for name in ("one", "two")]
    for name in ("one", "two"):
        window.open_session(name)
        window.expect_shown(f"I am {name}")
    window.page.reload()
    window.expect_shown("I am two")
    expect(window.page.locator(".tab-name")).to_have_text(["one", "two"])
    window.tab("one").locator(".tab-name").click()
    window.expect_shown("I am one")
    for session in sessions:
        ground.end(session)


def test_the_size_belongs_to_who_typed_last(ground: Ground, windows: Callable[..., Window]) -> None:
    dev = ground.begin_sh("while read line; do stty size; done", name="dev")
    wide, narrow = windows(), windows(viewport={"width": 640, "height": 500})
    for window in (wide, narrow):
        window.sign_in()
        window.open_session("dev")
    sizes = {}
    for name, window in (("wide", wide), ("narrow", narrow), ("wide again", wide)):
        window.type(f"from {name}")
        window.expect_shown(f"from {name}")
        sizes[name] = eventually(partial(size_after, dev, f"from {name}"), what="the size")
        # both show the same screen, whatever room they have
        for other in (wide, narrow):
            other.expect_shown(f"from {name}")
        eventually(lambda: wide.lines() == narrow.lines(), what="the same lines in both windows")
    assert sizes["wide"] == sizes["wide again"]
    assert int(sizes["narrow"][1]) < int(sizes["wide"][1])
    ground.end(dev)


def size_after(session: Truth, line: str) -> list[bytes]:
    """Rows and columns that the program was told after it read ``line``; empty while it has not answered."""
    said = session.output().partition(line.encode())[2]
    return said.split()[:2] if said.count(b"\n") >= 2 else []


def test_a_question_of_the_program_is_answered_once(ground: Ground, windows: Callable[..., Window]) -> None:
    script = """stty raw -echo
    while c=$(dd bs=1 count=1 2>/dev/null); do
        printf %s "$c" | od -An -c
        if test "$c" = q; then printf '\\033[c'; fi
    done"""
    dev = ground.begin_sh(script, name="dev")
    first, second = windows(), windows()
    for window in (first, second):
        window.sign_in()
        window.open_session("dev")
    first.page.locator(".pane .xterm-helper-textarea").focus()
    first.page.keyboard.type("qz")
    eventually(lambda: b"c\n" in dev.output().replace(b"\r", b""), what="the answer")
    second.page.locator(".pane .xterm-helper-textarea").focus()
    second.page.keyboard.type("y")
    eventually(lambda: b"y\n" in dev.output().replace(b"\r", b""))
    assert dev.output().count(b"033") == 1
    ground.end(dev)


def test_on_a_phone_the_list_gives_way_to_the_terminal_and_keys_are_there(
    ground: Ground, windows: Callable[..., Window]
) -> None:
    dev = ground.begin_sh("echo ready; exec cat -v", name="dev")
    window = windows(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    window.sign_in()
    expect(window.page.locator(".stage")).to_be_hidden()
    window.open_session("dev")
    window.expect_shown("ready")
    expect(window.page.locator(".list")).to_be_hidden()
    keys = window.page.get_by_role("toolbar", name="Keys")
    for key in ("Esc", "Arrow up", "Ctrl"):
        keys.get_by_role("button", name=key, exact=True).tap()
    window.page.locator(".pane .xterm-helper-textarea").focus()
    window.page.keyboard.type("g")
    keys.get_by_role("button", name="Enter").tap()
    window.expect_shown("^[^[[A^G")
    assert window.page.evaluate("document.documentElement.scrollWidth") == 390
    for part in (".toolbar", ".prompt-box", ".key-bar", ".terminal-box"):
        box = window.page.locator(part).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    window.page.get_by_role("button", name="Back to the list").click()
    expect(window.row("dev")).to_be_visible()
    ground.end(dev)


def click(window: Window, row: int, *, is_link: bool) -> None:
    """As a person does, who sees whether there is a link before."""
    box = window.rows.locator("> div").nth(row).bounding_box()
    assert box is not None
    window.page.mouse.move(box["x"] + 8, box["y"] + 4)
    window.page.mouse.move(box["x"] + 12, box["y"] + 5)
    expect(window.page.locator(".pane .xterm-cursor-pointer")).to_have_count(int(is_link))
    window.page.mouse.click(box["x"] + 12, box["y"] + 5)


def test_only_web_addresses_are_links(ground: Ground, hub: HubProcess, window: Window) -> None:
    link = "\\033]8;;{}\\033\\\\{}\\033]8;;\\033\\\\\\n"
    wrong = ("javascript:window.harm=1", "file:///etc/passwd", "data:text/html,<script>alert(1)</script>")
    right = f"{hub.url}/"  # whatever is opened at the hub's own address is the page
    texts = [
        *(link.format(one, "bad") for one in wrong),
        "javascript:alert(1)\\n",
        f"{right}\\n",
        link.format(right, "good"),
    ]
    script = f"stty -echo; echo ready; read x; printf '\\033[H{''.join(texts)}'; echo end; exec cat"
    dev = ground.begin_sh(script, name="dev")
    window.open_session("dev")
    window.expect_shown("ready")
    window.type("")
    window.expect_shown("end")
    for shown in ("live", "after a reload"):
        for good in (4, 5):
            with window.context.expect_page() as opened:
                click(window, good, is_link=True)
            assert opened.value.evaluate("window.opener") is None
            assert opened.value.url == right
            opened.value.close()
            for bad in range(4):
                click(window, bad, is_link=False)
        if shown == "live":
            window.page.reload()
            window.expect_shown("end")
    assert len(window.context.pages) == 1
    assert window.page.evaluate("window.harm") is None
    ground.end(dev)


def test_a_flood_ends_with_the_right_screen_and_other_terminals_answer(ground: Ground, window: Window) -> None:
    script = "read go; i=0; while [ $i -lt 30 ]; do seq 1 60000; i=$((i + 1)); done; echo the end; exec cat"
    flood, quiet = ground.begin_sh(script, name="flood"), ground.begin_sh(ECHO, name="quiet")
    window.open_session("quiet")
    window.open_session("flood")
    window.type("go")
    window.tab("quiet").locator(".tab-name").click()
    window.type("are you there")
    window.expect_shown("<are you there>")
    window.tab("flood").locator(".tab-name").click()
    eventually(lambda: b"the end" in flood.output()[-100:], timeout_s=60)
    window.expect_shown("the end")
    shown = [line for line in window.lines() if line]
    assert shown[-1] == "the end"
    assert shown[:-1] == [str(number) for number in range(60002 - len(shown), 60001)]
    for session in (flood, quiet):
        ground.end(session)


def test_ctrl_c_copies_what_is_selected_and_else_interrupts(ground: Ground, windows: Callable[..., Window]) -> None:
    dev = ground.begin_sh("trap 'echo interrupted' INT; echo ready; while :; do read line; done", name="dev")
    window = windows(permissions=["clipboard-read", "clipboard-write"])
    window.sign_in()
    window.open_session("dev")
    window.expect_shown("ready")
    box = window.rows.locator("> div").first.bounding_box()
    assert box is not None
    window.page.mouse.dblclick(box["x"] + 12, box["y"] + 5)
    window.page.keyboard.press("Control+c")
    eventually(lambda: window.page.evaluate("navigator.clipboard.readText()") == "ready", what="the copy")
    assert b"interrupted" not in dev.output()
    assert window.wires[-1].asked("terminal.input", dev.id) == []
    window.page.locator(".pane .xterm-helper-textarea").focus()
    window.page.keyboard.press("Control+c")
    window.expect_shown("interrupted")
    ground.end(dev)


def test_a_search_counts_and_leaves_the_size_alone(ground: Ground, window: Window) -> None:
    dev = ground.begin_sh("for n in $(seq 200); do echo row-$n-end; done; exec cat", name="dev")
    window.open_session("dev")
    window.expect_shown("row-200-end")
    said = window.wires[-1].asked("terminal.resize", dev.id)
    window.page.keyboard.press("Control+Shift+f")
    field, status = window.page.get_by_label("Search the terminal"), window.page.locator(".search-bar [role=status]")
    field.fill("row-19")
    expect(status).to_have_text("1 of 11")
    window.page.keyboard.press("Enter")
    expect(status).to_have_text("2 of 11")
    window.page.keyboard.press("Shift+Enter")
    expect(status).to_have_text("1 of 11")
    field.fill("row-191")
    expect(status).to_have_text("1 of 1")
    field.fill("row-777")
    expect(status).to_have_text("not found")
    field.fill("")
    expect(status).to_have_text("")
    window.page.keyboard.press("Escape")
    expect(field).to_have_count(0)
    assert window.wires[-1].asked("terminal.resize", dev.id) == said
    ground.end(dev)


def test_a_size_that_somebody_else_gave_is_explained_and_taken_back(
    ground: Ground, windows: Callable[..., Window]
) -> None:
    dev = ground.begin_sh("while read line; do stty size; done", name="dev")
    wide, narrow = windows(), windows(viewport={"width": 640, "height": 500})
    for window in (wide, narrow):
        window.sign_in()
        window.open_session("dev")
    narrow.type("from narrow")
    rows, cols = eventually(partial(size_after, dev, "from narrow"), what="the size")
    note = wide.page.locator(".size-note")
    expect(note).to_contain_text(f"sized elsewhere: {int(cols)}×{int(rows)}")
    expect(narrow.page.locator(".size-note")).to_have_count(0)
    note.get_by_role("button", name="Take over").click()
    expect(note).to_have_count(0)
    expect(narrow.page.locator(".size-note")).to_be_visible()
    wide.type("from wide")
    assert int(eventually(partial(size_after, dev, "from wide"), what="the size")[1]) > int(cols)
    ground.end(dev)


def test_the_active_tab_is_in_sight(ground: Ground, window: Window) -> None:
    names = [f"a-session-with-a-long-name-{number}" for number in range(8)]
    sessions = [ground.begin_sh("exec cat", name=name) for name in names]
    for name in names:
        window.open_session(name)
    for name in (names[0], names[-1]):
        window.row(name).locator(".open-session").click()
        bar, tab = window.page.locator(".tabs ul").bounding_box(), window.tab(name).bounding_box()
        assert bar is not None
        assert tab is not None
        assert bar["x"] <= tab["x"] + 1
        assert tab["x"] + tab["width"] <= bar["x"] + bar["width"] + 1
    for session in sessions:
        ground.end(session)
