"""Signing in: a link until the page can be used, a reload, and a request with a token.

With ``BENCH_BEFORE``, a checkout of another version whose page is built, each figure stands beside that version's.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import sync_playwright

import hitchpost
from bench.page import ARGS
from bench.stage import median, wait_until
from bench.table import Row, at_most_times
from hitchpost.hub import client as hub_client

BEFORE = "BENCH_BEFORE"
CHROMIUM = "/usr/bin/chromium-headless-shell"
REQUESTS_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Version:
    """A hub of one version, with a home of its own."""

    home: str
    environment: dict[str, str]

    def hitch(self, *words: str) -> str:
        argv = [sys.executable, "-c", "from hitchpost.cli.main import main; main()", *words]
        done = subprocess.run(argv, env=self.environment, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def link(self) -> str:
        return str(hub_client.ask(self.home, "POST", "/api/launch-code")["launch_url"])

    def url(self) -> str:
        with open(os.path.join(self.home, hub_client.FILE)) as file:
            return str(json.load(file)["url"])


@contextmanager
def served(source: str) -> Iterator[Version]:
    with tempfile.TemporaryDirectory(prefix="hp-bench-") as home:
        version = Version(home, {**os.environ, "PYTHONPATH": source, "HITCHPOST_HOME": home})
        is_older = not os.path.exists(os.path.join(source, "hitchpost", "hub", "__main__.py"))
        argv = [sys.executable, "-m", "hitchpost.api" if is_older else "hitchpost.hub", "127.0.0.1", "0"]
        process = subprocess.Popen(argv, env=version.environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: os.path.exists(os.path.join(home, hub_client.FILE)), "the hub")
            yield version
        finally:
            process.terminate()
            process.wait()


def by_link(browser: Any, version: Version) -> float:
    """Milliseconds, in a browser that knows nothing, until the page is connected."""
    context = browser.new_context()
    page, link = context.new_page(), version.link()
    took_ms = until_open(page, lambda: page.goto(link))
    context.close()
    return took_ms


def by_reload(browser: Any, version: Version, pages: dict[str, Any]) -> float:
    """The same for a page that is signed in and whose files the browser keeps."""
    if version.home not in pages:
        page = pages[version.home] = browser.new_context().new_page()
        until_open(page, lambda: page.goto(version.link()))
        page.evaluate("navigator.serviceWorker.ready.then(() => undefined)")
        until_open(page, page.reload)
    page = pages[version.home]
    return until_open(page, page.reload)


def until_open(page: Any, go: Callable[[], object]) -> float:
    began = time.perf_counter()
    go()
    page.wait_for_selector(".link.open", state="attached")
    return (time.perf_counter() - began) * 1000


def request(version: Version, connection: http.client.HTTPConnection, token: str) -> float:
    """Milliseconds of one of many small requests, one after the other. The hub hangs up on who is idle in between."""
    connection.close()
    connection.connect()
    began = time.perf_counter()
    for _ in range(REQUESTS_AT_ONCE):
        connection.request("GET", "/api/me", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
    return (time.perf_counter() - began) * 1000 / REQUESTS_AT_ONCE


def measure(*, quick: bool) -> list[Row]:
    rounds = 3 if quick else 25
    before = os.environ.get(BEFORE)
    with ExitStack() as stack:
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGS))
        stack.callback(browser.close)
        sources = [str(Path(hitchpost.__file__).parents[1]), *([os.path.join(before, "src")] if before else [])]
        versions = [stack.enter_context(served(source)) for source in sources]
        tokens = [version.hitch("token", "create") for version in versions]
        addresses = [urlsplit(version.url()) for version in versions]
        lines = [http.client.HTTPConnection(one.hostname or "", one.port, timeout=60) for one in addresses]
        for line in lines:
            stack.callback(line.close)
        pages: dict[str, Any] = {}
        found: dict[str, list[list[float]]] = {}
        for _ in range(rounds):
            for at, version in enumerate(versions):
                for what, took_ms in (
                    ("a link → the page can be used", by_link(browser, version)),
                    ("a reload → the page can be used", by_reload(browser, version, pages)),
                    ("a request with a token", request(version, lines[at], tokens[at])),
                ):
                    found.setdefault(what, [[] for _ in versions])[at].append(took_ms)
    rows = []
    for what, (ours, *others) in found.items():
        anchor, limit = (median(others[0]), at_most_times(1.2)) if others else (None, None)
        rows.append(Row(what, f"median of {rounds}", median(ours), "ms", anchor, "before" if others else "", limit))
    return rows
