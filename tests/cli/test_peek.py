"""``hitch peek`` and ``rename``, names of commands that people guess, and the help that lists them."""

from __future__ import annotations

from tests.ground import Ground
from tests.support import eventually

DRAW = r"""printf 'old line\n\033[?1049h\033[2J\033[H\033[31mred\033[0m\033[3;5Hhere'; sleep 1000"""


def test_a_peek_shows_the_screen_and_not_what_was_drawn_before(ground: Ground) -> None:
    dev = ground.begin_sh(DRAW)
    eventually(lambda: b"here" in dev.output(), what="the drawing")
    assert ground.hitch("peek", dev.id).out == "red\n\n    here\n"
    assert "\x1b[38;5;1mred" in ground.hitch("peek", dev.id, "--colour").out
    told = ground.hitch("peek", dev.id, "--json").json()
    assert (told["cursor"], told["text"].splitlines()[0]) == ({"col": 8, "row": 2}, "red")
    assert ground.ps(dev)["state"] == "running"


def test_a_peek_at_a_run_that_has_ended_shows_its_last_screen(ground: Ground) -> None:
    dev = ground.begin_sh("echo bye; exit 3")
    dev.ended()
    assert ground.hitch("peek", dev.id).out == "bye\n"
    assert ground.hitch("peek", dev.id, "--run", "2", check=3).out == ""


def test_a_session_is_renamed_and_stays_the_same(ground: Ground) -> None:
    dev, other = ground.begin_sh("sleep 1000"), ground.begin_sh("sleep 1000")
    ground.hitch("rename", other.id, "taken")
    name = ground.ps(dev)["name"]
    assert ground.hitch("rename", dev.id, "auth").out == f"{name} is now auth\n"
    assert ground.hitch("rename", "auth", "auth2", "--json").json()["id"] == dev.id
    refused = ground.hitch("rename", "auth2", "taken", check=5).err
    assert f"is already named 'taken'; choose another name, or hitch cancel {other.id}" in refused
    assert ground.ps(dev)["name"] == "auth2"


def test_other_tools_names_and_slips_are_understood(ground: Ground) -> None:
    dev = ground.begin_sh("sleep 1000")
    for word in ("ls", "list"):
        assert [row["id"] for row in ground.hitch(word, "--json").json()] == [dev.id]
    assert "did you mean attach?" in ground.hitch("atach", dev.id, check=2).err
    assert "did you mean" not in ground.hitch("xyzzy", check=2).err


def test_help_groups_the_commands(ground: Ground) -> None:
    text = ground.hitch("--help").out
    titles = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Options:", "Start:", "Look:", "Act:", "Work on files:", "Hub:", "Elsewhere:", "Machine:"]
