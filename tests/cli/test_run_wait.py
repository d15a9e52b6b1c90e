"""``hitch run --wait``: what became of a prompt, or of a program, as an exit code and as JSON."""

from __future__ import annotations

import json

import pytest

from tests.cli.own_agents import own_agent
from tests.ground import Ground
from tests.support import eventually
from tests.watched import say

RULES = "[rules]\nversion = 1\n"
AGENT = f"""stty -echo
{say("idle")}
read -r line
{say("working")}
case $line in
ask) {say("blocked", ":kind=permission")} ;;
fail) {say("error", message="out of order")} ;;
limit) {say("error", ":kind=limit", message="usage limit, try again at 18:30")} ;;
leave) exit 3 ;;
hang) ;;
*) {say("done", message="it is done")} ;;
esac
exec sleep 1000"""


@pytest.mark.parametrize(
    ("prompt", "outcome", "code"),
    [
        ("go on", "finished", 0),
        ("ask", "asked", 10),
        ("limit", "limit", 11),
        ("fail", "failed", 12),
        ("leave", "failed", 12),
    ],
)
def test_the_exit_code_says_what_became_of_a_prompt(ground: Ground, prompt: str, outcome: str, code: int) -> None:
    own_agent(ground.place, "mine", AGENT, RULES)
    done = ground.hitch("run", "mine", "--name", "dev", "--prompt", prompt, "--wait", "--json", check=code)
    told = done.json()
    assert (told["outcome"], told["answer"], told["usage"]) == (outcome, None, None)
    assert told["session"]["name"] == "dev"
    assert told["session"]["state"] == ("failed" if prompt == "leave" else "running")
    ground.hitch("stop", "--now", "dev", check=False)


def test_it_is_said_in_words_and_an_answer_is_all_that_is_printed(ground: Ground) -> None:
    own_agent(ground.place, "mine", AGENT, RULES)
    done = ground.hitch("run", "mine", "--name", "dev", "--prompt", "go on", "--wait")
    assert done.out == ""
    assert done.err.splitlines()[-1] == "dev: finished (done (Finished))"
    ground.hitch("stop", "--now", "dev")


@pytest.mark.parametrize("before", ["", "sleep 0.2; "], ids=["at once", "later"])
@pytest.mark.parametrize(("script", "outcome", "code"), [("exit 0", "finished", 0), ("exit 3", "failed", 12)])
def test_of_a_program_the_end_is_waited_for(ground: Ground, before: str, script: str, outcome: str, code: int) -> None:
    told = ground.hitch("run", "--wait", "--json", "--", "sh", "-c", f"{before}{script}", check=code).json()
    assert (told["outcome"], told["session"]["exit"]["code"]) == (outcome, int(script[-1]))


def test_when_the_time_is_up_the_session_goes_on(ground: Ground) -> None:
    own_agent(ground.place, "mine", AGENT, RULES)
    done = ground.hitch("run", "mine", "--name", "dev", "--prompt", "hang", "--wait", "--timeout", "1", check=1)
    assert "dev was not idle again after" in done.err
    eventually(lambda: json.loads(ground.hitch("ps", "--json").out)[0]["state"] == "running", what="a running session")
    ground.hitch("stop", "--now", "dev")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("mine", "--wait"), "--wait needs --prompt or --prompt-file"),
        (("--wait", "--attach", "--", "true"), "--wait and --attach cannot be combined"),
        (("--timeout", "5", "--", "true"), "--timeout needs --wait"),
        (("--wait", "--timeout", "soon", "--", "true"), "expected --timeout to be a duration"),
    ],
)
def test_what_makes_no_sense_is_refused(ground: Ground, words: tuple[str, ...], why: str) -> None:
    own_agent(ground.place, "mine", AGENT, RULES)
    assert why in ground.hitch("run", *words, check=2).err
    assert ground.hitch("ps", "--all", "--json").json() == []
