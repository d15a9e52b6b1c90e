"""``hitch link``, ``hitch up --open``, and the settings by which a hub is reached."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ground import Ground
from tests.hubs import HubProcess
from tests.reaching import free_port
from tests.signing import launched
from tests.support import eventually


def tokens(ground: Ground) -> list[dict[str, Any]]:
    return ground.hitch("token", "ls", "--json").json()


def test_a_link_signs_one_browser_in_with_the_role_that_it_says(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("sleep 1000")
    made = ground.hitch("link", "--role", "viewer", "--session", dev.id, "--for", "2h")
    url = made.out.strip()
    assert url.startswith(f"{hub.url}/#code=")
    only_here = "only this machine can open it, and no phone: docs/remote.md says how to reach the hub from elsewhere"
    assert made.err == f"it works once, within 2h 0m\n{only_here}\n"
    assert [launched(url) for _ in range(2)] == [200, 0]
    assert [(row["role"], row["sessions"]) for row in tokens(ground)] == [("viewer", [dev.id])]


def test_a_link_is_also_a_code_for_a_camera(ground: Ground, hub: HubProcess) -> None:
    url, *code = ground.hitch("link", "--qr").out.splitlines()
    assert url.startswith(hub.url)
    assert len(code) > 15
    assert set("".join(code)) <= set(" █▀▄")


def test_a_link_lasts_a_day_at_most_and_needs_a_hub(ground: Ground) -> None:
    for wrong in ("never", "25h", "0s", "x"):
        assert "expected --for to be a duration of at most a day" in ground.hitch("link", "--for", wrong, check=2).err
    assert "hitch up starts it" in ground.hitch("link", check=1).err


@pytest.fixture
def opened(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a browser writes down what it was started with."""
    folder, said = ground.place / "bin", ground.place / "opened"
    folder.mkdir()
    (folder / "xdg-open").write_text(f'#!/bin/sh\necho "$@" >{said}.new; mv {said}.new {said}\n')
    (folder / "xdg-open").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    yield said
    ground.hitch("down", check=False)


def test_up_opens_the_page_and_shows_nobody_the_link(ground: Ground, opened: Path) -> None:
    url = ground.hitch("up", "--port", "0", "--open", "--json").json()["launch_url"]
    eventually(opened.exists, what="the browser")
    page = Path(opened.read_text().strip())
    assert "code=" not in str(page)
    assert url in page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_the_settings_say_where_a_hub_is_reached_unless_an_option_does(ground: Ground) -> None:
    port = free_port()
    ground.configure(f'port = {port}\npublic_urls = ["https://hub.example.org"]')
    assert ground.hitch("up", "--json").json()["url"] == "https://hub.example.org/"
    ground.hitch("down")
    other = ground.hitch("up", "--public-url", "http://localhost:9000", "--json").json()
    assert other["url"] == "http://localhost:9000/"
    assert json.loads((ground.home / "hub.json").read_text())["url"] == other["url"]
    again = ground.hitch("up", "--port", "1")
    assert "take effect only when it starts" in again.err
    ground.hitch("down")
