"""Three hundred sessions: the list is there at once, a change is shown at once, and many changes hold up no frame.

The best of a few rounds counts, beside what the least of its kind takes in the same moment: a busy machine makes both
slow, a slow page only its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from types import SimpleNamespace

from playwright.sync_api import Page

from bench.page import frames
from bench.ps import write_sessions
from tests.browser.windows import Window, expect
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.support import eventually
from tests.watched import say

COUNT = 300
CHANGING = 50
LIVE = 10
ROUNDS = 5
STEP = 60
CHANGE_TIMES = 6
"""A change is two files written through to the disk, and a message; the bench has it in milliseconds."""
TURNS = f"while :; do {say('working')}sleep 0.15; {say('blocked')}sleep 0.15; done"
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
(name) => new Promise((done) => {
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
    done();
})
"""
LEAST = """
async () => {
    const began = performance.now();
    await fetch("/");
    await new Promise((painted) => {
        const after = new MessageChannel();
        requestAnimationFrame(() => after.port2.postMessage(0));
        after.port1.onmessage = painted;
    });
    return performance.now() - began;
}
"""
"""An answer of the hub, and a frame."""


def fill(ground: Ground, hub: HubProcess) -> None:
    write_sessions(SimpleNamespace(home=str(ground.home), work=str(ground.place)), 1, COUNT)  # type: ignore[arg-type]
    hub.stop()
    hub.start()
    eventually(lambda: len(hub.ask("GET", "/api/sessions")) == COUNT, what="all sessions")


def within(limit: float, measure: Callable[[], float]) -> list[float]:
    """What was measured, until it is within the limit."""
    took: list[float] = []
    while len(took) < ROUNDS and (not took or took[-1] > limit):
        took.append(measure())
    return took


def over(page: Page, measure: Callable[[], float]) -> float:
    """What was measured, as so many times what the least takes right before and after it."""
    before = page.evaluate(LEAST)
    took = measure()
    return took / max(before, page.evaluate(LEAST))


def test_three_hundred_sessions_are_no_burden(ground: Ground, hub: HubProcess, windows: Callable[..., Window]) -> None:
    fill(ground, hub)
    window = windows()
    page = window.page
    page.add_init_script(FIRST_ROWS)
    window.sign_in()
    expect(page.locator(".badge")).to_have_text(str(COUNT))

    def first_paint_ms() -> float:
        page.reload()
        page.wait_for_function("() => window.firstRows")
        return page.evaluate("window.firstRows")

    took = within(1000, first_paint_ms)
    print(f"first rows painted after {min(took):.0f} ms")
    assert min(took) <= 1000, took

    # what nobody scrolls to is not drawn
    finished = window.part("Finished")
    expect(finished.locator(".row")).to_have_count(STEP)
    finished.locator(".more").scroll_into_view_if_needed()
    expect(finished.locator(".row")).to_have_count(2 * STEP)
    expect(window.part("Ended").locator(".row")).to_have_count(0)
    page.locator(".rows").evaluate("list => list.scrollTo(0, 0)")
    shown = finished.locator(".row").first.get_attribute("data-session")

    def change_ms() -> float:
        name = f"renamed-{time.monotonic_ns()}"
        page.evaluate(NAMED, name)
        began = time.time()
        hub.ask("PATCH", f"/api/sessions/{shown}", {"name": name})
        page.wait_for_function("() => window.shownAt")
        return page.evaluate("window.shownAt") - 1000 * began

    times = within(CHANGE_TIMES, lambda: over(page, change_ms))
    print(f"a change painted after {min(times):.1f} × an answer and a frame, the hub's part included")
    assert min(times) <= CHANGE_TIMES, times

    # each of these is told of twice in a turn, and is then in another section
    live = [ground.begin_sh(TURNS, name=f"live-{number}") for number in range(LIVE)]
    expect(page.locator(".badge")).to_have_text(str(COUNT + LIVE))
    rate, longest_ms = busy(window, 2)
    print(f"{rate} changes per second, the longest task took {longest_ms} ms")
    assert rate >= CHANGING / 2
    assert 0 < longest_ms <= 100  # of processor time beside other tests; alone it is half of that
    for session in live:
        ground.end(session, grace_s=0)


def busy(window: Window, seconds: float) -> tuple[float, float]:
    """How often each second the hub told of a change, and milliseconds of the page's longest task.

    Milliseconds on a processor: what other programs take from it plays no part.
    """
    browser, before = window.context.browser, len(window.wires[-1].events)
    assert browser is not None
    browser.start_tracing(page=window.page, categories=["toplevel", "__metadata"])
    frames(window.page, seconds)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    mains = {(one["pid"], one["tid"]) for one in events if one.get("args", {}).get("name") == "CrRendererMain"}
    tasks = [one for one in events if (one["pid"], one["tid"]) in mains and "RunTask" in one["name"]]
    # a task that was not over when the trace was has no duration
    took = [one["tdur"] / 1000 for one in tasks if "tdur" in one]
    return (len(window.wires[-1].events) - before) / seconds, max(took)
