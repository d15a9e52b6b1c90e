"""The changes of a session in the page: they come by themselves, and a line is commented on."""

from __future__ import annotations

from tests.browser.windows import Window, expect
from tests.ground import Ground
from tests.repos import Repo

READER = """stty -echo; while read line; do
    case $line in *block) printf '\\033]7501;state=blocked\\033\\\\';; esac
    echo "<$line>"
done"""


def test_a_line_is_commented_on_and_the_agent_reads_it(ground: Ground, repo: Repo, window: Window) -> None:
    repo.commit("src/shop.py", "def price():\n    return 1\n")
    dev = ground.begin_sh(READER, name="dev", place=repo.path)
    page = window.page
    window.open_session("dev")
    page.get_by_role("button", name="Diff").click()
    expect(page.locator(".panel-body")).to_contain_text("Nothing changed.")

    # told by the hub: the page's own interval is longer than this test waits
    repo.write("src/shop.py", "def price():\n    return 2\n")
    options = page.locator(".panel-body").get_by_role("option")
    expect(options).to_have_text([" def price():", "-    return 1", "+    return 2"])
    repo.write("src/<b>new.txt", "first\n")
    expect(page.locator(".changed-files")).to_contain_text("src/<b>new.txt")

    # by mouse
    page.get_by_role("option", name="return 2").click()
    comment = page.get_by_label("Comment on src/shop.py line 2")
    expect(comment).to_be_focused()
    comment.fill("Why not 3?")
    page.keyboard.press("Enter")
    said = page.locator(".comment-box [role=status]")
    expect(said).to_have_text("Typed, not confirmed")
    for line in ("<Comment on src/shop.py:2>", "<> +    return 2>", "<Why not 3?>"):
        window.expect_shown(line)
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox", name="Patch")).to_be_focused()

    # by keyboard, and refused: the agent asks for a permission
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    comment.fill("now block")
    page.keyboard.press("Enter")
    window.expect_shown("<now block>")
    expect(window.label("dev")).to_contain_text("needs you")
    comment.fill("one more")
    page.locator(".comment-box").get_by_role("button", name="Send").click()
    expect(said).to_contain_text("waiting for a permission")
    expect(comment).to_have_value("one more")
    expect(window.rows).not_to_contain_text("one more")
    assert b"<Comment on src/shop.py:2 (deleted)>" in dev.output()
    ground.end(dev)
    expect(comment).to_be_disabled()
