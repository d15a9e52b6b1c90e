"""The left side of the page: sections, rows and what can be done with them; home, palette, keys and presence."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Route

from tests.browser.test_barriers import AXE, EVERY_RULE, ONLY_COLOURS, PHONE, barriers
from tests.browser.windows import Window, box, expect
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.repos import Repo
from tests.support import eventually
from tests.watched import say

ECHO = 'stty -echo; echo "I am $0"; while read line; do echo "<$line>"; done'


def says(state: str, message: str = "") -> str:
    return f"{say(state, message=message)}exec sleep 1000"


def on_word(*states: str) -> str:
    """An agent that reports one state after the other, the next whenever it is sent a line."""
    steps = "read line\n".join(map(say, states))
    return f"stty -echo; {steps}exec sleep 1000"


def ended(ground: Ground, script: str, name: str) -> Truth:
    made = ground.begin_sh(script, name=name)
    made.ended()
    return made


def shot(window: Window, name: str) -> None:
    """In both colour schemes, for who wants to look."""
    if folder := os.environ.get("SHOTS"):
        for scheme in ("light", "dark"):
            window.page.emulate_media(color_scheme=scheme)
            window.page.screenshot(path=f"{folder}/rail-{name}-{scheme}.png")


def titles(window: Window) -> Locator:
    return window.page.locator(".part-head .fold")


def test_sections_have_counts_that_filter_and_ended_is_folded(ground: Ground, window: Window) -> None:
    page = window.page
    scripts = {
        "asks": says("blocked", "Bash: rm -r build"),
        "works": says("working"),
        "done": says("done", "All green"),
    }
    live = [ground.begin_sh(script, name=name) for name, script in scripts.items()]
    quits = ground.begin_sh(says("working"), name="quits")
    ended(ground, "exit 3", "failed")
    ground.end(quits)
    expect(titles(window)).to_have_text(["Needs you", "Finished", "Working", "Ended"])
    expect(page.locator(".count")).to_have_text(["2", "1", "1", "1"])
    expect(page.locator(".row .name")).to_have_text(["asks", "failed", "done", "works"])
    expect(window.row("asks").locator(".headline")).to_have_text("Needs you Bash: rm -r build")
    expect(window.row("asks").locator(".where")).to_have_text("sh · place")
    expect(page.locator(".status-line")).to_contain_text("2 need you, 1 working")
    expect(page.locator(".status-line .version")).to_have_text(ground.hitch("--version").out.split()[-1])
    shot(window, "sections")

    # a search finds what is folded, and a count shows only its own
    page.get_by_label("Filter sessions").fill("quits")
    expect(page.locator(".row .name")).to_have_text(["quits"])
    page.get_by_label("Filter sessions").fill("rm -r")
    expect(page.locator(".row .name")).to_have_text(["asks"])
    page.get_by_label("Filter sessions").press("Escape")
    page.get_by_role("button", name="Only Ended: 1").click()
    expect(page.locator(".row .name")).to_have_text(["quits"])
    page.locator(".only", has_text="Only Ended").click()
    expect(page.locator(".row")).to_have_count(4)

    # folded by hand, and after a reload
    window.part("Needs you").locator(".fold").click()
    window.unfold("Ended")
    expect(page.locator(".row .name")).to_have_text(["done", "works", "quits"])
    page.reload()
    expect(page.locator(".row .name")).to_have_text(["done", "works", "quits"])

    # one line each
    tall = box(window.row("works"))
    window.set_view("One line each", True)
    low = box(window.row("works"))
    assert low["height"] < 30 < tall["height"]
    expect(window.row("works").locator(".where")).to_be_hidden()
    shot(window, "compact")
    for session in live:
        ground.end(session)


def test_projects_are_repositories_and_can_be_sections(ground: Ground, repo: Repo, window: Window) -> None:
    page = window.page
    repo.commit("a.txt", "a\n")
    made = ground.hitch(
        "run", "--json", "--branch", "fix-auth", "--name", "fixer", "--", "sleep", "1000", cwd=repo.path
    )
    assert made.json()["workspace"]["repository"] == str(repo.path)
    inside = ground.begin_sh("sleep 1000", name="inside", place=repo.path)
    other = ground.begin_sh("sleep 1000", name="other")
    name = repo.path.name
    expect(window.row("fixer").locator(".where")).to_have_text(f"sleep · {name} ⎇ fix-auth")
    expect(page.locator(".row")).to_have_count(3)
    page.get_by_label("Filter sessions").fill(name)
    expect(page.locator(".row")).to_have_count(2)
    page.get_by_label("Filter sessions").fill("")
    page.get_by_label("Project", exact=True).select_option(str(repo.path))
    assert set(window.names()) == {"fixer", "inside"}
    page.get_by_label("Project", exact=True).select_option("")
    window.set_view("by project", True)
    expect(titles(window)).to_have_text(sorted(["place", name]))
    ground.end(other)
    expect(window.part("place").locator(".rest .fold")).to_have_text("1 ended")
    expect(window.row("other")).to_have_count(0)
    window.part("place").locator(".rest .fold").click()
    expect(window.row("other")).to_be_visible()
    ground.hitch("stop", "fixer")
    ground.end(inside)


def test_old_failures_do_not_push_down_what_lives_and_are_seen_at_once(
    ground: Ground, hub: HubProcess, window: Window
) -> None:
    for number in range(9):
        ended(ground, "exit 3", f"failed-{number}")
    asks, works = (
        ground.begin_sh(says(state), name=name) for state, name in (("blocked", "asks"), ("working", "works"))
    )
    page = window.page
    newest = [f"failed-{number}" for number in (8, 7, 6, 5, 4)]
    expect(page.locator(".row .name")).to_have_text(["asks", *newest, "works"])
    expect(page.get_by_role("button", name="4 more failed")).to_be_visible()
    shot(window, "failures")
    page.get_by_role("button", name="4 more failed").click()
    expect(page.locator(".row")).to_have_count(11)
    page.get_by_role("button", name="Mark all as seen").click()
    window.leave_list()
    expect(page.locator(".row .name")).to_have_text(["asks", "works"])
    expect(window.part("Ended").locator(".count")).to_have_text("9")
    assert sum(row["seen_at"] is not None for row in hub.ask("GET", "/api/sessions")) == 9
    for session in (asks, works):
        ground.end(session)


def test_nothing_moves_under_the_pointer(ground: Ground, window: Window) -> None:
    one, two = ground.begin_sh(says("working"), name="one"), ground.begin_sh(on_word("working", "blocked"), name="two")
    page = window.page
    expect(page.locator(".row .name")).to_have_text(["two", "one"])
    window.row("one").hover()
    ground.hitch("send", "two", "on")
    expect(window.row("two").locator(".headline")).to_have_text("Needs you")
    expect(window.row("two").locator(".flash")).to_be_attached()
    three = ground.begin_sh(says("blocked"), name="three")
    expect(page.get_by_role("button", name="The list has changed")).to_be_visible()
    assert window.names() == ["two", "one"]
    expect(titles(window)).to_have_text(["Working"])
    window.leave_list()
    expect(page.locator(".row .name")).to_have_text(["three", "two", "one"])
    expect(titles(window)).to_have_text(["Needs you", "Working"])

    # who types elsewhere is not about to click
    window.row("one").locator(".open-session").click()
    ground.end(three)
    expect(page.get_by_role("button", name="The list has changed")).to_be_visible()
    page.keyboard.press("a")
    expect(page.locator(".row .name")).to_have_text(["two", "one"])
    for session in (one, two):
        ground.end(session)


def test_a_row_is_pinned_snoozed_and_renamed(ground: Ground, hub: HubProcess, window: Window) -> None:
    first, second = (ground.begin_sh(says("blocked"), name=name) for name in ("first", "second"))
    page = window.page
    expect(page.locator(".row .name")).to_have_text(["second", "first"])
    window.choose("first", "Pin")
    expect(page.locator(".row .name")).to_have_text(["first", "second"])
    expect(window.row("first").get_by_label("pinned")).to_be_visible()
    window.choose("second", "Snooze for an hour")
    expect(window.part("Quiet").locator(".name")).to_have_text(["second"])
    expect(window.row("second").locator(".headline .word")).to_have_text("Snoozed")
    expect(page.locator(".status-line")).to_contain_text("1 needs you")
    window.choose("second", "End the snooze")
    expect(window.part("Needs you").locator(".name")).to_have_text(["first", "second"])
    window.choose("second", "Snooze until tomorrow")
    expect(window.part("Quiet").locator(".name")).to_have_text(["second"])

    # the menu gives the focus back, also after a deed
    more = page.get_by_label("Menu of first").and_(page.get_by_role("button"))
    for key in ("Escape", "Enter"):
        more.press("Enter")
        item = page.get_by_role("menuitem", name="Unpin", exact=True)
        item.press(key)
        expect(item).to_have_count(0)
        expect(more).to_be_focused()
    expect(window.row("first").get_by_label("pinned")).to_have_count(0)

    # Enter keeps the new name, Escape the old one
    window.choose("first", "Rename…")
    field = page.get_by_role("dialog", name="Rename first").get_by_label("Name")
    expect(field).to_be_focused()
    field.fill("renamed")
    field.press("Escape")
    expect(field).to_have_count(0)
    expect(window.row("first")).to_be_visible()
    window.row("first").locator(".open-session").focus()
    page.keyboard.press("F2")
    field.fill("renamed")
    field.press("Enter")
    expect(window.row("renamed")).to_be_visible()
    expect(field).to_have_count(0)
    told = hub.ask("GET", f"/api/sessions/{first.id}")
    assert (told["name"], told["pinned"]) == ("renamed", False)
    # a name that is taken is refused, and the old one stays
    window.choose("renamed", "Rename…")
    page.get_by_label("Name", exact=True).fill("second")
    page.keyboard.press("Enter")
    trouble = page.get_by_role("dialog", name="Rename renamed").get_by_role("alert")
    expect(trouble).to_have_text("Another session has this name. Choose another one.")
    expect(window.row("renamed")).to_be_visible()
    page.keyboard.type("!")
    expect(trouble).to_have_count(0)
    page.keyboard.press("Escape")
    for session in (first, second):
        ground.end(session)


def test_a_rename_that_is_answered_late_touches_no_other(ground: Ground, window: Window) -> None:
    first, second = (ground.begin_sh(says("working"), name=name) for name in ("first", "second"))
    page = window.page
    held: list[Route] = []
    page.route("**/api/sessions/*", lambda route: held.append(route))
    field = page.get_by_label("Name", exact=True)

    def rename_then(name: str, new: str, other: str = "") -> None:
        """The answer comes when the dialog is closed, or another session's."""
        window.choose(name, "Rename…")
        field.fill(new)
        field.press("Enter")
        eventually(lambda: held or page.evaluate("0"), what="the request")
        field.press("Escape")
        expect(field).to_be_hidden()
        if other:
            window.choose(other, "Rename…")
        held.pop().continue_()

    rename_then("first", "renamed", other="second")
    expect(window.row("renamed")).to_be_visible()
    expect(field).to_have_value("second")
    page.keyboard.press("Escape")
    taken = "renamed: Another session has this name. Choose another one."
    rename_then("renamed", "second", other="second")
    expect(page.locator(".notice")).to_contain_text(taken)
    expect(page.get_by_role("dialog").get_by_role("alert")).to_have_count(0)
    expect(field).to_have_value("second")
    page.keyboard.press("Escape")
    page.get_by_label("Dismiss").click()
    rename_then("renamed", "second")
    expect(page.locator(".notice")).to_contain_text(taken)
    for session in (first, second):
        ground.end(session)


def test_several_are_selected_stopped_archived_and_seen(ground: Ground, hub: HubProcess, window: Window) -> None:
    names = ("a", "b", "c")
    live = [ground.begin_sh(says("working"), name=name) for name in names]
    failed = ended(ground, "exit 1", "failed")
    page, bar = window.page, window.page.get_by_role("toolbar", name="Selected sessions")
    expect(page.locator(".row .name")).to_have_text(["failed", "c", "b", "a"])
    window.row("c").locator(".open-session").click(modifiers=["Control"])
    expect(page.locator(".pane")).to_have_count(0)
    window.row("a").locator(".open-session").click(modifiers=["Shift"])
    expect(bar).to_contain_text("3 selected")
    page.get_by_label("Select b").uncheck()
    # what is selected keeps its place
    edges = [(place["x"], place["width"]) for place in (box(window.row(name)) for name in names)]
    assert edges == [edges[0]] * 3
    shot(window, "selection")
    bar.get_by_role("button", name="Stop 2").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop", exact=True).click()
    window.leave_list()
    expect(bar).to_have_count(0)
    expect(page.locator(".row .name")).to_have_text(["failed", "b"])
    # what is folded between two is not selected with them
    window.part("Working").locator(".fold").click()
    window.unfold("Ended")
    expect(page.locator(".row")).to_have_count(3)
    window.row("failed").locator(".open-session").click(modifiers=["Control"])
    page.locator(".row .open-session").last.click(modifiers=["Shift"])
    expect(bar).to_contain_text("3 selected")
    expect(page.locator(".row .pick:checked")).to_have_count(3)
    page.get_by_role("button", name="Select none").click()
    for part in ("Working", "Ended"):
        window.part(part).locator(".fold").click()
    window.choose("failed", "Select")
    bar.get_by_role("button", name="Mark as seen").click()
    window.leave_list()
    expect(page.locator(".row .name")).to_have_text(["b"])
    window.unfold("Ended")
    for name in ("a", "c", "failed"):
        window.row(name).locator(".open-session").focus()
        page.keyboard.press("x")
    expect(bar).to_contain_text("3 selected")
    bar.get_by_role("button", name="Archive 3").click()
    window.leave_list()
    expect(page.locator(".row .name")).to_have_text(["b"])
    notice = page.locator(".notice", has_text="Archived 3 sessions.")
    notice.get_by_role("button", name="Undo").click()
    expect(page.locator(".row")).to_have_count(4)
    # one at a time, by its menu
    for name in ("a", "c", "failed"):
        window.choose(name, "Archive")
        expect(page.locator(".notice", has_text=f"Archived {name}.")).to_be_visible()
    records = {row["name"]: row["record"] for row in hub.ask("GET", "/api/sessions?all=true")}
    assert records == {"a": "archived", "b": "active", "c": "archived", "failed": "archived"}
    assert failed.id
    ground.end(live[1])


def test_the_palette_finds_sessions_and_commands(ground: Ground, hub: HubProcess, window: Window) -> None:
    page = window.page
    dev = ground.begin_sh("echo ready; exec cat -v", name="dev")
    other = ground.begin_sh(says("blocked", "May I?"), name="other")
    expect(page.locator(".row")).to_have_count(2)
    field = page.get_by_label("Find a session or a command")
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    assert page.url == f"{hub.url}/?palette=1"
    expect(page.get_by_role("dialog").get_by_role("option").first).to_contain_text("other")
    shot(window, "palette")
    page.go_back()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Commands").click()
    field.fill("dev")
    page.keyboard.press("Enter")
    window.expect_shown("ready")

    # a program gets its own Ctrl-K; with Shift it is the page's
    page.locator(".pane .xterm-helper-textarea").focus()
    page.keyboard.press("Control+k")
    window.type("")
    window.expect_shown("^K")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Control+Shift+K")
    field.fill("next needs")
    page.keyboard.press("Enter")
    expect(page.locator(".pane")).to_have_attribute("aria-label", "other")
    page.keyboard.press("Control+Shift+K")
    field.fill("diff of")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".side-panel h2")).to_have_text("Changes")
    page.keyboard.press("Control+Shift+K")
    field.fill("nobody has this name")
    expect(page.locator(".palette .nothing")).to_have_text("No matches.")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    for session in (dev, other):
        ground.end(session)


def test_keys_open_what_they_say(ground: Ground, hub: HubProcess, window: Window) -> None:
    page = window.page
    scripts = {"one": says("working"), "two": says("idle"), "three": says("blocked")}
    made = [ground.begin_sh(script, name=name) for name, script in scripts.items()]
    expect(page.locator(".row .name")).to_have_text(["three", "two", "one"])
    pane = page.locator(".pane")

    def away() -> None:
        page.get_by_role("button", name="Hitchpost").click()
        expect(pane).to_have_count(0)
        page.get_by_role("button", name="Hitchpost").evaluate("button => button.blur()")

    page.keyboard.press("3")
    expect(pane).to_have_attribute("aria-label", "one")
    away()
    page.keyboard.press("g")
    expect(pane).to_have_attribute("aria-label", "three")
    away()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(window.row("two").locator(".open-session")).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(pane).to_have_attribute("aria-label", "three")
    away()
    page.keyboard.press("n")
    expect(page.get_by_role("dialog", name="New session")).to_be_visible()
    assert page.url == f"{hub.url}/?new=1"
    page.go_back()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("?")
    help_ = page.get_by_role("dialog", name="Settings")
    for words in ("sessions and commands", "the next session that needs me", "new session", "open the first to ninth"):
        expect(help_).to_contain_text(words)
    page.go_back()
    for session in made:
        ground.end(session)


def test_home_has_who_needs_somebody_what_is_done_and_where_to_go_on(
    ground: Ground, repo: Repo, windows: Callable[..., Window]
) -> None:
    window = windows(viewport={"width": 1440, "height": 900})
    window.sign_in()
    page, home = window.page, window.page.locator(".home")
    expect(home).to_contain_text("There are no sessions yet.")
    asks = ground.begin_sh(says("blocked", "Which colour should the button have?"), name="asks", place=repo.path)
    done = ground.begin_sh(says("done", "All 24 tests pass"), name="done")
    works = ground.begin_sh(says("working"), name="works")
    failed = ended(ground, "exit 3", "failed")
    cards = home.locator(".card")
    expect(cards).to_have_count(2)
    expect(cards.nth(0)).to_contain_text("Which colour should the button have?")
    expect(cards.nth(1)).to_contain_text("command exited with code 3")
    expect(home.locator(".lines")).to_contain_text("All 24 tests pass")
    shot(window, "home")
    page.evaluate(AXE.read_text())
    assert barriers(page, "home", EVERY_RULE) == []

    # the first action of a card works from here, and so does a start in a project
    expect(cards.nth(0).locator("footer button")).to_have_text("Go to terminal")
    cards.nth(1).get_by_role("button", name="Restart fresh", exact=True).click()
    eventually(lambda: ground.ps(failed)["run"] == 2, what="another run")
    home.get_by_role("button", name=f"New in {repo.path.name}").click()
    project = page.get_by_role("dialog").get_by_label("Project", exact=True)
    expect(project).to_have_value(str(repo.path))
    page.keyboard.press("Escape")
    cards.nth(0).locator(".card-name").click()
    expect(page.locator(".pane")).to_have_attribute("aria-label", "asks")
    page.get_by_role("button", name="Hitchpost").click()
    expect(cards.nth(0)).to_be_visible()
    for session in (asks, done, works):
        ground.end(session)


def test_the_title_and_the_icon_count_and_what_is_looked_at_is_seen(
    ground: Ground, hub: HubProcess, window: Window
) -> None:
    page = window.page
    # this browser has no icon of an installed app: what the page asks for is noted
    page.add_init_script("window.badges = []; navigator.setAppBadge = async (count) => { badges.push(count); };")
    page.reload()
    page.wait_for_function("() => badges.at(-1) === 0")
    expect(page).to_have_title("Hitchpost")
    plain = page.locator("link[rel=icon]").get_attribute("href")
    asks = ground.begin_sh(says("blocked"), name="asks")
    expect(page).to_have_title("(1) Hitchpost")
    assert ">1</text>" in page.locator("link[rel=icon]").evaluate("icon => decodeURIComponent(icon.href)")
    page.wait_for_function("() => badges.at(-1) === 1")
    dev = ground.begin_sh(on_word("working", "done", "working", "done"), name="dev")
    expect(window.part("Working").locator(".name")).to_have_text(["dev"])
    ground.hitch("send", "dev", "on")
    expect(window.part("Finished").locator(".name")).to_have_text(["dev"])
    assert hub.ask("GET", f"/api/sessions/{dev.id}")["seen_at"] is None
    window.open_session("dev")
    expect(window.part("Quiet").locator(".name")).to_have_text(["dev"])

    # what it says while somebody looks is seen, too
    first = len(window.wires[-1].asked("session.seen", dev.id))
    ground.hitch("send", "dev", "on")
    expect(window.part("Working").locator(".name")).to_have_text(["dev"])
    ground.hitch("send", "dev", "on")
    expect(window.part("Quiet").locator(".name")).to_have_text(["dev"])
    assert 1 <= first < len(window.wires[-1].asked("session.seen", dev.id))
    assert window.wires[-1].asked("session.seen", asks.id) == []
    ground.end(asks)
    expect(page).to_have_title("Hitchpost")
    expect(page.locator("link[rel=icon]")).to_have_attribute("href", re.compile(re.escape(str(plain)) + "$"))
    page.wait_for_function("() => badges.at(-1) === 0")
    ground.end(dev)


def test_the_rail_works_on_a_phone(ground: Ground, hub: HubProcess, windows: Callable[..., Window]) -> None:
    asks = ground.begin_sh(says("blocked", "May I delete the folder build and all that is in it?"), name="asks")
    works = ground.begin_sh(says("working"), name="works")
    window = windows(**PHONE)
    window.sign_in()
    page = window.page
    expect(page.locator(".row .name")).to_have_text(["asks", "works"])
    expect(page.locator(".status-line")).to_contain_text("1 needs you, 1 working")
    shot(window, "phone")
    page.get_by_label("Menu of works").tap()
    shot(window, "phone-menu")
    page.keyboard.press("Escape")
    page.get_by_label("Menu of works").tap()
    page.get_by_role("menuitem", name="Pin").tap()
    expect(window.row("works").get_by_label("pinned")).to_be_visible()
    assert hub.ask("GET", f"/api/sessions/{works.id}")["pinned"] is True
    page.get_by_role("button", name="Commands").tap()
    page.get_by_role("option", name="asks").tap()
    expect(page.locator(".pane")).to_have_attribute("aria-label", "asks")
    # the list is out of sight, and its name can be changed
    page.keyboard.press("Control+Shift+K")
    page.get_by_label("Find a session or a command").fill("rename")
    page.keyboard.press("Enter")
    name = page.get_by_role("dialog", name="Rename asks").get_by_label("Name")
    name.fill("asked")
    shot(window, "phone-rename")
    name.press("Enter")
    expect(page.locator(".toolbar h2")).to_have_text("asked")
    page.go_back()
    expect(page.locator(".row .name").first).to_be_visible()
    for session in (asks, works):
        ground.end(session)


def test_the_new_screens_have_no_serious_barriers(ground: Ground, windows: Callable[..., Window]) -> None:
    made = [ground.begin_sh(says("blocked", "May I?"), name="asks"), ground.begin_sh(says("done"), name="done")]
    for number in range(8):
        ended(ground, "exit 3", f"failed-{number}")
    found: list[str] = []
    for size in ({}, PHONE):
        window = windows(**size)
        window.sign_in()
        found += walk(window, size is PHONE)
    assert found == []
    for session in made:
        ground.end(session)


def walk(window: Window, narrow: bool) -> list[str]:
    page, found = window.page, list[str]()
    page.evaluate(AXE.read_text())

    def look(screen: str, **media: Any) -> None:
        found.extend(barriers(page, screen, EVERY_RULE))
        if narrow:
            return
        page.emulate_media(color_scheme="light")
        found.extend(barriers(page, f"{screen} in light", ONLY_COLOURS))
        page.emulate_media(color_scheme="dark")

    expect(page.locator(".row")).to_have_count(7)
    look("rail and home")
    page.get_by_label("How to list").click()
    look("view menu")
    page.keyboard.press("Escape")
    window.row("asks").click(button="right")
    expect(page.get_by_role("menu")).to_be_visible()
    look("row menu")
    page.keyboard.press("Escape")
    window.choose("asks", "Select")
    look("selection")
    page.get_by_role("button", name="Select none").click()
    window.choose("asks", "Rename…")
    look("rename")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Commands").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    look("palette")
    page.keyboard.press("Escape")
    return found
