"""A hub whose user has no inotify watches left, as beside editors: it says so, and looks for itself meanwhile."""

from __future__ import annotations

import subprocess

import pytest

from tests.ground import Ground
from tests.hubs import HubProcess, hub_of
from tests.support import Hitch, eventually

WATCHES, INSTANCES = "max_inotify_watches", "max_inotify_instances"


def limited(limit: str, most: int) -> tuple[str, ...]:
    """A command that runs another one as a user with this limit, in a user namespace of its own."""
    setting = f'echo {most} >/proc/sys/user/{limit} && exec "$@"'
    return ("unshare", "--user", "--map-root-user", "sh", "-c", setting, "sh")


def set_limit(hub: HubProcess, limit: str, most: int) -> None:
    assert hub.process is not None
    enter = ["nsenter", "--target", str(hub.process.pid), "--user", "--preserve-credentials"]
    subprocess.run([*enter, "sh", "-c", f"echo {most} >/proc/sys/user/{limit}"], check=True)


@pytest.fixture(autouse=True)
def namespaces() -> None:
    done = subprocess.run([*limited(WATCHES, 1), "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs user namespaces, which are not permitted here: {done.stderr.strip()}")


def names(hub: HubProcess) -> dict[str, str]:
    return {row["name"]: row["state"] for row in hub.ask("GET", "/api/sessions?all=true")}


@pytest.mark.parametrize(("limit", "sysctl"), [(WATCHES, "max_user_watches"), (INSTANCES, "max_user_instances")])
def test_without_watches_the_hub_looks_for_itself_and_says_so_until_there_are_some(
    ground: Ground, hitch: Hitch, limit: str, sysctl: str
) -> None:
    ground.begin_sh("exit 0", name="old").ended()
    with hub_of(ground, *limited(limit, 0)) as hub:
        assert names(hub) == {"old": "completed"}
        ground.begin_sh("read line", name="new")
        eventually(lambda: names(hub) == {"old": "completed", "new": "running"}, 60, "a session that nobody told of")
        hitch("archive", "old")
        eventually(lambda: "archived" in str(hub.ask("GET", "/api/sessions/old")["record"]), 60)
        (problem,) = hub.ask("GET", "/api/health")["problems"]
        assert f"fs.inotify.{sysctl}" in problem
        assert "every 3 s" in problem
        assert problem in hitch("status").out
        assert problem in hitch("doctor", check=False).out
        assert "cannot be watched" in hub.log()

        set_limit(hub, limit, 1000)
        eventually(lambda: hub.ask("GET", "/api/health")["problems"] == [], 60, "watches again")
        eventually(lambda: "every folder is watched again" in hub.log(), 60)
        hitch("rm", "old")
        eventually(lambda: names(hub) == {"new": "running"}, what="a change that the kernel tells of")


def test_a_session_that_comes_when_the_watches_are_used_up_is_looked_at(ground: Ground, hitch: Hitch) -> None:
    with hub_of(ground, *limited(WATCHES, 1)) as hub:
        session = ground.begin_sh("exit 3", name="new")
        session.ended()
        eventually(lambda: names(hub) == {"new": "failed"}, 60)
        hitch("archive", "new")
        eventually(lambda: hub.ask("GET", "/api/sessions/new")["record"] == "archived", 60)
        assert "1 folders cannot be watched" in hub.ask("GET", "/api/health")["problems"][0]
