"""What an agent may ask for, on real sessions: its own are driven, those of others are not, and limits hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitchpost.errors import HitchpostError, Refused, UsageError
from hitchpost.mcp.coordinator import Coordinator
from hitchpost.mcp.limits import OverLimit
from tests.ground import Ground
from tests.repos import Repo
from tests.support import Hitch
from tests.watched import say

TOML = """
title = "Echo"
argv = ["{program}"]
adapter = "rules"
ready_after_s = 1
"""
ECHO = f"""#!/bin/sh
stty -echo
{say("done", message="said it")}
while read -r line; do
    {say("working")}
    echo "<$line>"
    [ "$line" = leave ] && exit 3
    {say("done", message="said it again")}
done
"""


@pytest.fixture
def program(ground: Ground) -> Path:
    """An agent that says what it is told, in the catalog as ``echo``."""
    path = ground.place.parent / "echo-agent"
    path.write_text(ECHO)
    path.chmod(0o755)
    ground.add_agent("echo", TOML.format(program=path))
    return path


@pytest.fixture
def coordinator(ground: Ground, program: Path) -> Coordinator:
    return Coordinator(str(ground.home), folder=str(ground.place), caller=Hitch.environment(), session="")


def test_a_session_is_started_waited_for_read_prompted_and_stopped(coordinator: Coordinator) -> None:
    begun = coordinator.start("echo", "first task", name="dev")
    assert (begun["name"], begun["agent"], begun["own"], begun["live"]) == ("dev", "echo", True, True)
    found = coordinator.wait(["dev"], timeout_s=60)
    assert found["session"]["attention"] == "done"
    assert coordinator.read("dev")["text"].endswith("<first task>")
    coordinator.prompt("dev", "and then")
    coordinator.wait(["dev"], timeout_s=60)
    assert coordinator.read("dev", 1)["text"].strip() == "<and then>"
    assert [one["name"] for one in coordinator.listed()["sessions"]] == ["dev"]
    stopped = coordinator.stop("dev")
    assert (stopped["live"], stopped["label"]) == (False, "stopped")


def test_the_first_of_several_that_needs_somebody_ends_the_wait(ground: Ground, coordinator: Coordinator) -> None:
    silent = ground.begin_sh(say("working") + "exec cat", name="silent")
    ends = ground.begin_sh(say("working") + "read -r line; exit 4", name="ends")
    assert coordinator.wait(["silent", "ends"], timeout_s=0) == {"session": None, "timed_out": True}
    ground.hitch("send", "ends", "go")
    found = coordinator.wait(["silent", "ends"], timeout_s=60)
    assert (found["session"]["name"], found["timed_out"]) == ("ends", False)
    assert found["session"]["label"] == "failed: command exited with code 4"
    assert ends.state == "failed"
    ground.end(silent)


def test_sessions_of_others_are_seen_and_not_driven_unless_the_person_allows_it(
    ground: Ground, coordinator: Coordinator
) -> None:
    dev = ground.begin_sh("exec cat", name="dev")
    (told,) = coordinator.listed()["sessions"]
    assert (told["name"], told["own"]) == ("dev", False)
    for deed in (
        lambda: coordinator.prompt("dev", "hello"),
        lambda: coordinator.answer("dev", "yes"),
        lambda: coordinator.stop("dev"),
    ):
        with pytest.raises(Refused, match="dev was started by somebody else"):
            deed()
    assert dev.state == "running"
    ground.configure('[mcp]\nreach = "all"\n')
    assert coordinator.stop("dev")["live"] is False


def test_what_another_agent_has_started_is_not_ones_own(ground: Ground, coordinator: Coordinator) -> None:
    coordinator.start("echo", "x", name="dev")
    other = Coordinator(str(ground.home), folder=str(ground.place), caller=Hitch.environment(), session="abcdefghijkl")
    with pytest.raises(Refused, match="somebody else"):
        other.stop("dev")
    coordinator.stop("dev")


def test_an_agent_does_not_drive_itself(ground: Ground, program: Path) -> None:
    dev = ground.begin_sh("exec cat", name="dev")
    ground.configure('[mcp]\nreach = "all"\n')
    inside = Coordinator(str(ground.home), folder=str(ground.place), caller=Hitch.environment(), session=dev.id)
    with pytest.raises(Refused, match="the session that you run in yourself"):
        inside.stop("dev")
    ground.end(dev)


@pytest.mark.parametrize(
    ("settings", "options", "why"),
    [
        ('may = ["list"]', {}, "do not allow an agent to start sessions"),
        ('agents = ["claude"]', {}, "allow only these agents: claude"),
        ("", {"permission_mode": "bypass"}, "allow these permission modes: none"),
        ('permission_modes = ["plan"]', {"permission_mode": "bypass"}, "allow these permission modes: plan"),
        ("", {"folder": "/"}, "allow work below .*place only"),
        ("", {"folder": "../.."}, "allow work below .*place only"),
        ('folders = ["/nowhere"]', {}, "allow work below /nowhere only"),
        ("sessions_max = 0", {}, "0 sessions of yours are live, and 0 may be"),
    ],
)
def test_no_more_is_started_than_the_person_allows(
    ground: Ground, coordinator: Coordinator, settings: str, options: dict[str, str], why: str
) -> None:
    ground.configure(f"[mcp]\n{settings}\n")
    with pytest.raises(OverLimit, match=why) as error:
        coordinator.start("echo", "x", **options)
    assert "[mcp] in config.toml" in str(error.value)
    assert ground.ids() == []


def test_a_link_out_of_the_folder_is_no_way_out(ground: Ground, coordinator: Coordinator) -> None:
    (ground.place / "out").symlink_to("/")
    with pytest.raises(OverLimit, match="allow work below"):
        coordinator.start("echo", "x", folder="out")


def test_only_so_many_live_at_once(ground: Ground, coordinator: Coordinator) -> None:
    ground.configure("[mcp]\nsessions_max = 1\n")
    coordinator.start("echo", "x", name="one")
    with pytest.raises(OverLimit, match="1 sessions of yours are live, and 1 may be"):
        coordinator.start("echo", "x")
    coordinator.stop("one")
    coordinator.start("echo", "x", name="two")
    coordinator.stop("two")


def test_a_workspace_is_made_and_worked_in(ground: Ground, repo: Repo, program: Path) -> None:
    coordinator = Coordinator(str(ground.home), folder=str(repo.path), caller=Hitch.environment(), session="")
    made = coordinator.make_workspace("fix")
    assert (made["branch"], Path(made["path"]).is_dir()) == ("fix", True)
    begun = coordinator.start("echo", "x", name="dev", branch="fix")
    assert (begun["branch"], begun["folder"]) == ("fix", made["path"])
    coordinator.stop("dev")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"sessions": []}, "expected 1 to 50 sessions, but got 0"),
        ({"sessions": ["dev"], "timeout_s": 601}, "expected timeout_s to be 0 to 600, but got 601"),
        ({"sessions": ["dev"], "until": "never"}, "expected until to be one of"),
        ({"sessions": ["dev"]}, "no session 'dev'"),
    ],
)
def test_what_cannot_be_waited_for_is_said(coordinator: Coordinator, options: dict[str, object], why: str) -> None:
    with pytest.raises((UsageError, HitchpostError), match=why):
        coordinator.wait(**options)  # type: ignore[arg-type]
