"""``hitch rules test``: a recording through the present rules and new ones, as text and as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.own_agents import own_agent
from tests.ground import Ground, Truth

PRESENT = """
[rules]
version = 1
[[screen]]
state = "blocked"
kind = "permission"
find = ['Allow .*\\?']
message_from = 'Allow (?P<text>.*)\\?'
"""
NEW = PRESENT.replace("version = 1", "version = 2").replace("Allow", "Permit")


@pytest.fixture
def recorded(ground: Ground) -> Truth:
    """A session whose agent has asked twice, the second time in other words."""
    clear = r"printf '\033[2J\033[H%s'"
    own_agent(ground.place, "mine", f"{clear} 'Allow one?'; sleep 0.3; {clear} 'Permit two?'; sleep 0.3", PRESENT)
    session = ground.made("run", "mine", "--json", "--name", "dev", "--workspace", str(ground.place))
    session.ended()
    (ground.place / "new.toml").write_text(NEW)
    return session


def test_the_present_rules_are_told(ground: Ground, recorded: Truth) -> None:
    lines = ground.hitch("rules", "test", "dev").out.splitlines()
    assert lines[0].split() == ["FROM", "TO", "SOURCE", "READS"]
    assert [line.split()[2:] for line in lines[1:]] == [["screen", "blocked", "(permission):", "one"]]


@pytest.mark.parametrize("kind", ["session", "file"])
def test_every_difference_to_new_rules_is_told(ground: Ground, recorded: Truth, kind: str) -> None:
    what = ["dev"]
    if kind == "file":
        what = [str(ground.place / "dev.cast"), "--agent", "mine"]
        ground.hitch("replay", "dev", "--export", what[0])
    words = ("rules", "test", *what, "--rules", str(ground.place / "new.toml"))
    lines = ground.hitch(*words).out.splitlines()
    assert lines[0].split() == ["FROM", "TO", "SOURCE", "PRESENT", "NEW"]
    assert [line.split()[2:] for line in lines[1:-1]] == [
        ["screen", "blocked", "(permission):", "one", "–"],
        ["screen", "–", "blocked", "(permission):", "two"],
    ]
    assert lines[-1] == "2 differences"
    told = ground.hitch(*words, "--json").json()
    assert (told["agent"], told["versions"]) == ("mine", [1, 2])
    blocked = {"state": "blocked", "kind": "permission"}
    assert [(each["present"], each["new"]) for each in told["differences"]] == [
        ({**blocked, "message": "one"}, None),
        (None, {**blocked, "message": "two"}),
    ]
    assert all(each["at"] and each["from_s"] < each["to_s"] for each in told["differences"][:1])


def test_the_same_rules_differ_nowhere(ground: Ground, recorded: Truth) -> None:
    same = ground.place / "same.toml"
    same.write_text(PRESENT)
    assert ground.hitch("rules", "test", "dev", "--rules", same).out == "0 differences\n"


def test_what_is_wrong_is_told(ground: Ground, recorded: Truth) -> None:
    place: Path = ground.place
    (place / "dev.cast").write_text("no recording\n")
    (place / "bad.toml").write_text("[[screen]]\nstate = 'asleep'\nfind = 'x'\n")
    assert "not a recording" in ground.hitch("rules", "test", place / "dev.cast", "--agent", "mine", check=2).err
    assert "cannot read" in ground.hitch("rules", "test", place / "none.cast", check=2).err
    bad = ground.hitch("rules", "test", "dev", "--rules", place / "bad.toml", check=2).err
    assert "expected a state, one of" in bad
    ground.hitch("replay", "dev", "--export", place / "good.cast")
    assert "name one with --agent" in ground.hitch("rules", "test", place / "good.cast", check=2).err
    ground.hitch("rules", "test", "nobody", check=3)
