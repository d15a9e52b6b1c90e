"""Being told by the browser: asked for on a click, shown by an open page and by a push, and it opens its session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Playwright

from tests.browser.conftest import ARGS
from tests.browser.windows import Window, expect
from tests.ground import Ground
from tests.hubs import HubProcess, hub_of
from tests.support import eventually

CHROMIUM = "/usr/bin/chromium"
"""The whole browser: its headless shell shows no notifications."""
AT_ONCE = '[notify]\ndwell_s = 0\ngroup_s = 0\noff = ["terminal"]\n'
NOTED = """self.asked = [];
const show = ServiceWorkerRegistration.prototype.showNotification;
ServiceWorkerRegistration.prototype.showNotification = function (...words) {
    const done = show.apply(this, words);
    self.asked.push(done);
    return done;
};"""
"""Keeps the browser's promises to show something."""
SHOWN = """navigator.serviceWorker.ready.then(worker => worker.getNotifications()).then(all =>
    all.map(one => ({title: one.title, body: one.body, tag: one.tag, session: one.data.session})))"""


@pytest.fixture(scope="module")
def whole_browser(playwright: Playwright) -> Iterator[Browser]:
    chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
    yield chromium
    chromium.close()


@pytest.fixture
def told_hub(ground: Ground) -> Iterator[HubProcess]:
    ground.configure(AT_ONCE)
    with hub_of(ground) as made:
        yield made


@pytest.fixture
def window(whole_browser: Browser, told_hub: HubProcess) -> Iterator[Window]:
    made = Window.open(whole_browser, told_hub)
    made.page.add_init_script(NOTED)
    made.sign_in()
    yield made
    made.close()
    assert made.errors == []


def allow(window: Window) -> None:
    """As the person does who is asked: the page asks when its button is clicked."""
    page = window.page
    page.goto(f"{window.hub.url}/?settings=1")
    box = page.get_by_role("region", name="Notifications")
    expect(box.get_by_text("Notifications are not allowed yet.")).to_be_visible()
    window.context.grant_permissions(["notifications"], origin=window.hub.url)
    box.get_by_role("button", name="Allow notifications").click()
    expect(box.get_by_text("Shows notifications while a page is open.")).to_be_visible()
    expect(page.locator(".link.open")).to_be_attached()  # what the hub says before that, nobody hears


def shown(window: Window) -> list[dict[str, Any]]:
    return window.page.evaluate(SHOWN)


def shown_by_page(window: Window) -> list[dict[str, Any]]:
    """The browser is asked once it has shown something: it forgets what it is about to show while it is asked."""
    asked = window.page.evaluate("Promise.all(window.asked).then(done => done.length)")
    return shown(window) if asked else []


def told(window: Window) -> list[dict[str, Any]]:
    """What the hub has said to the page that is open."""
    window.page.evaluate("0")  # lets events come in
    return [event for event in window.wires[-1].events if event["type"] == "notification"]


def of_worker(window: Window) -> tuple[CDPSession, str]:
    """A session of the browser's debugger, and the id of the page's worker."""
    found: list[str] = []
    debugger = window.context.new_cdp_session(window.page)
    debugger.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: found.extend(one["registrationId"] for one in event["registrations"]),
    )
    debugger.send("ServiceWorker.enable")

    def registration() -> str:
        window.page.evaluate("0")  # lets events come in
        return found[-1] if found else ""

    return debugger, eventually(registration, 20, "the worker")


def test_an_open_page_shows_what_the_hub_tells_once_allowed_by_a_click(ground: Ground, window: Window) -> None:
    ground.begin_sh("exit 3", name="early")
    eventually(lambda: told(window), 20, "the hub's message")
    assert shown_by_page(window) == []
    allow(window)
    dev = ground.begin_sh("exit 3", name="dev")
    (one,) = eventually(lambda: shown_by_page(window), 20, "a notification")
    assert (one["title"], one["body"], one["session"]) == ("dev: Failed", "command exited with code 3", dev.id)
    again = told(window)[0]
    assert (again["id"], again["to"]) == (one["tag"], "browser")


def test_a_push_is_shown_when_it_comes_and_a_message_that_comes_twice_is_there_once(window: Window) -> None:
    allow(window)
    debugger, registration = of_worker(window)
    message = {
        "id": "m1",
        "title": "dev: Finished",
        "body": "all green",
        "session": "s1",
        "link": "x",
        "kind": "finished",
    }
    deliver = {"origin": window.hub.url, "registrationId": registration, "data": json.dumps(message)}
    worker = window.context.service_workers[0]
    worker.evaluate(f"() => {{ {NOTED} }}")
    for _ in range(2):
        debugger.send("ServiceWorker.deliverPushMessage", deliver)
    eventually(lambda: worker.evaluate("Promise.all(asked).then(done => done.length)") == 2, what="both to be shown")
    assert shown(window) == [{"title": "dev: Finished", "body": "all green", "tag": "m1", "session": "s1"}]


def test_a_click_opens_that_session_in_the_page(ground: Ground, window: Window) -> None:
    allow(window)
    dev = ground.begin_sh("echo oh; exit 3", name="dev")
    eventually(lambda: shown_by_page(window), 20, "a notification")
    page, dialog = window.page, window.page.get_by_role("dialog")
    prompt = dialog.get_by_label("What should be done?")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.keyboard.press("n")
    prompt.fill("half a thought")
    worker = window.context.service_workers[0]
    # a click by the desktop cannot be made here: the worker gets the very event that one is
    worker.evaluate(
        """async () => {
            const [notification] = await registration.getNotifications();
            dispatchEvent(new NotificationEvent("notificationclick", { notification }));
        }"""
    )
    expect(page.locator(".pane")).to_have_attribute("aria-label", "dev")
    assert page.url == f"{window.hub.url}/?session={dev.id}"
    assert shown(window) == []
    # the dialog that was in the way is closed, keeps what was typed, and can be left again
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="New", exact=True).click()
    expect(prompt).to_have_value("half a thought")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page).to_have_url(f"{window.hub.url}/?session={dev.id}")
    window.choose("dev", "Rename…")
    expect(dialog).to_be_visible()
    worker.evaluate(
        """async () => {
            const [page] = await clients.matchAll({ includeUncontrolled: true });
            page.postMessage({ open: "" });
        }"""
    )
    expect(page.locator(".pane")).to_have_count(0)
    expect(dialog).to_have_count(0)


def test_settings_choose_kinds_quiet_hours_and_ways_and_try_them(window: Window) -> None:
    allow(window)
    box = window.page.get_by_role("region", name="Notifications")
    box.get_by_role("checkbox", name="Finished").uncheck()
    eventually(lambda: "finished" not in set_to(window)["kinds"], 20)
    box.get_by_label("Quiet from").fill("22:00")
    box.get_by_label("Quiet until").fill("07:00")
    box.get_by_role("button", name="Set", exact=True).click()
    eventually(lambda: set_to(window)["quiet_hours"] == "22:00-07:00", 20)
    box.get_by_role("button", name="Clear").click()
    eventually(lambda: set_to(window)["quiet_hours"] == "", 20)
    box.get_by_role("checkbox", name="Terminals").check()
    eventually(lambda: all(channel["on"] for channel in set_to(window)["channels"]), 20)
    box.get_by_role("button", name="Test Open pages").click()
    expect(box.get_by_text("Open pages: sent")).to_be_visible()
    (one,) = eventually(lambda: shown(window), 20, "the test")
    assert one["title"] == "Hitchpost: a test"


def set_to(window: Window) -> dict[str, Any]:
    return window.hub.ask("GET", "/api/notifications")
