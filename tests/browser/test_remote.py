"""The page from elsewhere: over TLS, through an SSH tunnel and behind nginx, and on a phone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.windows import Window
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.reaching import certificate, free_port, nginx, tunnel

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
AGENT = ("sh", "-c", 'stty -echo; echo ready; while read -r line; do echo "<$line>"; done')


@pytest.fixture
def folder(ground: Ground) -> Path:
    made = ground.place / "reach"
    made.mkdir()
    return made


def again(hub: HubProcess, host: str = "127.0.0.1", port: int = 0, reach: tuple[str, ...] = ()) -> None:
    """The hub at another address."""
    hub.stop()
    hub.start(host=host, port=port, reach=reach)


def use(window: Window) -> None:
    """Sign in, type, and see the answer: requests and a WebSocket got through."""
    window.sign_in()
    window.open_session("dev")
    window.expect_shown("ready")
    window.type("hello")
    window.expect_shown("<hello>")


def test_a_phone_uses_the_page_over_tls(ground: Ground, hub: HubProcess, folder: Path, windows: Callable[..., Window]):
    ground.run(*AGENT, name="dev")
    again(hub, host="127.0.0.2", port=free_port(), reach=certificate(folder))
    assert hub.url.startswith("https://127.0.0.2:")
    use(windows(ignore_https_errors=True, **PHONE))


def test_the_page_works_through_an_ssh_tunnel(
    ground: Ground, hub: HubProcess, folder: Path, windows: Callable[..., Window]
):
    ground.run(*AGENT, name="dev")
    near, far = free_port(), free_port()
    again(hub, port=far)
    with tunnel(folder, near, far):
        page = windows().page
        answer = page.goto(f"http://localhost:{near}/")
        assert answer is not None
        assert (answer.status, "--public-url" in answer.text()) == (403, True)
        again(hub, port=far, reach=("", "", f"http://localhost:{near}"))
        assert hub.url == f"http://localhost:{near}"
        use(windows())


def test_the_page_works_behind_nginx(ground: Ground, hub: HubProcess, folder: Path, windows: Callable[..., Window]):
    ground.run(*AGENT, name="dev")
    front, back = free_port(), free_port()
    again(hub, port=back, reach=("", "", f"https://localhost:{front}"))
    with nginx(folder, front, back):
        window = windows(ignore_https_errors=True)
        use(window)
        assert window.page.url.startswith(f"https://localhost:{front}/")
