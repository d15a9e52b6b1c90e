"""Characters that cannot be seen, or that turn others around, are shown in the page, wherever they come from."""

from __future__ import annotations

import pytest

from tests.browser.windows import Window, expect
from tests.ground import Ground
from tests.repos import Repo

TURN, NOTHING = "\u202e", "\u200b"
HIDDEN = "\u061c\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
NONE_HIDDEN = f"""() => {{
    const looks = [...document.querySelectorAll(".app *")].filter((one) => !one.closest(".xterm"));
    const texts = looks.flatMap((one) => [
        one.title, one.ariaLabel, ...[...one.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data),
    ]);
    return texts.filter((text) => text && [...{HIDDEN!r}].some((letter) => text.includes(letter)));
}}"""


@pytest.mark.ids("S9")
def test_S9_hidden_characters_of_names_branches_files_and_changes_are_shown(
    ground: Ground, repo: Repo, window: Window
) -> None:
    page = window.page
    repo.commit("src/shop.py", "price = 1\n")
    words = ("--name", f"de{TURN}v", "--description", f"ne{NOTHING}w", "--branch", f"fix{TURN}ed")
    made = ground.hitch("run", "--json", *words, "--", "sh", "-c", "read line", cwd=repo.path).json()
    worktree = Repo(ground.home / made["workspace"]["path"])
    row = page.locator(".row")
    expect(row.locator(".name")).to_have_text(r"de\u202ev")
    expect(row).to_contain_text(r"fix\u202eed")
    row.click()
    page.get_by_role("button", name="Diff").click()
    worktree.write(f"src/sho{NOTHING}p.py", f"if admin{TURN}: # \u2066nobody\u2069\n")
    expect(page.locator(".changed-files")).to_contain_text(r"src/sho\u200bp.py")
    expect(page.locator(".panel-body")).to_contain_text(r"if admin\u202e: # \u2066nobody\u2069")
    for panel in ("Timeline", "Why", "Diff"):
        page.get_by_role("button", name=panel, exact=True).click()
        expect(page.locator(".panel-body")).not_to_be_empty()
        assert page.evaluate(NONE_HIDDEN) == []
    ground.hitch("stop", made["id"])
