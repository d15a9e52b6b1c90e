"""The changes of a session in the page: they come by themselves, and a line is commented on."""

from __future__ import annotations

from pathlib import Path

from tests.browser.windows import Window, expect
from tests.ground import Ground, Truth
from tests.repos import Repo
from tests.watched import say

READER = f"""stty -echo; while read line; do
    case $line in *block) {say("blocked")};; esac
    echo "<$line>"
done"""


IS_READY = """async option => {
    option.click();
    const field = () => document.querySelector(".comment-box textarea");
    for (let turn = 0; turn < 100 && !field(); turn++) await null;
    return field() !== null && document.activeElement === field();
}"""
"""Whether the field for a comment has the focus as soon as it is there, however late the page is painted."""


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

    # its keys are not the page's, wherever the focus was left
    patches = page.locator(".patch")
    for key, at in (("n", 0), ("n", 1), ("p", 0)):
        page.keyboard.press(key)
        expect(patches.nth(at)).to_be_focused()
    expect(page.get_by_role("dialog")).to_have_count(0)

    # by mouse; what is typed outlives a hub that does not answer
    comment = page.get_by_label("Comment on src/shop.py line 2")
    assert page.get_by_role("option", name="return 2").evaluate(IS_READY), "what is typed at once would be lost"
    expect(comment).to_be_focused()
    comment.fill("Why not 3?")
    page.route("**/diff", lambda route: route.abort())
    repo.write("src/<b>new.txt", "first\nsecond\n")
    trouble = page.locator(".panel-body .trouble")
    expect(trouble).to_have_text("the hub does not answer")
    page.unroute("**/diff")
    repo.write("src/<b>new.txt", "first\n")
    expect(trouble).to_have_count(0)
    expect(comment).to_have_value("Why not 3?")
    page.keyboard.press("Enter")
    patch = page.get_by_role("listbox", name="Patch of src/shop.py")
    expect(patch).to_be_focused()
    expect(page.locator(".commented")).to_have_text("+    return 2")
    assert b"Comment" not in dev.output(), "a comment is sent when the person says so"
    page.get_by_role("option", name="first").click()
    page.get_by_label("Comment on src/<b>new.txt line 1").fill("and this?")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Send 2 comments").click()
    expect(page.locator(".notices")).to_contain_text("2 comments: Typed, not confirmed")
    for line in ("<Comment on src/shop.py:2>", "<> +    return 2>", "<Why not 3?>", "<and this?>"):
        window.expect_shown(line)
    expect(page.locator(".commented")).to_have_count(0)

    # by keyboard, and refused: the agent asks for a permission
    patch.focus()
    page.keyboard.press("Home")
    for key in ("j", "j", "k", "Enter"):
        page.keyboard.press(key)
    comment.fill("now block")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Send 1 comment").click()
    window.expect_shown("<now block>")
    assert b"<Comment on src/shop.py:2 (deleted)>" in dev.output()
    page.get_by_role("option", name="return 2").click()
    comment.fill("one more")
    page.keyboard.press("Enter")
    bar = page.get_by_role("group", name="Comments")
    expect(bar.get_by_role("status")).to_contain_text("waiting for a permission")
    expect(bar.get_by_role("button", name="Send 1 comment")).to_be_disabled()
    expect(window.rows).not_to_contain_text("one more")
    ground.end(dev)
    expect(bar).to_contain_text("one more")


def test_a_file_that_was_viewed_is_folded_until_it_changes_again(ground: Ground, repo: Repo, window: Window) -> None:
    repo.commit("a.py", "x = 1\n")
    dev = ground.begin_sh("exec cat", name="dev", place=repo.path)
    repo.write("a.py", 'x = "two"  # why\n')
    page = window.page
    window.open_session("dev")
    page.get_by_role("button", name="Diff").click()
    file = page.get_by_role("region", name="a.py")
    expect(file.locator(".added .code-string")).to_have_text('"two"')
    expect(file.locator(".added .code-comment")).to_have_text("# why")
    # the list's folds have a mark of their own
    assert file.locator(".fold").evaluate("fold => getComputedStyle(fold, '::before').content") == "none"
    added = file.get_by_role("option", name="two")
    expect(added).to_have_attribute("data-is", "1")
    file.get_by_label("Viewed").check()
    expect(added).to_have_count(0)
    page.reload()
    expect(file.get_by_label("Viewed")).to_be_checked()
    repo.write("a.py", "x = 3\n")
    expect(file.get_by_label("Viewed")).not_to_be_checked()
    expect(file.get_by_role("option", name="x = 3")).to_be_visible()
    ground.end(dev)


def test_finish_says_what_will_happen_and_does_only_that(ground: Ground, repo: Repo, window: Window) -> None:
    repo.commit("README", "old\n")
    made = ground.hitch("run", "--name", "dev", "--branch", "fix", "--json", "--", "cat", cwd=repo.path).json()
    dev, tree = Truth(ground.home, made["id"]), Path(made["workspace"]["path"])
    (tree / "README").write_text("better\n")
    (tree / "new").write_text("new\n")
    page = window.page
    window.open_session("dev")
    page.get_by_role("button", name="Diff").click()
    page.get_by_role("button", name="Finish…").click()
    dialog = page.get_by_role("dialog", name="Finish dev")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="Finish…").click()
    expect(dialog.get_by_label("Commit 2 files on fix")).to_be_checked()
    expect(dialog.get_by_label("Merge fix into")).to_be_checked()
    expect(dialog.get_by_label("Push")).to_be_disabled()
    expect(dialog).to_contain_text("The repository has no remote.")
    expect(dialog.get_by_label("remove the worktree")).not_to_be_checked()
    dialog.get_by_label("Message").fill("Better words")
    dialog.get_by_role("button", name="Commit, merge").click()
    expect(page.locator(".notices")).to_contain_text("Committed")
    assert (repo.path / "README").read_text() == "better\n"
    assert repo.git("log", "-1", "--format=%s") == "Better words"
    assert tree.exists()
    ground.end(dev)
