"""Large recordings and screens: the hub holds none of them whole, and a large one makes nobody wait."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from tests.ground import Ground, Truth
from tests.hubs import HubProcess

LINES = 150_000
MIB = 1 << 20
ONE_LINE = "the quick brown fox jumps over the lazy dog, and the log of it has more than a hundred bytes to each line"


@pytest.fixture
def large(ground: Ground) -> Truth:
    """A run that has written some 16 MB and has ended."""
    session = ground.begin_sh(f"yes '{ONE_LINE}' | head -n {LINES}; echo the end", name="large")
    session.ended(timeout_s=120)
    assert len(session.output()) > LINES * len(ONE_LINE)
    return session


def memory(hub: HubProcess, what: str) -> int:
    """``VmRSS`` or ``VmHWM`` of the hub, in bytes."""
    assert hub.process is not None
    text = Path(f"/proc/{hub.process.pid}/status").read_text()
    return int(text.partition(f"{what}:")[2].split()[0]) * 1024


@pytest.mark.timeout(240)
def test_recordings_are_streamed_and_not_held_in_memory(large: Truth, hub: HubProcess) -> None:
    assert hub.process is not None
    path = f"/api/sessions/{large.id}/recording"

    def fetch() -> str:
        last = ""
        with hub.http() as client, client.stream("GET", path) as answer:
            assert answer.headers["content-type"] == "application/x-asciicast"
            for line in answer.iter_lines():
                last = line or last
        return last

    hub.ask("GET", "/api/health")
    before = memory(hub, "VmRSS")
    Path(f"/proc/{hub.process.pid}/clear_refs").write_text("5")
    with ThreadPoolExecutor(3) as pool:
        ends = [one.result() for one in [pool.submit(fetch) for _ in range(3)]]
    assert [json.loads(line)[1:] for line in ends] == [["x", "0"]] * 3
    assert memory(hub, "VmHWM") - before < 32 * MIB


@pytest.mark.timeout(240)
def test_a_large_screen_makes_no_other_wait(large: Truth, ground: Ground, hub: HubProcess) -> None:
    small = ground.begin_sh("echo small; read line", name="small")
    ended: list[str] = []

    def ask(session: Truth) -> None:
        assert hub.ask("GET", f"/api/sessions/{session.id}/screen")["text"]
        ended.append(session.id)

    hub.ask("GET", f"/api/sessions/{small.id}/screen")  # the emulator is loaded
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, large)]
        asked += [pool.submit(ask, small) for _ in range(3)]
        wait(asked)
    assert [one.exception() for one in asked] == [None] * 4
    assert ended[-1] == large.id
