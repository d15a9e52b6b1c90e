"""``hitch fork``: a new session with the conversation, and with the uncommitted work in a worktree of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.own_agents import WORDS, own_agent
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.repos import Repo
from tests.support import eventually

TALKS = """
[options]
model = ["--model={value}"]
[conversation]
mints = true
new = ["--new={id}"]
resume = ["--resume={id}"]
fork = ["--fork={of}", "--as={id}"]
"""


def record(session: Truth) -> dict[str, Any]:
    return json.loads((session.folder / "session.json").read_bytes())


def talking(ground: Ground, place: Path, *words: str, begun: bool = True) -> Truth:
    """A session whose agent can branch off, in a conversation that has begun."""
    own_agent(ground.place, "mine", WORDS, TALKS)
    session = ground.made("run", "mine", "--json", "--name", "dev", "--workspace", str(place), *words)
    path = session.folder / "session.json"
    path.with_name("new").write_text(json.dumps({**record(session), "conversation_begun": begun}))
    path.with_name("new").rename(path)
    return session


def worktree_of(session: Truth) -> Repo:
    return Repo(Path(record(session)["folder"]))


def test_a_fork_has_the_conversation_and_the_uncommitted_work(ground: Ground, repo: Repo) -> None:
    repo.commit(".gitignore", "said\n")
    session = talking(ground, repo.path, "--model", "large", "--", "-v")
    repo.write("README", "changed\n")
    repo.write("new/file", "mine\n")
    eventually(lambda: (repo.path / "said").exists())
    before = (repo.files(), repo.head, repo.git("status", "--porcelain"), record(session)["conversation_id"])
    said = ground.hitch("fork", "dev", "--name", "other")
    assert said.out.startswith("other started as session 2")
    assert said.out.endswith("(run 1), with the conversation of dev\n")
    (made,) = (Truth(ground.home, name) for name in ground.ids() if name != session.id)
    tree = worktree_of(made)
    assert f"it works on branch other, in {tree.path}" in said.err
    assert (tree.files()["README"], tree.files()["new/file"], tree.head) == ("changed\n", "mine\n", before[1])
    assert tree.git("branch", "--show-current") == "other"
    assert tree.git("status", "--porcelain").split() == ["M", "README", "??", "new/"]
    assert before[:3] == (repo.files(), repo.head, repo.git("status", "--porcelain"))
    assert record(session)["conversation_id"] == before[3]
    ours, minted = tree.path / "said", record(made)["conversation_id"]
    assert eventually(lambda: ours.exists() and ours.read_text().endswith("\n"))
    assert ours.read_text() == f"<--fork={before[3]}><--as={minted}><--model=large><-v>\n"
    assert minted != before[3]

    # until its own conversation has a turn, it branches off again; a restart begins anew
    ground.hitch("stop", "--now", "other")
    assert ground.hitch("resume", "other").out.endswith(", the same conversation\n")
    ground.hitch("restart", "other")
    told = eventually(lambda: found if len(found := ours.read_text().splitlines()) == 3 else None)
    assert [line.partition("=")[0] for line in told] == ["<--fork", "<--fork", "<--new"]
    ground.hitch("stop", "--now", "dev", "other")


def test_a_fork_of_a_fork_gets_names_of_its_own(ground: Ground, repo: Repo) -> None:
    talking(ground, repo.path)
    names = [ground.hitch("fork", "dev", "--json").json() for _ in range(2)]
    assert [one["workspace"]["branch"] for one in names] == ["dev-fork", "dev-fork-2"]
    assert ground.hitch("fork", "dev", "--name", "dev", check=5).err.startswith("hitch: ")
    assert len(ground.ids()) == 3
    for session in ground.ids():
        ground.hitch("stop", "--now", session)


def test_a_fork_works_in_the_same_folder_below_the_top(ground: Ground, repo: Repo) -> None:
    repo.write("part/file")
    talking(ground, repo.path / "part")
    made = ground.hitch("fork", "dev", "--json").json()
    assert made["workspace"]["path"].endswith("/part")
    assert (Path(made["workspace"]["path"]) / "file").read_text() == "text\n"
    ground.hitch("stop", "--now", "dev", made["id"])


@pytest.mark.parametrize("case", ["no git", "no turn", "no fork"])
def test_what_cannot_be_forked_says_why_and_makes_nothing(ground: Ground, repo: Repo, case: str) -> None:
    if case == "no fork":
        ground.run("sleep", "1000", name="dev", place=repo.path)
    else:
        talking(ground, ground.place if case == "no git" else repo.path, begun=case != "no turn")
    why = {
        "no git": "which is not in a git repository",
        "no turn": "dev has no conversation yet; send it a prompt first",
        "no fork": "sleep cannot branch off a conversation, so dev cannot be forked",
    }
    assert why[case] in ground.hitch("fork", "dev", check=4).err
    assert (len(ground.ids()), repo.worktrees) == (1, [str(repo.path)])
    ground.hitch("stop", "--now", "dev")


@pytest.mark.ids("S12")
def test_a_link_in_the_place_of_its_folder_leads_no_fork_elsewhere(ground: Ground, repo: Repo) -> None:
    repo.commit("below/file")
    session = talking(ground, repo.path / "below")
    elsewhere = repo.path.parent / "elsewhere"
    elsewhere.mkdir()
    (repo.path / "below").rename(repo.path / "moved")
    (repo.path / "below").symlink_to(elsewhere)
    said = ground.hitch("fork", "dev", check=4).err
    assert f"a link leads from {repo.path}/below to another place" in said
    assert ground.ids() == [session.id]
    assert repo.worktrees == [str(repo.path)]
    assert list(elsewhere.iterdir()) == []
    ground.hitch("stop", "--now", "dev")


def test_the_hub_forks(ground: Ground, repo: Repo, hub: HubProcess) -> None:
    session = talking(ground, repo.path)
    repo.write("new", "mine\n")
    made = hub.ask("POST", f"/api/sessions/{session.id}/fork", {"name": "other"})
    assert (made["session"]["name"], made["session"]["workspace"]["branch"]) == ("other", "other")
    assert (Path(made["session"]["workspace"]["path"]) / "new").read_text() == "mine\n"
    ground.hitch("stop", "--now", "dev", "other")
