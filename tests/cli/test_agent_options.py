"""``hitch run --permission-mode --model``: the agent's own flags, in every run of the session."""

from __future__ import annotations

import json

import pytest

from tests.cli.own_agents import WORDS, own_agent
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.support import eventually

OPTIONS = """
[env_flags]
MINE_MODE = "--permission-mode"
[options]
permission_mode = ["--permission-mode", "{value}"]
model = ["--use={value}"]
"""


def lines(ground: Ground, count: int) -> list[str]:
    """What ``count`` runs wrote down."""
    path = ground.place / "said"
    return eventually(
        lambda: found if path.exists() and len(found := path.read_text().splitlines()) == count else None,
        what=f"{count} runs",
    )


@pytest.fixture
def mine(ground: Ground) -> tuple[str, ...]:
    own_agent(ground.place, "mine", WORDS, OPTIONS)
    return ("run", "mine", "--name", "dev", "--workspace", str(ground.place))


def test_what_a_session_chooses_is_kept_for_every_run(ground: Ground, mine: tuple[str, ...]) -> None:
    ground.hitch(*mine, "--permission-mode", "plan", "--model", "large one", "--", "--verbose")
    ground.hitch("restart", "dev", env={"MINE_MODE": "other"})
    ground.hitch("stop", "--now", "dev")
    ground.hitch("resume", "dev")
    assert lines(ground, 3) == ["<--permission-mode><plan><--use=large one><--verbose>"] * 3
    (session,) = ground.ids()
    record = json.loads((Truth(ground.home, session).folder / "session.json").read_bytes())
    assert (record["permission_mode"], record["model"]) == ("plan", "large one")
    ground.hitch("stop", "--now", "dev")


def test_a_variable_counts_where_the_session_has_chosen_nothing(ground: Ground, mine: tuple[str, ...]) -> None:
    ground.hitch(*mine, "--model", "small", env={"MINE_MODE": "other"})
    assert lines(ground, 1) == ["<--permission-mode><other><--use=small>"]
    ground.hitch("stop", "--now", "dev")


def test_an_agent_without_such_an_option_is_refused_before_anything_is_made(ground: Ground) -> None:
    own_agent(ground.place, "mine", WORDS)
    said = ground.hitch("run", "mine", "--workspace", ground.place, "--model", "large", check=2).err
    assert said == "hitch: Mine has no option for the model; pass its own arguments after --\n"
    said = ground.hitch("run", "--permission-mode", "plan", "--", "sleep", "9", check=2).err
    assert said == "hitch: sleep has no option for the permission mode; pass its own arguments after --\n"
    assert ground.ids() == []


def test_rest_takes_both(ground: Ground, mine: tuple[str, ...], hub: HubProcess) -> None:
    body = {"agent": "mine", "name": "dev", "folder": str(ground.place), "model": "large", "permission_mode": "plan"}
    hub.ask("POST", "/api/sessions", body)
    assert lines(ground, 1) == ["<--permission-mode><plan><--use=large>"]
    ground.hitch("stop", "--now", "dev")
