"""``hitch restart`` begins anew and sends nothing; ``--again`` sends the first prompt once more."""

from __future__ import annotations

import json
import os
import stat

import pytest

from tests.cli.own_agents import WORDS, own_agent
from tests.cli.test_agent_options import lines
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.support import eventually

READS = 'while read -r line; do echo "$line" >>said; done'


def run(ground: Ground, *words: str) -> Truth:
    return ground.made("run", "--json", "--name", "dev", "--workspace", str(ground.place), *words)


def test_a_prompt_that_is_an_argument_comes_again_only_when_asked_for(ground: Ground) -> None:
    own_agent(ground.place, "mine", WORDS, 'prompt_args = ["--say", "{prompt}"]')
    run(ground, "mine", "--prompt", "fix it", "--", "-v")
    ground.hitch("restart", "dev")
    ground.hitch("restart", "--again", "dev")
    ground.hitch("stop", "--now", "dev")
    ground.hitch("resume", "dev")
    assert lines(ground, 4) == ["<-v><--say><fix it>", "<-v>", "<-v><--say><fix it>", "<-v>"]
    ground.hitch("stop", "--now", "dev")


@pytest.mark.parametrize("words", [("--prompt", "-"), ("--prompt-file", "first")])
def test_a_prompt_that_is_typed_is_typed_again(ground: Ground, words: tuple[str, str]) -> None:
    own_agent(ground.place, "mine", READS, 'prompt_args = ["--say", "{prompt}"]')
    (ground.place / "first").write_text("fix it\n")
    told = ("--name", "dev", "--workspace", ground.place, *words)
    ground.hitch("run", "mine", *told, stdin="fix it\n", cwd=ground.place)
    assert lines(ground, 1) == ["fix it"]
    (session,) = ground.ids()
    kept = Truth(ground.home, session).folder / "prompt.json"
    assert json.loads(kept.read_bytes())["text"] == "fix it"
    assert stat.S_IMODE(os.stat(kept).st_mode) == 0o600
    ground.hitch("restart", "--again", "dev")
    assert lines(ground, 2) == ["fix it", "fix it"]
    assert "fix it" not in str(Truth(ground.home, session).run_file(2)["argv"])
    ground.hitch("stop", "--now", "dev")


def test_without_a_first_prompt_nothing_is_stopped(ground: Ground) -> None:
    session = ground.begin_sh("exec sleep 1000", name="dev")
    said = ground.hitch("restart", "--again", "dev", check=4).err
    assert said == (
        "hitch: dev has no first prompt that could be sent again; hitch restart dev starts it without one\n"
    )
    assert (session.state, session.state_file()["run"]) == ("running", 1)
    ground.end(session)


def test_the_hub_sends_it_again_when_asked(ground: Ground, hub: HubProcess) -> None:
    own_agent(ground.place, "mine", READS)
    session = run(ground, "mine", "--prompt", "fix it")
    assert lines(ground, 1) == ["fix it"]
    hub.ask("POST", f"/api/sessions/{session.id}/restart")
    assert hub.ask("POST", f"/api/sessions/{session.id}/restart", {"again": True})["session"]["run"] == 3
    assert lines(ground, 2) == ["fix it", "fix it"]
    hub.ask("POST", f"/api/sessions/{session.id}/stop")
    answer = hub.ask("POST", f"/api/sessions/{session.id}/resume")
    assert (answer["resumed"], answer["session"]["run"]) == (False, 4)
    eventually(lambda: session.state == "running")
    ground.end(session)
