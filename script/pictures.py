"""Takes the pictures in ``docs/img``: ``script/pictures``. All in them is real but the agents, which scripts play."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from hitchpost.hub import client

ROOT = Path(__file__).parents[1]
INTO = ROOT / "docs" / "img"
DEMO = Path("/tmp/demo")  # noqa: S108 - it can be seen in the pictures, and is ours or not used
HITCH = ROOT / ".venv" / "bin" / "hitch"
CHROMIUM = "/usr/bin/chromium"
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"]
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
MOST_BYTES = 160_000
PATIENCE_S = 30.0

AGENT = r"""#!/bin/bash
# Plays an agent; the line that it reads says what it has to do.
say() { printf '\033[36m●\033[m %s\n' "$1"; }
more() { printf '  \033[2m└ %s\033[m\n' "$1"; }
works() { printf '\n\033[2m  esc to interrupt\033[m\n'; stay; }
busy() { printf '\033[2m  esc to interrupt\033[m'; sleep 1; printf '\r\033[K'; }
stay() { while :; do sleep 1000; done; }
stty -echo
printf '› '
read -r prompt
printf '\r\033[1m› %s\033[m\n\n' "$prompt"
case $prompt in
*login*)
    say "The session cookie is compared before it is decoded."
    more "src/login.py, line 9"
    sed -i 's/return cookie == stored/return hmac.compare_digest(decode(cookie), stored)/; 3i import hmac' src/login.py
    say "A test for it, which fails without the change."
    printf '%s\n' 'from login import is_signed_in' '' '' 'def test_an_encoded_cookie_is_known():' \
        '    assert is_signed_in("YWJj", b"abc")' >tests/test_login.py
    more "tests/test_login.py, 5 lines"
    say "Running the tests …"
    printf '\n\033[32m........................\033[m\n\033[32m24 passed\033[m in 1.84s\n\n'
    say "Now the other callers of is_signed_in"
    works ;;
*tax*)
    say "Rates by country are in src/tax.py; they are from last year."
    more "a migration is needed"
    printf '\n\033[33mAllow this command?\033[m\n\n  ./manage migrate tax --apply\n\n'
    printf '  \033[7m 1 \033[m yes   \033[7m 2 \033[m no\n'
    stay ;;
*guide*)
    say "The guide now says how to run the shop behind a proxy."
    more "docs/guide.md, 12 lines"
    printf '\nAnything else?\n\n› '
    stay ;;
*index*)
    say "Building the index of products …"
    for n in 1 2 3 4 5 6; do printf '  %s0000 of 120000\n' "$n"; done
    busy
    kill -SEGV $$ ;;
*lint*)
    say "ruff check src tests"
    printf '\n\033[1msrc/tax.py\033[m:14:5: \033[31mF841\033[m local variable rate is never used\n'
    printf '\033[1msrc/cart.py\033[m:31:9: \033[31mB006\033[m a list is the default of an argument\n'
    printf '\033[1msrc/login.py\033[m:2:1: \033[31mF401\033[m os is imported and never used\n\nFound 3 errors.\n'
    busy
    exit 1 ;;
*release*)
    say "Version 2.4.0 is tagged."
    more "14 commits since 2.3.1"
    busy ;;
*suite*)
    printf 'tests/test_cart.py ......................\ntests/test_login.py ...........\ntests/test_search.py ....\n'
    works ;;
*)
    works ;;
esac
"""

DESCRIBED = r"""
title = "{title}"
argv = ["{program}"]
adapter = "rules"
ready_after_s = 0.1

[rules]
version = 1

[[screen]]
state = "working"
find = ['esc to interrupt']

[[screen]]
state = "blocked"
kind = "permission"
find = ['Allow this command\?']
message_from = 'Allow this command\?\s+(?P<text>[^\n]+)'
options = {{ yes = "1", no = "2" }}

[[screen]]
state = "idle"
find = ['^› ?$']
rows = 2
"""
TITLES = {"claude": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI", "opencode": "opencode", "aider": "aider"}

SOURCES = {
    "src/login.py": '"""Who is signed in."""\n\nfrom base64 import b64decode as decode\n\n\n'
    "def is_signed_in(cookie, stored):\n    if not cookie:\n        return False\n    return cookie == stored\n",
    "src/tax.py": '"""Rates."""\n\nRATES = {"DE": 19, "FR": 20}\n',
    "tests/test_cart.py": "def test_an_empty_cart_costs_nothing():\n    assert sum([]) == 0\n",
    "README.md": "# shop\n",
}

SESSIONS: list[dict[str, Any]] = [
    {"name": "auth", "agent": "claude", "branch": "fix-login", "prompt": "fix the login of encoded cookies"},
    {"name": "checkout", "agent": "codex", "branch": "tax-2027", "prompt": "bring the tax rates up to date"},
    {"name": "guide", "agent": "gemini", "branch": "proxy-docs", "prompt": "the guide lacks a word about proxies"},
    {"name": "search", "agent": "opencode", "branch": "search", "prompt": "make the index of products smaller"},
    {"name": "lint", "agent": "claude", "branch": "lint", "prompt": "run lint"},
    {"name": "tests", "agent": "codex", "prompt": "run the whole suite"},
    {"name": "release", "agent": "gemini", "prompt": "tag the release"},
    {"name": "upgrade", "agent": "aider", "branch": "upgrade", "prompt": "upgrade the libraries"},
]
WORDS = {
    "auth": "running",
    "checkout": "blocked",
    "guide": "waiting",
    "search": "failed",
    "lint": "failed",
    "tests": "running",
    "release": "completed",
    "upgrade": "stopped",
}


def main() -> int:
    if DEMO.exists():
        print(f"script/pictures: {DEMO} is there already; remove it first", file=sys.stderr)
        return 1
    INTO.mkdir(exist_ok=True)
    with demo() as home, sync_playwright() as playwright:
        begin_sessions(home)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        for scheme in ("dark", "light"):
            take_wide(browser, home, scheme)
            take_phone(browser, home, scheme)
            take_new(browser, home, scheme)
        browser.close()
    return check_sizes()


@contextmanager
def demo() -> Iterator[str]:
    """A hub of its own, with a repository and agents. Nothing of them is left."""
    DEMO.mkdir(mode=0o700)
    home = DEMO / "home"
    for name in [one for one in os.environ if one.startswith(("HITCHPOST_", "TMUX", "GIT_"))]:
        del os.environ[name]
    program, agents = DEMO / "agent", DEMO / "config/hitchpost/agents"
    program.write_text(AGENT)
    program.chmod(0o755)
    agents.mkdir(parents=True)
    for name, title in TITLES.items():
        (agents / f"{name}.toml").write_text(DESCRIBED.format(title=title, program=program))
    os.environ |= {
        "HOME": str(DEMO),
        "HITCHPOST_HOME": str(home),
        "XDG_CONFIG_HOME": str(DEMO / "config"),
        "TZ": "UTC",
    }
    make_repository(DEMO / "shop")
    try:
        run(HITCH, "up", "--port", "0")
        yield str(home)
    finally:
        found = json.loads(run(HITCH, "ps", "--all", "--json"))
        live = [one["id"] for one in found if one["state"] in ("starting", "running")]
        if live:
            run(HITCH, "stop", *live)
        run(HITCH, "down")
        shutil.rmtree(DEMO)


def make_repository(shop: Path) -> None:
    for name, text in SOURCES.items():
        path = shop / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git = ("git", "-C", shop, "-c", "user.name=Ada", "-c", "user.email=ada@shop.example")
    run("git", "init", "--quiet", "--initial-branch=main", shop)
    run(*git, "add", "--all")
    run(*git, "commit", "--quiet", "--message", "a shop")


def run(*words: str | Path) -> str:
    return subprocess.run(list(map(str, words)), check=True, stdout=subprocess.PIPE, text=True).stdout


def begin_sessions(home: str) -> None:
    for wish in SESSIONS:
        body = {"folder": str(DEMO / "shop"), "cols": 100, "rows": 30, **wish}
        client.ask(home, "POST", "/api/sessions", body, timeout_s=PATIENCE_S)
    client.ask(home, "POST", "/api/sessions/upgrade/stop", timeout_s=PATIENCE_S)
    wait_until(lambda: words(home) == WORDS)


def words(home: str) -> dict[str, str]:
    """Each session's status; what its agent wants, when it wants something."""
    wants = ("blocked", "waiting")
    return {
        one["name"]: one["attention"] if one["status"] == "running" and one["attention"] in wants else one["status"]
        for one in client.ask(home, "GET", "/api/sessions")
    }


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("the demonstration is not as it should be")
        time.sleep(0.05)


def take_wide(browser: Browser, home: str, scheme: str) -> None:
    page = signed_in(browser, home, scheme, viewport=WIDE)
    page.locator(".cards .card, .home .card").first.wait_for()
    shoot(page, f"home-{scheme}")
    page.keyboard.press("Control+k")
    page.locator(".palette [role=option]").first.wait_for()
    shoot(page, f"palette-{scheme}", leave_focus=True)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Settings and keys").first.click()
    page.get_by_role("dialog").wait_for()
    shoot(page, f"settings-{scheme}")
    page.keyboard.press("Escape")
    open_session(page, "auth", "other callers")
    shoot(page, f"list-{scheme}")
    page.get_by_role("button", name="Diff").click()
    page.locator(".patch .added").first.wait_for()
    shoot(page, f"diff-{scheme}")
    page.get_by_role("button", name="Close the panel").click()
    open_session(page, "lint", "Found 3 errors.")
    shoot(page, f"crash-{scheme}")
    open_session(page, "checkout", "Allow this command?")
    page.get_by_role("button", name="Timeline").click()
    page.locator(".timeline li").first.wait_for()
    shoot(page, f"timeline-{scheme}")
    page.get_by_role("button", name="Close the panel").click()
    page.get_by_role("button", name="Grid").click()
    for text in ("other callers", "Allow this command?", "Anything else?", "tests/test_search.py"):
        page.locator(".cell", has_text=text).wait_for()
    shoot(page, f"grid-{scheme}")
    page.context.close()


def take_phone(browser: Browser, home: str, scheme: str) -> None:
    page = signed_in(browser, home, scheme, viewport=PHONE, is_mobile=True, has_touch=True)
    shoot(page, f"phone-list-{scheme}")
    open_session(page, "checkout", "Allow this command?")
    shoot(page, f"phone-terminal-{scheme}")
    page.context.close()


def take_new(browser: Browser, home: str, scheme: str) -> None:
    sizes: dict[str, dict[str, Any]] = {
        "new": {"viewport": WIDE},
        "phone-new": {"viewport": PHONE, "is_mobile": True, "has_touch": True},
    }
    for name, options in sizes.items():
        page = signed_in(browser, home, scheme, **options)
        page.goto(f"{page.url.partition('?')[0]}?new=1")
        page.locator(".tile", has_text="Claude Code").click()
        page.locator("#new-prompt").fill("Search finds nothing when a word has an accent")
        page.locator("#new-folder").fill("~/shop")
        page.locator(".chips [aria-pressed=true]").wait_for()
        shoot(page, f"{name}-{scheme}")
        page.context.close()


def signed_in(browser: Browser, home: str, scheme: str, **options: Any) -> Page:
    """The page with every section of the list unfolded."""
    context = browser.new_context(color_scheme=scheme, reduced_motion="reduce", timezone_id="UTC", **options)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(client.ask(home, "POST", "/api/launch-code")["launch_url"])
    page.locator(".row").first.wait_for()
    for folded in page.locator(".part-head .fold[aria-expanded=false]").all():
        folded.click()
    page.locator(".row").nth(len(SESSIONS) - 1).wait_for()
    return page


def open_session(page: Page, name: str, shows: str) -> None:
    row = page.locator(".row", has=page.locator(".name", has_text=name))
    row.locator(".open-session").click()
    page.locator(f".pane[aria-label='{name}'] .xterm-rows", has_text=shows).wait_for()


def shoot(page: Page, name: str, leave_focus: bool = False) -> None:
    """The pointer is out of the way, and nothing has the focus."""
    page.mouse.move(700, 4)
    if not leave_focus:
        page.evaluate("document.activeElement?.blur()")
    page.screenshot(path=INTO / f"{name}.png", animations="disabled", caret="hide")


def check_sizes() -> int:
    sizes = {path.name: path.stat().st_size for path in sorted(INTO.glob("*.png"))}
    large = [name for name, size in sizes.items() if size > MOST_BYTES]
    for name, size in sizes.items():
        print(f"{name:24} {size // 1000:4} KB")
    if large:
        print(f"script/pictures: more than {MOST_BYTES // 1000} KB: {', '.join(large)}", file=sys.stderr)
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main())
