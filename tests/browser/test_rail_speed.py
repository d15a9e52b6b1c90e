"""Three hundred sessions: the list is there at once, a change is shown at once, and many changes hold up no frame.

The best of a few rounds counts: a busy machine makes some of them slow, a slow page makes all of them slow.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any

from bench.page import frames
from bench.ps import write_sessions
from tests.browser.windows import Window, expect
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.support import eventually

COUNT = 300
CHANGING = 50
HANDS = 8
ROUNDS = 5
STEP = 60
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


def fill(ground: Ground, hub: HubProcess) -> list[dict[str, Any]]:
    write_sessions(SimpleNamespace(home=str(ground.home), work=str(ground.place)), 1, COUNT)  # type: ignore[arg-type]
    hub.stop()
    hub.start()
    return eventually(lambda: rows if len(rows := hub.ask("GET", "/api/sessions")) == COUNT else None, what="all")


def within(limit: float, measure: Callable[[], float]) -> list[float]:
    """What was measured, until it is within the limit."""
    took: list[float] = []
    while len(took) < ROUNDS and (not took or took[-1] > limit):
        took.append(measure())
    return took


def test_three_hundred_sessions_are_no_burden(ground: Ground, hub: HubProcess, windows: Callable[..., Window]) -> None:
    rows = fill(ground, hub)
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

    took = within(100, change_ms)
    print(f"a change painted after {min(took):.0f} ms, the hub's part included")
    assert min(took) <= 100, took
    slowest = changing(hub, rows, lambda: within(0, lambda: sum(frames(page, 2).long)))
    print(f"tasks of more than 50 ms while {CHANGING} change each second: {slowest} ms")
    assert min(slowest) == 0, slowest


def changing(hub: HubProcess, rows: list[dict[str, Any]], measure: Callable[[], list[float]]) -> list[float]:
    """Measure while fifty sessions change each second, as the hub tells everybody."""
    over, counted = threading.Event(), count()
    began = time.monotonic()

    def change() -> None:
        while not over.is_set():
            number = next(counted)
            over.wait(max(0.0, began + number / CHANGING - time.monotonic()))
            row = rows[number % len(rows)]
            hub.ask("PATCH", f"/api/sessions/{row['id']}", {"description": f"step {number}"})

    threads = [threading.Thread(target=change) for _ in range(HANDS)]
    for thread in threads:
        thread.start()
    try:
        return measure()
    finally:
        over.set()
        for thread in threads:
            thread.join()
        rate = (next(counted) - HANDS) / (time.monotonic() - began)
        print(f"{rate:.0f} changes per second")
        assert rate >= CHANGING / 2
