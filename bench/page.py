"""The page in a real Chromium: frames beside fifty talking sessions, and a key until its echo is on the screen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import CDPSession, Page, sync_playwright

from bench.hub import hub
from bench.stage import Session, Stage, percentile, program
from bench.table import Row, Wanted, at_most, at_most_more, at_most_times
from hitchpost.hub import client as hub_client

CHROMIUM = "/usr/bin/chromium"
ARGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb")
SIZE = {"width": 1600, "height": 1000}
LARGE = {"width": 2560, "height": 1700}
"""Shows fifty pictures at once."""
TALK_MS = 100
KEY_PAUSE_MS = 30

FRAMES = """
async (forMs) => {
    const [frames, long] = [[], []];
    const observer = new PerformanceObserver((list) => long.push(...list.getEntries().map((one) => one.duration)));
    observer.observe({ type: "longtask" });
    const began = performance.now();
    await new Promise((done) => {
        let last;
        const look = (now) => {
            if (last !== undefined) frames.push(now - last);
            last = now;
            performance.now() - began < forMs ? requestAnimationFrame(look) : done();
        };
        requestAnimationFrame(look);
    });
    observer.disconnect();
    return { frames, long };
}
"""

# From the key's event until after the frame that shows its echo. The terminal changes its rows in a frame's callbacks:
# a message that is sent then comes after the frame was painted.
KEYS = """
(place) => {
    window.stopKeys?.();
    window.keys = [];
    let pressed;
    const press = (event) => (pressed = event.timeStamp);
    addEventListener("keydown", press, true);
    const observer = new MutationObserver(() => {
        if (pressed === undefined) return;
        const [began, after] = [pressed, new MessageChannel()];
        pressed = undefined;
        after.port1.onmessage = () => keys.push(performance.now() - began);
        after.port2.postMessage(0);
    });
    observer.observe(document.querySelector(place), { subtree: true, childList: true, characterData: true });
    window.stopKeys = () => (observer.disconnect(), removeEventListener("keydown", press, true));
}
"""

# A page that shows a key by itself in the next frame: what no page can be faster than.
BARE = """
() => {
    document.body.innerHTML = "<pre id=bare></pre>";
    const bare = document.getElementById("bare");
    addEventListener("keydown", (event) => requestAnimationFrame(() => (bare.textContent = event.key + Math.random())));
}
"""


@dataclass(frozen=True, slots=True)
class Frames:
    """Milliseconds between frames, and of tasks that took more than 50 ms; and how much of a core the page used."""

    frames: list[float]
    long: list[float]
    cpu_percent: float


def frames(page: Page, for_s: float) -> Frames:
    browser = page.context.new_cdp_session(page)
    browser.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = busy_s(browser)
    found = page.evaluate(FRAMES, for_s * 1000)
    used_s = busy_s(browser) - before
    browser.detach()
    return Frames(found["frames"], found["long"], 100 * used_s / for_s)


def busy_s(browser: CDPSession) -> float:
    """Seconds that the page's main thread has spent on a processor: what other programs leave to it plays no part."""
    told = browser.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in told if one["name"] == "TaskDuration"))


def keystrokes(page: Page, place: str, count: int) -> list[float]:
    """Milliseconds from a key until its echo is painted, for each of ``count`` keys typed one after the other."""
    page.evaluate(KEYS, place)
    for number in range(count):
        page.keyboard.press(chr(97 + number % 26))
        page.wait_for_function("count => keys.length > count", arg=number, polling=KEY_PAUSE_MS)
    found: list[float] = page.evaluate("keys")
    return found


def bare(page: Page) -> Page:
    page.goto("about:blank")
    page.evaluate(BARE)
    return page


@contextmanager
def chromium() -> Iterator[Any]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGS))
        try:
            yield browser
        finally:
            browser.close()


def measure(*, quick: bool) -> list[Row]:
    count, for_s, keys = (5, 1, 10) if quick else (50, 10, 200)
    with Stage(quick=quick) as stage, hub(stage), chromium() as browser:
        page = browser.new_page(viewport=SIZE)
        empty, anchor_keys = frames(bare(page), for_s), keystrokes(bare(page), "body", keys)
        page.goto(hub_client.ask(stage.home, "POST", "/api/launch-code")["launch_url"])
        page.wait_for_selector(".link.open", state="attached")
        rows = typed(stage, page, keys, anchor_keys, "")
        talking = stage.sessions(count, program(), "talk", str(TALK_MS))
        page.wait_for_function("count => document.querySelectorAll('.row').length >= count", arg=count)
        open_all(page, talking[:1])
        rows += smooth(page, for_s, f"{count} sessions in the list, one shown", empty)
        rows += typed(stage, page, keys, anchor_keys, f", {count} others talking")
        page.set_viewport_size(LARGE)
        page.get_by_role("button", name="Grid").click()
        page.wait_for_function(GRID_IS_FULL, arg=count)
        rows += smooth(page, for_s, f"{count} live pictures in the grid", empty, at_most(30, "%"))
        return rows


GRID_IS_FULL = """
(count) => [...document.querySelectorAll(".cell")].filter((one) =>
    one.getBoundingClientRect().bottom <= innerHeight && one.querySelector("canvas")?.textContent.includes("talk")
).length >= count
"""


def open_all(page: Page, sessions: list[Session]) -> None:
    ids = [one.id for one in sessions]
    page.evaluate("kept => sessionStorage.setItem('tabs', kept)", json.dumps({"tabs": ids, "current": ids[0]}))
    page.reload()
    page.wait_for_selector(".pane .xterm-rows")


def typed(stage: Stage, page: Page, count: int, anchor: list[float], beside: str) -> list[Row]:
    session = stage.session(program(), "echo")
    session.start()
    page.locator(f"[data-session='{session.id}'] .open-session").click()
    page.wait_for_selector(".pane .terminal:not(.read-only) .xterm-rows")
    page.locator(".pane .xterm-helper-textarea").focus()
    took_ms = keystrokes(page, ".pane .xterm-rows", count)
    session.stop()
    what = f"key → echo painted{beside}"
    return [
        Row(f"{what}, p{share * 100:g}", f"{count} keys", percentile(took_ms, share), "ms", percentile(anchor, share),
            "blank page", at_most(50, "ms"))
        for share in (0.5, 0.99)
    ]  # fmt: skip


def smooth(page: Page, for_s: float, what: str, empty: Frames, cpu: Wanted | None = None) -> list[Row]:
    found = frames(page, for_s)
    limits: dict[float, Wanted] = {0.5: at_most_times(1.2), 0.99: at_most_more(34, "ms")}
    rows = [
        Row(f"frame, {what}, p{share * 100:g}", f"{len(found.frames)} frames", percentile(found.frames, share), "ms",
            percentile(empty.frames, share), "blank page", limit)
        for share, limit in limits.items()
    ]  # fmt: skip
    longest = max(found.long, default=0)
    return [
        *rows,
        Row(f"longest task, {what}", f"{len(found.long)} over 50 ms", longest, "ms", None, ""),
        Row(f"CPU of the page, {what}", f"{for_s:g} s", found.cpu_percent, "%", None, "", cpu or at_most(50, "%")),
    ]
