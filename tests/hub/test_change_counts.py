"""What a session has changed is counted when a turn or a run ends, or somebody asks for it, and told to everybody."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.repos import Repo
from tests.support import eventually
from tests.watched import say

WAIT = 'read -r _ <"$1.{}"\n'
TURNS = f"printf 'a\\nb\\n' >new\n{say('working')}{WAIT.format(1)}{say('done')}"
TURNS += f"{WAIT.format(2)}{say('working')}{WAIT.format(3)}echo c >>new\n{say('done')}exec sleep 1000"


def begun(ground: Ground, repo: Repo, script: str) -> tuple[Truth, Callable[[int], object]]:
    """A session in a worktree of its own, and what lets it go on, wait by wait. Each has a pipe of its own: a line for
    the next wait could still reach the one before."""
    go_on = ground.place / "go-on"
    for number in (1, 2, 3):
        os.mkfifo(f"{go_on}.{number}")
    words = ("run", "--json", "--name", "dev", "--branch", "work", "--", "sh", "-c", script, "agent", str(go_on))
    return Truth(ground.home, ground.hitch(*words, cwd=repo.path).json()["id"]), lambda number: Path(
        f"{go_on}.{number}"
    ).write_text("\n")


def counted(session: dict[str, Any]) -> tuple[int, int, int] | None:
    found = session["changes"]
    return None if found is None else (found["files"], found["added"], found["deleted"])


def test_changes_are_counted_when_a_turn_ends(ground: Ground, hub: HubProcess, repo: Repo) -> None:
    dev, go_on = begun(ground, repo, TURNS)

    def shape() -> dict[str, Any]:
        found: dict[str, Any] = hub.ask("GET", "/api/sessions/dev")
        return found

    eventually(lambda: shape()["attention"] == "working")
    assert counted(shape()) is None
    go_on(1)
    eventually(lambda: counted(shape()) == (1, 2, 0), what="the first count")
    assert shape()["detail"] == "+2 −0"
    assert counted(ground.ps(dev)) == (1, 2, 0), "it is written down, for whoever reads the files"
    go_on(2)
    eventually(lambda: shape()["attention"] == "working")
    go_on(3)
    eventually(lambda: counted(shape()) == (1, 3, 0), what="the second count")
    ground.end(dev)


def test_changes_are_counted_when_a_run_ends_and_when_somebody_asks(
    ground: Ground, hub: HubProcess, repo: Repo
) -> None:
    dev, go_on = begun(ground, repo, f"echo text >new; {WAIT.format(1)}")
    go_on(1)
    dev.ended()
    eventually(lambda: counted(hub.ask("GET", "/api/sessions/dev")) == (1, 1, 0))
    shown = hub.ask("GET", "/api/sessions/dev")
    assert (shown["headline"], shown["detail"]) == ("Finished", "+1 −0")
    hub.stop()
    with open(f"{shown['workspace']['path']}/new", "a") as new:
        new.write("more\n")
    ground.hitch("diff", "dev")
    assert counted(ground.ps(dev)) == (1, 2, 0)


def test_a_folder_that_is_not_the_sessions_own_is_not_counted(ground: Ground, repo: Repo) -> None:
    repo.write("new")
    dev = ground.begin_sh("exec cat", name="dev", place=repo.path)
    assert "+text" in ground.hitch("diff", "dev").out
    assert ground.ps(dev)["changes"] is None
    ground.end(dev)
