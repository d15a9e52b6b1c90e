"""Agents that a person describes: files beside ours add or replace one; a file that is wrong breaks nothing else."""

from __future__ import annotations

import json
import os

import pytest

from tests.cli.own_agents import WORDS, describe, own_agent
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.support import eventually

RULES = """
shows_prompt = true
[rules]
version = 1
[prompt]
queues = false
[[screen]]
state = "blocked"
kind = "permission"
find = ['Allow .*\\?']
message_from = 'Allow (?P<text>.*)\\?'
[[screen]]
state = "idle"
find = ['^ready> ?']
"""
ASKS = (
    "clear='\\033[2J\\033[H'; stty -echo; printf \"$clear\"'ready> '; read -r _; "
    "printf \"$clear\"'Allow to touch it?'; read -r _; printf \"$clear\"'ready> '; exec cat >>got"
)


def test_an_own_agent_is_watched_by_the_rules_of_its_file(ground: Ground) -> None:
    own_agent(ground.place, "mine", ASKS, RULES)
    session = ground.made("run", "mine", "--json", "--name", "dev", "--workspace", str(ground.place))
    eventually(lambda: ground.ps(session)["attention"] == "waiting", 60, what="its prompt")
    ground.hitch("send", "dev", "go")
    eventually(lambda: ground.ps(session)["attention"] == "blocked", 60, what="its question")
    report = ground.ps(session)["report"]
    assert (report["kind"], report["message"], report["source"]) == ("permission", "to touch it", "screen")
    said = ground.hitch("send", "dev", "do not type this", check=4).err
    assert "waiting for a permission: to touch it" in said
    told = [
        (line["state"], line["kind"]) for line in session.story() if line["event"] == "attention" and "kind" in line
    ]
    assert ("blocked", "permission") in told
    ground.hitch("stop", "--now", "dev")


def test_an_own_file_replaces_one_of_ours(ground: Ground) -> None:
    own_agent(ground.place, "claude", WORDS, 'install = "ask me"')
    rows = {row["name"]: row for row in ground.hitch("agents", "--json").json()}
    assert (rows["claude"]["title"], rows["claude"]["install"], rows["claude"]["broken"]) == ("Claude", "ask me", "")
    session = ground.made("run", "claude", "--json", "--workspace", str(ground.place), "--", "-v")
    assert ground.said("said") == "<-v>\n"
    ground.end(session)


BROKEN = {
    "not TOML": ("title = ", "cannot be read"),
    "no program": ('title = "x"\n', "it has no 'argv'"),
    "a program that is no list": ('title = "x"\nargv = "sh -c x"\n', "expected argv to be a list of texts"),
    "a bad pattern": (
        'title = "x"\nargv = ["sh"]\n[[screen]]\nstate = "idle"\nfind = "("\n',
        "the rules of agent mine",
    ),
    "a bad state": ('title = "x"\nargv = ["sh"]\n[[screen]]\nstate = "up"\nfind = "x"\n', "expected a state"),
    "a bad adapter": ('title = "x"\nargv = ["sh"]\nadapter = "magic"\n', "expected adapter to be "),
    "a bad signal": ('title = "x"\nargv = ["sh"]\n[quit]\nsignal = "SIGNOT"\n', "SIGNOT"),
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_file_that_is_wrong_is_listed_with_the_reason_and_breaks_nothing(ground: Ground, text: str) -> None:
    content, why = BROKEN[text]
    session = ground.begin_sh("exec sleep 1000", name="dev")
    describe("mine", content)
    rows = {row["name"]: row for row in ground.hitch("agents", "--json").json()}
    assert why in rows["mine"]["broken"]
    assert [name for name, row in rows.items() if row["broken"]] == ["mine"]
    (line,) = (line for line in ground.hitch("agents").out.splitlines() if line.startswith("mine"))
    assert "broken: " in line
    assert ground.ps(session)["state"] == "running"
    assert why in ground.hitch("run", "mine", "--workspace", ground.place, check=2).err
    assert ground.ids() == [session.id]
    ground.end(session)


def test_a_pipe_in_the_place_of_a_file_hangs_nothing(ground: Ground) -> None:
    path = describe("mine", "")
    path.unlink()
    os.mkfifo(path)
    rows = {row["name"]: row for row in ground.hitch("agents", "--json").json()}
    assert "cannot be read" in rows["mine"]["broken"]


def test_the_hub_works_beside_a_file_that_is_wrong(ground: Ground, hub: HubProcess) -> None:
    session = ground.begin_sh("exec sleep 1000", name="dev")
    describe("mine", "title = ")
    (mine,) = (agent for agent in hub.ask("GET", "/api/catalog")["agents"] if agent["name"] == "mine")
    assert "cannot be read" in mine["broken"]
    eventually(lambda: [agent["id"] for agent in hub.ask("GET", "/api/agents")] == [session.id])
    with hub.http() as client:
        refused = client.post("/api/sessions", json={"agent": "mine", "folder": str(ground.place)})
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, "agent")
    ground.end(session)


def test_a_file_that_became_wrong_ends_no_session(ground: Ground) -> None:
    path = own_agent(ground.place, "mine", WORDS)
    session = ground.made("run", "mine", "--json", "--name", "dev", "--workspace", str(ground.place))
    good = path.read_text()
    path.write_text("title = ")
    assert "cannot be read" in ground.hitch("restart", "dev", check=2).err
    assert (session.state, ground.ps(session)["state"]) == ("running", "running")
    path.write_text(good)
    ground.hitch("restart", "dev")
    assert json.loads((session.folder / "state.json").read_bytes())["run"] == 2
    ground.end(session)


WRAPPED = """
[rules]
version = 1
[[screen]]
state = "blocked"
kind = "permission"
find = ['^Allow this\\?']
message_from = '^Bash: (?P<text>.*)\\n+Allow this'
rows = 2
"""
DANGEROUS = f"rm -rf /srv/{'old-' * 20} && rsync --delete /srv/new/ /srv/shop/ && systemctl restart shop"


def test_a_question_is_read_whole_however_narrow_the_terminal_is(ground: Ground) -> None:
    own_agent(ground.place, "mine", f"printf 'Bash: {DANGEROUS}\\nAllow this? '; exec sleep 1000", WRAPPED)
    session = ground.made("run", "mine", "--json", "--name", "dev", "--workspace", str(ground.place))
    eventually(lambda: ground.ps(session)["attention"] == "blocked", 60, what="its question")
    assert ground.ps(session)["detail"] == DANGEROUS
    assert DANGEROUS in ground.hitch("rules", "test", "dev").out
    ground.end(session)


AT_PROMPT = """
shows_prompt = true
[rules]
version = 1
[[screen]]
state = "idle"
find = ['^ready> ?']
"""


def test_a_prompt_that_made_the_agent_end_was_typed(ground: Ground) -> None:
    own_agent(ground.place, "mine", 'printf "ready> "; read -r code; exit "$code"', AT_PROMPT)
    session = ground.made("run", "mine", "--json", "--name", "dev", "--workspace", str(ground.place))
    eventually(lambda: ground.ps(session)["attention"] == "waiting", 60, what="its prompt")
    assert ground.hitch("send", "dev", "4").out == "typed into dev, not confirmed; the agent has ended\n"
    assert session.ended() == "failed"
    assert session.exit()["code"] == 4
    assert [line["text"] for line in session.story() if line["event"] == "prompt"] == ["4"]


TELLS = """
shows_prompt = true
[rules]
version = 1
[prompt]
queues = false
[[screen]]
state = "blocked"
kind = "permission"
find = ['^Allow it\\?']
options = { yes = "y", no = "n" }
[[screen]]
state = "working"
find = ['gone on']
[[screen]]
state = "idle"
find = ['^ready> ?']
"""
REFUSED = (
    "stty -echo -icanon; printf 'Allow it? '; {{ head -c 1; echo; }} >key; printf '\\033[2J\\033[H{}'; exec cat >>got"
)


def test_why_not_is_the_next_prompt_of_an_agent_that_is_answered_by_keys(ground: Ground) -> None:
    own_agent(ground.place, "mine", REFUSED.format("ready> "), TELLS)
    session = ground.made("run", "mine", "--json", "--name", "dev", "--workspace", str(ground.place))
    eventually(lambda: ground.ps(session)["attention"] == "blocked", 60, what="its question")
    assert "goes with no" in ground.hitch("answer", "dev", "yes", "--message", "use staging", check=2).err
    assert ground.hitch("answer", "dev", "no", "--message", "use staging").out == "answered no to dev\n"
    assert ground.said("key") == "n\n"
    assert ground.said("got") == "use staging\n"
    ground.end(session)


def test_why_not_that_cannot_be_told_is_not_called_told(ground: Ground) -> None:
    own_agent(ground.place, "mine", REFUSED.format("gone on"), TELLS)
    session = ground.made("run", "mine", "--json", "--name", "dev", "--workspace", str(ground.place))
    eventually(lambda: ground.ps(session)["attention"] == "blocked", 60, what="its question")
    said = ground.hitch("answer", "dev", "no", "--message", "use staging", check=1).err
    assert "answered no to dev, but the message was not delivered" in said
    assert ground.said("key") == "n\n"
    assert [line["choice"] for line in session.story() if line["event"] == "answered"] == ["no"]
    ground.end(session)


FREE = """
[rules]
version = 1
[[screen]]
state = "blocked"
kind = "question"
find = ['^Which database\\?']
message = "Which database?"
takes_text = true
"""
READS = "stty -echo; printf 'Which database? '; read -r it; "
READS += "printf '\\033[2J\\033[Hfine'; echo \"$it\" >got; exec sleep 1000"


def test_a_question_that_reads_a_line_is_answered_in_words(ground: Ground) -> None:
    own_agent(ground.place, "mine", READS, FREE)
    session = ground.made("run", "mine", "--json", "--name", "dev", "--workspace", str(ground.place))
    eventually(lambda: ground.ps(session)["attention"] == "blocked", 60, what="its question")
    assert "one line" in ground.hitch("answer", "dev", "Post\ngres", check=4).err
    assert ground.hitch("answer", "dev", "Postgres 17").out == "answered Postgres 17 to dev\n"
    assert ground.said("got") == "Postgres 17\n"
    ground.end(session)


TALKS = """
[conversation]
mints = true
new = ["--session={id}"]
resume = ["--resume={id}"]
"""
TALK = 'printf "%s" "$*" >>said; echo >>said; stty -echo; while :; do printf "ready> "; read -r it; echo "$it"; done'


def test_a_conversation_that_had_a_turn_is_resumed(ground: Ground) -> None:
    own_agent(ground.place, "mine", TALK, AT_PROMPT + TALKS)
    session = ground.made("run", "mine", "--json", "--name", "dev", "--workspace", str(ground.place))
    eventually(lambda: ground.ps(session)["attention"] == "waiting", 60, what="its prompt")
    assert ground.ps(session)["supports_resume"] is False
    ground.hitch("send", "dev", "hello")
    eventually(lambda: ground.ps(session)["supports_resume"], 60, what="a conversation")
    ground.hitch("stop", "--now", "dev")
    ground.hitch("resume", "dev")
    lines = eventually(lambda: found if len(found := ground.said("said").split()) == 2 else None, what="two runs")
    assert lines[1].removeprefix("--resume=") == lines[0].removeprefix("--session=")
    ground.hitch("stop", "--now", "dev")


def test_it_is_said_what_a_prompt_waits_for(ground: Ground) -> None:
    script = 'stty -echo; printf "ready> "; exec cat >>got'
    own_agent(ground.place, "mine", script, AT_PROMPT)
    words = ("--name", "dev", "--workspace", str(ground.place), "--prompt", "hello")
    assert "dev: waiting until it shows that it has the prompt" in ground.hitch("run", "mine", *words).err
    answer = ground.hitch("send", "dev", "more")
    assert answer.out == "typed into dev, not confirmed\n"
    assert answer.err == "dev: waiting until it shows that it has the prompt\n"
    ground.hitch("stop", "--now", "dev")
