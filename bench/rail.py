"""The page's list of 300 sessions: until it is painted, until a change is painted, and frames while fifty change."""

from __future__ import annotations

import time

from playwright.sync_api import Page

from bench.hub import hub
from bench.page import SIZE, bare, chromium, frames
from bench.ps import write_sessions
from bench.stage import Stage, percentile
from bench.table import Row, at_most, at_most_more
from hitchpost.hub import client as hub_client

COUNT = 300
LIVE = 10
TURNS = (
    r"while :; do printf '\033]7501;state=working\a'; sleep 0.2; printf '\033]7501;state=blocked\a'; sleep 0.2; done"
)
"""Ten of these are told of some fifty times in a second, and change their section each time."""
FIRST_ROWS = """
const seen = new MutationObserver(() => {
    if (!document.querySelector(".row")) return;
    seen.disconnect();
    const after = new MessageChannel();
    requestAnimationFrame(() => after.port2.postMessage(0));
    after.port1.onmessage = () => (window.firstRows = performance.now());
});
seen.observe(document, { subtree: true, childList: true });
"""
NAMED = """
(name) => {
    const look = () => {
        if (![...document.querySelectorAll(".row .name")].some((one) => one.textContent === name)) return;
        seen.disconnect();
        const after = new MessageChannel();
        requestAnimationFrame(() => after.port2.postMessage(0));
        after.port1.onmessage = () => (window.shownAt = performance.timeOrigin + performance.now());
    };
    const seen = new MutationObserver(look);
    seen.observe(document.querySelector(".rows"), { subtree: true, childList: true, characterData: true });
    delete window.shownAt;
}
"""


def first_rows_ms(page: Page) -> float:
    page.reload()
    page.wait_for_function("() => window.firstRows")
    return float(page.evaluate("window.firstRows"))


def change_ms(stage: Stage, page: Page, session: str) -> float:
    """From the request until the row is painted, the hub's part and its two files on the disk included."""
    name = f"renamed-{time.monotonic_ns()}"
    page.evaluate(NAMED, name)
    began = time.time()
    hub_client.ask(stage.home, "PATCH", f"/api/sessions/{session}", {"name": name})
    page.wait_for_function("() => window.shownAt")
    return float(page.evaluate("window.shownAt")) - 1000 * began


def measure(*, quick: bool) -> list[Row]:
    loads, changes, for_s = (2, 3, 1) if quick else (10, 50, 10)
    with Stage(quick=quick) as stage:
        write_sessions(stage, 1, COUNT)
        with hub(stage), chromium() as browser:
            page = browser.new_page(viewport=SIZE)
            empty = frames(bare(page), for_s)
            page.add_init_script(FIRST_ROWS)
            page.goto(hub_client.ask(stage.home, "POST", "/api/launch-code")["launch_url"])
            page.wait_for_function("count => document.querySelector('.badge')?.textContent == count", arg=COUNT)
            painted = [first_rows_ms(page) for _ in range(loads)]
            session = page.locator(".row").first.get_attribute("data-session")
            assert session is not None
            changed = [change_ms(stage, page, session) for _ in range(changes)]
            stage.sessions(LIVE, "sh", "-c", TURNS)
            page.wait_for_function("count => document.querySelector('.badge')?.textContent == count", arg=COUNT + LIVE)
            found = frames(page, for_s)
    what, busy = f"{COUNT} sessions in the list", f"{COUNT} sessions, 50 changes a second"
    loaded, told = percentile(painted, 0.99), percentile(changed, 0.99)
    return [
        Row(f"{what}, first rows painted, p99", f"{loads} loads", loaded, "ms", None, "", at_most(1000, "ms")),
        Row(f"{what}, a change painted, p99", f"{changes} changes", told, "ms", None, "", at_most(100, "ms")),
        Row(f"{busy}, frame p99", f"{len(found.frames)} frames", percentile(found.frames, 0.99), "ms",
            percentile(empty.frames, 0.99), "blank page", at_most_more(34, "ms")),
        Row(f"{busy}, longest task", f"{len(found.long)} over 50 ms", max(found.long, default=0), "ms"),
    ]  # fmt: skip
