"""The setting ``resume_after_reboot``: what a reboot interrupted comes back once, with its conversation."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from hitchpost.ops.sessions.reboot import interrupted
from tests.cli.own_agents import WORDS, own_agent
from tests.ground import Ground, Truth, alive
from tests.hubs import hub_of
from tests.support import eventually

TALKS = '[conversation]\nmints = true\nnew = ["--new={id}"]\nresume = ["--resume={id}"]\n'
Boot = Callable[..., None]


@pytest.fixture
def boot(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Boot:
    """Play a reboot: every process of these sessions is gone, and the machine has another boot id."""

    def play(name: str, *sessions: Truth) -> None:
        for session in sessions:
            agent = session.agent_pid()
            session.kill_keeper()  # the agent ends with it
            eventually(lambda agent=agent: not alive(agent))  # type: ignore[misc]
        monkeypatch.setenv("HITCHPOST_BOOT_ID", name)

    return play


def talking(ground: Ground, name: str) -> Truth:
    """A session in a conversation that has begun."""
    own_agent(ground.place, "mine", WORDS, TALKS)
    place = ground.place / name
    place.mkdir()
    session = ground.made("run", "mine", "--json", "--name", name, "--workspace", str(place))
    said = place / "said"
    eventually(lambda: said.exists() and said.read_text().endswith("\n"), what="its first words")
    path = session.folder / "session.json"
    record = {**json.loads(path.read_bytes()), "conversation_begun": True, "supports_resume": True}
    path.with_name("new").write_text(json.dumps(record))
    path.with_name("new").rename(path)
    return session


def run_of(session: Truth) -> int:
    found: int = session.state_file()["run"]
    return found


def seen_by_a_hub(ground: Ground, boot_id: str) -> None:
    """A hub was up in this boot, and knows so."""
    with hub_of(ground):
        eventually(lambda: boots(ground).get("boot_id") == boot_id, what="a hub that has looked at the boot")


def boots(ground: Ground) -> dict[str, object]:
    path = ground.home / "boots.json"
    return json.loads(path.read_bytes()) if path.exists() else {}


def test_what_a_reboot_interrupted_comes_back_once(ground: Ground, boot: Boot) -> None:
    ground.configure("resume_after_reboot = true")
    boot("first")
    seen_by_a_hub(ground, "first")
    talker, other, stopped = (
        talking(ground, "dev"),
        ground.begin("sleep", "1000", name="other"),
        talking(ground, "done"),
    )
    ground.hitch("stop", "--now", "done")
    conversation = json.loads((talker.folder / "session.json").read_bytes())["conversation_id"]
    boot("second", talker, other)
    with hub_of(ground):
        said = ground.place / "dev/said"
        eventually(
            lambda: said.read_text().splitlines()[1:] == [f"<--resume={conversation}>"], 60, what="its conversation"
        )
        eventually(lambda: ground.ps(talker)["state"] == "running", what="a run that runs")
        assert (ground.ps(other)["label"], run_of(other)) == ("suspended: interrupted by reboot", 1)
        assert (run_of(talker), run_of(stopped)) == (2, 1)
        ground.hitch("stop", "--now", "dev")

    # another hub in the same boot leaves things as they are
    with hub_of(ground):
        assert interrupted(str(ground.home), [talker.id, other.id]) == []
        assert (run_of(talker), run_of(other)) == (2, 1)


def test_without_the_setting_nothing_comes_back_not_even_after_the_next_reboot(ground: Ground, boot: Boot) -> None:
    boot("first")
    seen_by_a_hub(ground, "first")
    old = talking(ground, "old")
    boot("second", old)
    seen_by_a_hub(ground, "second")
    assert (ground.ps(old)["label"], run_of(old)) == ("suspended: interrupted by reboot", 1)
    ground.configure("resume_after_reboot = true")
    new = talking(ground, "new")
    boot("third", new)
    with hub_of(ground):
        eventually(lambda: ground.ps(new)["state"] == "running" and run_of(new) == 2, 60, what="the newer one")
        assert run_of(old) == 1
        ground.hitch("stop", "--now", "new")
