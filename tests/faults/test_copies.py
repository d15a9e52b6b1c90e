"""A copied home: its sessions are the original's by name and number, its agents are not."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.ground import Ground, Truth, alive, descendants
from tests.support import Hitch, eventually

VERBS = {
    "up": ("up", "--port", "0"),
    "stop": ("stop", "dev"),
    "restart": ("restart", "dev"),
    "attach": ("attach", "dev"),
    "send": ("send", "dev", "hello"),
    "doctor": ("doctor", "--fix"),
    "rm": ("rm", "--force", "dev"),
}


def copied(ground: Ground) -> Path:
    """As ``cp -a``, without what a copy of a socket is not."""
    copy = ground.place.parent / "hitchpost-copy"
    sockets = shutil.ignore_patterns("*.sock")
    shutil.copytree(ground.home, copy, symlinks=True, ignore=sockets)
    os.chmod(copy, 0o700)
    return copy


@pytest.fixture(params=["cgroup", "subreaper"])
def tier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "subreaper":
        monkeypatch.setenv("HITCHPOST_TIER", "subreaper")
    return request.param


def family(dev: Truth, count: int) -> list[int]:
    return eventually(
        lambda: sorted(found) if len(found := [one.pid for one in descendants(dev.keeper_pid())]) == count else None
    )


def attach(ground: Ground, env: dict[str, str]) -> None:
    terminal, inner = pty.openpty()
    try:
        os.write(terminal, b"c\n")
        subprocess.run(
            [*ground.hitch.command, *VERBS["attach"]],
            stdin=inner,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**Hitch.environment(), **env, "TERM": "xterm"},
            start_new_session=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(terminal)
        os.close(inner)


@pytest.mark.ids("F17")
@pytest.mark.parametrize("verb", list(VERBS))
def test_no_command_in_a_copied_home_touches_the_originals_agents(ground: Ground, verb: str) -> None:
    dev = ground.run(
        "sh",
        "-c",
        "setsid sleep 1000 </dev/null >/dev/null 2>&1 & trap '' HUP; while :; do sleep 0.1; done",
        name="dev",
    )
    daemon = eventually(lambda: next((one for one in descendants(dev.keeper_pid()) if one.argv[0] == "sleep"), None))
    copy = copied(ground)
    there = {"HITCHPOST_HOME": str(copy)}
    try:
        if verb == "attach":
            attach(ground, there)
        else:
            ground.hitch(*VERBS[verb], env=there, check=False)
        if verb == "up":
            rows = eventually(
                lambda: rows if (rows := ground.hitch("ps", "--json", env=there).json()) else None,
                what="the hub's list",
            )
            assert rows[0]["label"] == "failed: keeper lost"
        assert alive(dev.keeper_pid())
        assert alive(dev.agent_pid())
        assert alive(daemon.pid)
        assert ground.ps(dev)["label"] == "running"
    finally:
        ground.hitch("down", env=there, check=False)
        if (copy / "sessions" / dev.id).exists():
            ground.hitch("stop", "--now", dev.id, env=there, check=False)
        shutil.rmtree(copy)
    ground.stop(dev, "--now")
    assert not alive(daemon.pid)


def test_the_original_ends_its_own_leftovers_and_not_the_copys(ground: Ground, tier: str) -> None:
    """Both homes have a run of the same session and number."""
    dev = ground.begin_sh("setsid sleep 1000 </dev/null >/dev/null 2>&1 & wait; exec sleep 1000", name="dev")
    ours = family(dev, 2)
    copy = copied(ground)
    there = {"HITCHPOST_HOME": str(copy)}
    twin = Truth(copy, dev.id)
    try:
        ground.hitch("restart", "dev", env=there)
        ground.hitch("stop", "--now", "dev")
        ground.hitch("restart", "dev")
        assert (twin.state_file()["run"], dev.state_file()["run"]) == (2, 2)
        assert not any(map(alive, ours))
        dev.kill_keeper(run=2)
        ground.hitch("stop", "dev")
        assert alive(twin.agent_pid(2))
        assert ground.ps(dev)["label"] == "failed: keeper lost"
    finally:
        ground.hitch("stop", "--now", "dev", env=there)
        shutil.rmtree(copy)
