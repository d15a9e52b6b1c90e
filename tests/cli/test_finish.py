"""``hitch finish`` and ``/api/sessions/ID/finish``: each step is shown first, and nothing is lost."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hitchpost.hub.client import HubRefused
from tests.boxes import Boxed
from tests.cli.attaching import terminals
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.repos import Repo
from tests.support import eventually

WORKS = "while :; do echo working; sleep 0.1; done"


def in_worktree(ground: Ground, repo: Repo, script: str = "echo better > README; echo new > new; exec cat") -> Truth:
    """A session named dev on the branch ``fix``, as soon as it has written its files."""
    words = ("--json", "--name", "dev", "--branch", "fix", "--description", "Mend the door", "--", "sh", "-c", script)
    session = Truth(ground.home, ground.hitch("run", *words, cwd=repo.path).json()["id"])
    tree = folder(ground)
    eventually(lambda: (tree / "new").exists() or script == WORKS, what="its files")
    eventually(lambda: ground.ps(session)["attention"] != "working" or script == WORKS, 20, what="silence")
    return session


def folder(ground: Ground) -> Path:
    return Path(ground.hitch("workspace", "path", "fix").out.strip())


def events(session: Truth) -> list[str]:
    return [line["event"] for line in session.story()]


def test_a_dry_run_shows_every_step_and_does_none(ground: Ground, repo: Repo) -> None:
    session = in_worktree(ground, repo)
    before = (repo.head, repo.git("for-each-ref"), events(session))
    said = ground.hitch("finish", "dev", "--dry-run", "--push").out.splitlines()
    assert said == [
        "commit:  1 changed, 1 new on fix: Mend the door",
        f"merge:   fix into main, 1 commit (fast-forward); the files in {repo.path} follow",
        "push:    there is no remote repository",
        f"remove:  stops the session, then deletes {folder(ground)} with what git ignores there; branch fix stays",
    ]
    plan = ground.hitch("finish", "dev", "--dry-run", "--json").json()
    assert plan["commit"] == {"changed": ["README"], "new": ["new"], "refusal": ""}
    assert (repo.head, repo.git("for-each-ref"), events(session)) == before


def test_finish_commits_merges_and_removes_and_keeps_a_snapshot(ground: Ground, repo: Repo) -> None:
    session = in_worktree(ground, repo)
    tree = folder(ground)
    out = ground.hitch("finish", "dev", "--yes", "-m", "Done").out
    assert repo.files() == {"README": "better\n", "new": "new\n"}
    assert (repo.git("log", "-1", "--format=%s"), repo.git("status", "--porcelain")) == ("Done", "")
    assert not tree.exists()
    assert session.ended() == "stopped"
    assert repo.git("rev-parse", "fix") == repo.head
    snapshot = repo.git("for-each-ref", "--format=%(refname)", "refs/hitchpost/snapshots")
    assert f"dev: uncommitted work is kept in {snapshot}" in out
    assert repo.git("show", f"{snapshot}:new") == "new"
    assert "finished" in events(session)


@pytest.mark.parametrize(
    ("how", "message"), [(("--prompt", "Mend it\nnow"), "Mend it"), (("--prompt-file", "told"), "Work of dev")]
)
def test_a_prompt_that_was_kept_out_of_arguments_is_in_no_commit(
    ground: Ground, repo: Repo, how: tuple[str, str], message: str
) -> None:
    (repo.path / "told").write_text("The password is hush\n")
    ground.hitch("run", "--name", "dev", "--branch", "fix", *how, "--", "cat", cwd=repo.path)
    assert ground.hitch("finish", "dev", "--dry-run", "--json").json()["message"] == message
    ground.hitch("stop", "dev")


def test_steps_are_asked_for_and_only_those_that_are_wanted_are_done(ground: Ground, repo: Repo) -> None:
    in_worktree(ground, repo)
    with terminals() as open_terminal:
        me = open_terminal("finish", "dev", cols=200)
        for question, answer in (("commit? [Y/n]:", b"y\n"), ("merge? [Y/n]:", b"n\n"), ("remove? [Y/n]:", b"n\n")):
            me.shows(question)
            me.type(answer)
        assert me.ends() == 0
        assert "dev: committed" in me.text()
    assert repo.git("log", "-1", "--format=%s", "fix") == "Mend the door"
    assert repo.head != repo.git("rev-parse", "fix")
    assert folder(ground).exists()
    assert "use --yes, or --dry-run" in ground.hitch("finish", "dev", check=2).err
    ground.hitch("stop", "dev")


def test_it_is_refused_while_the_agent_works_unless_forced(ground: Ground, repo: Repo) -> None:
    in_worktree(ground, repo, WORKS)
    (folder(ground) / "new").write_text("half\n")
    err = ground.hitch("finish", "dev", "--yes", check=4).err
    assert err.endswith("dev is still working; wait until it has finished, or use --force\n")
    assert repo.git("rev-parse", "fix") == repo.head
    ground.hitch("finish", "dev", "--yes", "--force")
    assert repo.files()["new"] == "half\n"


def test_an_agent_that_asks_is_not_called_working_when_it_is_refused(ground: Ground, repo: Repo) -> None:
    asks = "echo new > new; printf '\\033]7501;state=blocked:kind=permission\\a'; exec cat"
    in_worktree(ground, repo, asks)
    err = ground.hitch("finish", "dev", "--yes", check=4).err
    assert "dev waits for you in the middle of its work; wait" in err
    ground.hitch("stop", "dev")


def test_a_merge_that_conflicts_changes_nothing_but_the_commit_before_it(ground: Ground, repo: Repo) -> None:
    in_worktree(ground, repo)
    ours = repo.commit("README", "mine\n")
    said = ground.hitch("finish", "dev", "--dry-run").out
    assert "merging fix into main conflicts in README; nothing was changed" in said
    err = ground.hitch("finish", "dev", "--yes", check=4).err
    assert "conflicts in README" in err
    assert (repo.head, repo.files()) == (ours, {"README": "mine\n"})
    assert folder(ground).exists()
    ground.hitch("stop", "dev")


def test_a_branch_is_pushed_alone_and_a_pull_request_is_proposed(
    ground: Ground, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_worktree(ground, repo)
    far = Repo(repo.path.parent / "far.git")
    repo.git("init", "-q", "--bare", far.path)
    repo.git("remote", "add", "origin", str(far.path))
    programs = repo.path.parent / "bin"
    programs.mkdir()
    (programs / "gh").write_text("#!/bin/sh\n")
    (programs / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    out = ground.hitch("finish", "dev", "--yes", "--no-merge", "--no-remove", "--push").out
    assert far.git("rev-parse", "fix") == repo.git("rev-parse", "fix") != repo.head
    assert out.splitlines()[-1] == "open a pull request: gh pr create --head fix --base main"
    ground.hitch("stop", "dev")


def test_what_is_pushed_is_the_branch_that_was_named_also_when_it_was_merged_before(ground: Ground, repo: Repo) -> None:
    in_worktree(ground, repo)
    far = Repo(repo.path.parent / "far.git")
    repo.git("init", "-q", "--bare", far.path)
    repo.git("remote", "add", "origin", str(far.path))
    ground.hitch("finish", "dev", "--yes", "--no-remove")
    out = ground.hitch("finish", "dev", "--yes", "--no-remove", "--push").out
    assert out.splitlines() == [f"push:    main to origin ({far.path})", "dev: pushed main to origin"]
    assert far.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"
    ground.hitch("stop", "dev")


def test_who_wants_no_merge_is_told_that_another_branch_is_pushed(ground: Ground, repo: Repo) -> None:
    in_worktree(ground, repo)
    far = Repo(repo.path.parent / "far.git")
    repo.git("init", "-q", "--bare", far.path)
    repo.git("remote", "add", "origin", str(far.path))
    with terminals() as open_terminal:
        me = open_terminal("finish", "dev", "--no-remove", "--push", cols=200)
        for question, answer in (("commit? [Y/n]:", b"y\n"), ("merge? [Y/n]:", b"n\n")):
            me.shows(question)
            me.type(answer)
        me.shows("push? [Y/n]:")
        assert me.text().rindex("push:    fix to origin") > me.text().index("merge? [Y/n]:")
        me.type(b"y\n")
        assert me.ends() == 0
    assert far.git("for-each-ref", "--format=%(refname)") == "refs/heads/fix"
    ground.hitch("stop", "dev")


def test_a_session_without_a_worktree_of_its_own_is_refused(ground: Ground) -> None:
    ground.begin("cat", name="dev")
    assert (
        "which is no worktree of its own; commit and merge there yourself"
        in ground.hitch("finish", "dev", "--yes", check=4).err
    )


def test_the_hub_shows_the_plan_and_does_the_steps(ground: Ground, repo: Repo, hub: HubProcess) -> None:
    session = in_worktree(ground, repo)
    path = f"/api/sessions/{session.id}/finish"
    plan = hub.ask("GET", path)
    assert (plan["branch"], plan["live"], plan["message"]) == ("fix", True, "Mend the door")
    assert plan["merge"] == {
        "into": "main",
        "kind": "fast-forward",
        "commits": 1,
        "conflicts": [],
        "folder": str(repo.path),
        "refusal": "",
    }
    with pytest.raises(HubRefused) as refused:
        hub.ask("GET", f"{path}?into=nothing")
    assert refused.value.status == 409
    done = hub.ask("POST", path, {"commit": True, "message": "From the page"})
    assert (done["merge"], done["removed"]) == (None, None)
    assert repo.git("log", "-1", "--format=%s", "fix") == "From the page"
    done = hub.ask("POST", path, {"merge": True, "remove": True})
    assert (done["merge"], done["session"]["state"]) == (repo.head, "stopped")
    assert repo.files()["new"] == "new\n"


def test_commits_of_a_container_are_brought_out_first_and_nothing_of_it_runs(
    boxed: Boxed, ground: Ground, repo: Repo
) -> None:
    script = (
        "git config user.name a; git config user.email a@b; echo one > one; git add one; git commit -qm one;"
        "mkdir -p .git-hooks; echo two > two; echo ready; exec cat"
    )
    words = ("run", "--json", "--runtime", "docker", "--image", "hp-plain", "--network", "none", "--name", "dev")
    boxed.engine.load("hp-plain")
    made: dict[str, Any] = json.loads(
        ground.hitch(*words, "--branch", "fix", "--", "sh", "-c", script, cwd=repo.path).out
    )
    session = Truth(ground.home, made["id"])
    eventually(lambda: b"ready" in session.output(), 30, what="its work")
    eventually(lambda: ground.ps(session)["attention"] != "working", 20)
    err = ground.hitch("finish", "dev", "--yes", check=4).err
    assert "the container of dev still runs" in err
    ground.hitch("stop", "dev")
    ground.hitch("finish", "dev", "--yes", "--no-remove", "-m", "rest")
    assert repo.git("log", "--format=%s").splitlines()[:2] == ["rest", "one"]
    assert {"one", "two"} <= set(repo.files())
    assert repo.git("status", "--porcelain") == ""
