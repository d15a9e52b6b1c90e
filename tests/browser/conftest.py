"""A real browser for the tests of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

from tests.browser.windows import Window
from tests.hubs import HubProcess

CHROMIUM = "/usr/bin/chromium-headless-shell"
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"]


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    """One for all files of this folder. It runs an event loop in this thread, which is in the way of other tests."""
    with sync_playwright() as made:
        yield made


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
    yield chromium
    chromium.close()


@pytest.fixture
def windows(browser: Browser, hub: HubProcess, request: pytest.FixtureRequest) -> Iterator[Callable[..., Window]]:
    """Opens windows of browsers that know nothing of each other. No script of ours may have failed in any of them.

    They keep the page for later, as an app, only in tests that are marked so: it is a fifth of what opening it takes.
    """
    opened: list[Window] = []
    usual = {"service_workers": "allow" if request.node.get_closest_marker("keeps_page") else "block"}

    def window(**options: object) -> Window:
        opened.append(Window.open(browser, hub, **{**usual, **options}))
        return opened[-1]

    yield window
    for one in opened:
        one.close()
    assert [error for one in opened for error in one.errors] == []


@pytest.fixture
def window(windows: Callable[..., Window]) -> Window:
    """A window that is signed in."""
    made = windows()
    made.sign_in()
    return made
