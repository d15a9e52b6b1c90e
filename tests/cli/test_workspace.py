"""``hitch run`` in workspaces, and ``hitch workspace``, as a person uses them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from hitchpost.workspaces import snapshot, store
from tests.ground import Ground, Truth
from tests.repos import Repo

SLEEP = ("--", "sleep", "1000")


def run(ground: Ground, repo: Repo, *words: str) -> Truth:
    return Truth(ground.home, ground.hitch("run", "--json", *words, cwd=repo.path).json()["id"])


def record(session: Truth) -> dict[str, object]:
    return json.loads((session.folder / "session.json").read_bytes())


def tree(ground: Ground, name: str = "fix") -> Repo:
    return Repo(Path(store.find(str(ground.home), name).path))


def setup_file(repo: Repo, *commands: str) -> None:
    listed = ", ".join(json.dumps(command) for command in commands)
    repo.commit(".hitchpost.toml", f"[workspace]\nsetup = [{listed}]\n")


# hitch run ------------------------------------------------------------------------------------------------------


@pytest.mark.ids("A31-13")
def test_run_with_a_branch_works_in_a_leased_worktree_of_it(ground: Ground, repo: Repo) -> None:
    dev = run(ground, repo, "--branch", "fix", *SLEEP)
    (shape,) = ground.hitch("ps", "--json").json()
    (workspace,) = store.listed(str(ground.home))
    assert shape["name"] == "sleep-fix"
    place = {"id": workspace.id, "path": workspace.path, "branch": "fix", "repository": str(repo.path)}
    assert shape["workspace"] == place
    assert os.readlink(f"/proc/{dev.agent_pid()}/cwd") == workspace.path
    assert dev.state_file()["workspace_id"] == workspace.id
    stored = record(dev)
    assert (stored["base"], stored["exclusive"], stored["share"]) == (repo.head, True, False)
    slot = json.loads((ground.home / "workspaces" / workspace.id / "slots" / "0").read_bytes())
    assert (slot["session"], slot["name"], slot["run"]) == (dev.id, "sleep-fix", 1)
    row = ground.hitch("ps").out.splitlines()[1].split()
    assert row[:5] == ["1", "sleep-fix", "sleep", "fix", "running"]
    ground.stop(dev, "--now")


@pytest.mark.ids("A31-13", "F54")
def test_a_workspace_in_use_refuses_the_next_names_the_holder_and_leaves_no_session(ground: Ground, repo: Repo) -> None:
    dev = run(ground, repo, "--branch", "fix", "--name", "dev", *SLEEP)
    for place in (("--branch", "fix"), ("--workspace", "fix"), ("--workspace", str(tree(ground).path))):
        answer = ground.hitch("run", *place, *SLEEP, cwd=repo.path, check=4)
        assert answer.err == f"hitch: workspace 'fix' is in use by dev ({dev.id}); --share joins as a reader\n"
    here = ground.hitch("run", "--here", *SLEEP, cwd=tree(ground).path, check=4)
    assert "workspace 'fix' is in use by dev" in here.err
    assert [row["id"] for row in ground.hitch("ps", "--all", "--json").json()] == [dev.id]
    reader = run(ground, repo, "--branch", "fix", "--share", "--name", "reader", *SLEEP)
    assert record(reader)["share"] is True
    refused = ground.hitch("workspace", "rm", "fix", check=4)
    assert refused.err == "hitch: cannot remove workspace 'fix' - currently in use by 2 session(s)\n"
    ground.hitch("stop", "--now", "dev", "reader")
    again = run(ground, repo, "--workspace", "fix", *SLEEP)
    ground.stop(again, "--now")


def test_a_lease_ends_when_the_agent_does(ground: Ground, repo: Repo) -> None:
    run(ground, repo, "--branch", "fix", "--", "true").ended()
    run(ground, repo, "--branch", "fix", "--", "true").ended()


def test_a_killed_keeper_holds_no_lease(ground: Ground, repo: Repo) -> None:
    dev = run(ground, repo, "--branch", "fix", *SLEEP)
    dev.kill_keeper()
    assert ground.hitch("workspace", "show", "fix", "--json").json()["users"] == []
    ground.stop(dev, "--now")


def test_run_in_a_plain_folder_of_a_repository_remembers_the_commit_and_no_branch(ground: Ground, repo: Repo) -> None:
    dev = run(ground, repo, "--", "true")
    dev.ended()
    stored = record(dev)
    assert (stored["base"], stored["branch"], stored["workspace_id"]) == (repo.head, None, None)
    plain = ground.run("true")
    plain.ended()
    assert record(plain)["base"] is None


def test_exclusive_leases_a_plain_folder_however_it_is_named(ground: Ground) -> None:
    dev = Truth(ground.home, ground.hitch("run", "--exclusive", "--json", *SLEEP, cwd=ground.place).json()["id"])
    link = ground.place.parent / "link"
    link.symlink_to(ground.place)
    answer = ground.hitch("run", "--workspace", link, *SLEEP, check=4)
    assert f"workspace 'place' is in use by sleep-place ({dev.id})" in answer.err
    ground.stop(dev, "--now")
    ground.hitch("workspace", "rm", "place")
    assert ground.place.is_dir()
    restarted = ground.hitch("restart", dev.id)
    assert restarted.out == "sleep-place: running (run 2)\n"
    ground.stop(dev, "--now")


@pytest.mark.ids("A31-13", "F54")
def test_a_folder_in_a_workspace_is_leased_with_it(ground: Ground, repo: Repo) -> None:
    ground.hitch("workspace", "create", "fix", cwd=repo.path)
    inner = tree(ground).path / "inner"
    inner.mkdir()
    words = ("run", "--json", "--name", "dev", *SLEEP)
    dev = Truth(ground.home, ground.hitch(*words, cwd=inner).json()["id"])
    (shape,) = ground.hitch("ps", "--json").json()
    assert (shape["workspace"]["path"], shape["workspace"]["branch"]) == (str(inner), "fix")
    for place in (inner, tree(ground).path):
        refused = ground.hitch("run", *SLEEP, cwd=place, check=4)
        assert refused.err == f"hitch: workspace 'fix' is in use by dev ({dev.id}); --share joins as a reader\n"
    ground.hitch("restart", "dev")
    assert os.readlink(f"/proc/{dev.agent_pid(2)}/cwd") == str(inner)
    ground.stop(dev, "--now")
    assert f"present: {inner}" in ground.hitch("explain", "dev").out
    inner.rename(inner.parent / "other")
    assert f"{inner} is gone" in ground.hitch("restart", "dev", check=4).err
    inner.symlink_to(ground.place)
    refused = ground.hitch("restart", "dev", check=4)
    assert f"{inner} is gone or is another folder" in refused.err
    assert "restore" not in refused.err


def test_a_repository_below_a_leased_folder_has_its_own_difference(ground: Ground, repo: Repo) -> None:
    holder = Truth(
        ground.home, ground.hitch("run", "--exclusive", "--json", "--", "true", cwd=repo.path.parent).json()["id"]
    )
    holder.ended()
    dev = run(ground, repo, "--name", "dev", "--", "sh", "-c", "echo new > made")
    dev.ended()
    assert record(dev)["base"] == repo.head
    assert "made" in ground.hitch("diff", "dev", "--stat").out


def test_exclusive_is_refused_where_somebody_works_below(ground: Ground) -> None:
    inner = ground.place / "inner"
    inner.mkdir()
    dev = ground.run("sleep", "1000", name="dev", place=inner)
    answer = ground.hitch("run", "--exclusive", "--workspace", ground.place, *SLEEP, check=4)
    assert answer.err == f"hitch: cannot lease {ground.place}: session dev ({dev.id}) works there\n"
    ground.stop(dev, "--now")


def test_exclusive_is_refused_where_somebody_works_already(ground: Ground) -> None:
    dev = ground.run("sleep", "1000", name="dev")
    answer = ground.hitch("run", "--exclusive", "--workspace", ground.place, *SLEEP, check=4)
    assert answer.err == f"hitch: cannot lease {ground.place}: session dev ({dev.id}) works there\n"
    ground.stop(dev, "--now")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--branch", "x", "--here"), "--branch and --here cannot be combined"),
        (("--branch", "x", "--workspace", "."), "--branch and --workspace cannot be combined"),
        (("--exclusive", "--share"), "--exclusive and --share cannot be combined"),
        (("--branch", "a b"), "'a b' cannot be the name of a branch"),
    ],
)
def test_words_that_do_not_fit_together_are_usage_errors(
    ground: Ground, repo: Repo, words: tuple[str, ...], text: str
) -> None:
    assert text in ground.hitch("run", *words, "--", "true", cwd=repo.path, check=2).err
    assert ground.hitch("ps", "--all", "--json").json() == []


def test_a_workspace_that_is_not_there_is_said(ground: Ground) -> None:
    answer = ground.hitch("run", "--workspace", "nothing", "--", "true", check=3)
    assert answer.err == "hitch: no workspace 'nothing'; hitch workspace ls --all lists them\n"


@pytest.mark.ids("F51", "F53")
def test_restart_stores_uncommitted_work_first_and_says_where(ground: Ground, repo: Repo) -> None:
    dev = run(ground, repo, "--branch", "fix", "--name", "dev", *SLEEP)
    assert ground.hitch("restart", "dev").err == ""
    tree(ground).write("new")
    answer = ground.hitch("restart", "dev")
    (stored,) = snapshot.listing(store.find(str(ground.home), "fix"))
    assert answer.err == f"dev: uncommitted work is kept in {stored.ref}\n"
    assert repo.git("show", f"{stored.ref}:new") == "text"
    ground.stop(dev, "--now")


def test_restart_moves_a_session_to_another_workspace(ground: Ground, repo: Repo) -> None:
    dev = run(ground, repo, "--branch", "fix", "--name", "dev", *SLEEP)
    ground.hitch("workspace", "create", "other", cwd=repo.path)
    answer = ground.hitch("restart", "dev", "--workspace", "other")
    assert answer.out == "dev: running (run 2)\n"
    assert os.readlink(f"/proc/{dev.agent_pid(2)}/cwd") == str(tree(ground, "other").path)
    (shape,) = ground.hitch("ps", "--json").json()
    assert shape["workspace"]["branch"] == "other"
    users = {row["name"]: [one["name"] for one in row["users"]] for row in _listing(ground)}
    assert users == {"fix": [], "other": ["dev"]}
    ground.stop(dev, "--now")


def test_restart_into_a_workspace_in_use_is_refused_and_stops_nothing(ground: Ground, repo: Repo) -> None:
    dev = run(ground, repo, "--branch", "fix", "--name", "dev", *SLEEP)
    other = run(ground, repo, "--branch", "other", "--name", "other", *SLEEP)
    assert "workspace 'other' is in use by other" in ground.hitch("restart", "dev", "--workspace", "other", check=4).err
    assert dev.states() == ["starting", "running"]
    for session in (dev, other):
        ground.stop(session, "--now")


# hitch workspace ------------------------------------------------------------------------------------------------


def _listing(ground: Ground, *words: str) -> list[dict[str, Any]]:
    return ground.hitch("workspace", "ls", "--json", *words).json()


def test_create_ls_show_path_and_rm(ground: Ground, repo: Repo) -> None:
    made = ground.hitch("workspace", "create", "fix", "--json", cwd=repo.path).json()
    path = Path(made["path"])
    assert ground.hitch("workspace", "path", made["id"][:5]).out == f"{path}\n"
    assert ground.hitch("workspace", "show", str(path), "--json").json() == made
    assert made == {
        "id": path.parent.name,
        "name": "fix",
        "path": str(path),
        "repo": str(repo.path / ".git"),
        "branch": "fix",
        "base": repo.head,
        "managed": True,
        "capacity": 1,
        "created_at": made["created_at"],
        "removed_at": None,
        "setup_done": True,
        "state": "clean",
        "text": "clean",
        "users": [],
        "snapshots": [],
    }
    exists = ground.hitch("workspace", "create", "fix", cwd=repo.path, check=5)
    assert exists.err == f"hitch: workspace 'fix' already exists, at {path}\n"
    assert ground.hitch("workspace", "ls").out.splitlines()[1].split() == ["fix", made["id"], "clean", "-", str(path)]
    assert "state:      clean\n" in ground.hitch("workspace", "show", "fix").out
    assert ground.hitch("workspace", "rm", "fix").out == "fix: removed\n"
    assert not path.exists()
    assert _listing(ground, "--all") == []


@pytest.mark.parametrize("verb", ["show", "path", "rm", "restore"])
def test_a_workspace_that_nobody_knows_is_exit_code_3(ground: Ground, verb: str) -> None:
    answer = ground.hitch("workspace", verb, "nothing", check=3)
    assert answer.err == "hitch: no workspace 'nothing'; hitch workspace ls --all lists them\n"


@pytest.mark.ids("F53")
def test_rm_with_work_is_refused_force_says_the_snapshot_and_restore_brings_it_back(ground: Ground, repo: Repo) -> None:
    ground.hitch("workspace", "create", "fix", cwd=repo.path)
    work = tree(ground)
    work.write("new", "work\n")
    assert "it has 1 new file; commit the work" in ground.hitch("workspace", "rm", "fix", check=4).err
    answer = ground.hitch("workspace", "rm", "--force", "fix")
    (ref,) = _listing(ground, "--all")[0]["snapshots"]
    assert answer.err == f"its work is kept in {ref}; hitch workspace restore fix brings it back\n"
    assert _listing(ground) == []
    back = ground.hitch("workspace", "restore", "fix")
    assert back.out == f"fix: restored in {work.path} with the files of {ref}\n"
    assert work.files() == {"README": "shop\n", "new": "work\n"}


def test_a_session_keeps_its_history_when_its_workspace_is_removed(ground: Ground, repo: Repo) -> None:
    dev = run(ground, repo, "--branch", "fix", "--name", "dev", "--", "echo", "hello")
    dev.ended()
    ground.hitch("workspace", "rm", "fix")
    assert ground.hitch("logs", "dev").out == "hello\n"
    refused = ground.hitch("restart", "dev", check=4)
    assert refused.err.endswith("hitch restart dev --workspace FOLDER moves the session\n")


def test_prune_tells_each_decision_and_dry_run_removes_nothing(ground: Ground, repo: Repo) -> None:
    for branch in ("empty", "dirty"):
        ground.hitch("workspace", "create", branch, cwd=repo.path)
    tree(ground, "dirty").write("new")
    told = ground.hitch("workspace", "prune", "--dry-run").out
    assert told.splitlines() == [
        "empty: would be removed: clean, and its branch has no commits of its own",
        "dirty: kept: it has 1 new file",
    ]
    assert len(_listing(ground)) == 2
    found = ground.hitch("workspace", "prune", "--json").json()
    assert [(one["name"], one["remove"]) for one in found] == [("empty", True), ("dirty", False)]
    assert [row["name"] for row in _listing(ground)] == ["dirty"]


@pytest.mark.ids("S7")
def test_setup_runs_only_after_trust_and_a_changed_file_needs_new_trust(ground: Ground, repo: Repo) -> None:
    setup_file(repo, "touch set-up")
    answer = ground.hitch("workspace", "create", "first", cwd=repo.path)
    assert answer.err == (
        "the setup of .hitchpost.toml was not run: it is not trusted; look at it with hitch workspace trust first\n"
    )
    assert ground.hitch("workspace", "trust", cwd=repo.path, stdin="n\n", check=4).err.endswith(
        "hitch: not trusted; nothing was changed\n"
    )
    shown = ground.hitch("workspace", "trust", cwd=repo.path, stdin="y\n").out
    assert f".hitchpost.toml of {repo.path / '.git'} runs:\n  setup     touch set-up\n" in shown
    assert ground.hitch("workspace", "trust", "first").out.endswith("It is trusted already.\n")
    assert ground.hitch("workspace", "create", "second", cwd=repo.path).err == ""
    assert (tree(ground, "second").path / "set-up").exists()
    setup_file(repo, "touch other")
    assert "is not trusted" in ground.hitch("workspace", "create", "third", cwd=repo.path).err
    assert not (tree(ground, "third").path / "other").exists()


def test_a_setup_that_fails_keeps_the_workspace_and_starts_nothing(ground: Ground, repo: Repo) -> None:
    setup_file(repo, "sh -c 'echo no network; exit 9'")
    ground.hitch("workspace", "trust", "--yes", cwd=repo.path)
    answer = ground.hitch("run", "--branch", "fix", *SLEEP, cwd=repo.path, check=1)
    log = tree(ground).path.parent / "setup.log"
    assert answer.err == (
        f"hitch: setup failed: sh -c 'echo no network; exit 9' exited with code 9; its output is in {log}\n"
    )
    assert "no network\n" in log.read_text()
    assert ground.hitch("ps", "--all", "--json").json() == []
    assert [row["setup_done"] for row in _listing(ground)] == [False]


def test_a_restored_workspace_is_set_up_again(ground: Ground, repo: Repo) -> None:
    repo.commit(".gitignore", "set-up\n.env\n")
    repo.commit(".worktreeinclude", ".env\n")
    repo.write(".env", "KEY=1\n")
    setup_file(repo, "touch set-up")
    ground.hitch("workspace", "trust", "--yes", cwd=repo.path)
    ground.hitch("workspace", "create", "fix", cwd=repo.path)
    work = tree(ground)
    before = work.files()
    assert {".env", "set-up"} <= set(before)
    shutil.rmtree(work.path)
    ground.hitch("workspace", "restore", "fix")
    assert work.files() == before


def test_there_is_nothing_to_trust_without_commands(ground: Ground, repo: Repo) -> None:
    answer = ground.hitch("workspace", "trust", cwd=repo.path, check=4)
    assert answer.err == f"hitch: {repo.path} has no .hitchpost.toml with commands; there is nothing to trust\n"


def test_a_record_of_an_older_version_still_loads(ground: Ground) -> None:
    dev = ground.run("true", name="dev")
    dev.ended()
    path = dev.folder / "session.json"
    value = json.loads(path.read_bytes())
    path.write_text(json.dumps({key: value[key] for key in value if key not in ("base", "share")}))
    assert ground.hitch("restart", "dev").out == "dev: completed (run 2)\n"
    dev.ended(run=2)


def test_a_folder_that_was_leased_and_is_another_one_now_is_a_plain_folder(ground: Ground) -> None:
    place = ground.place / "inner"
    place.mkdir()
    first = Truth(ground.home, ground.hitch("run", "--exclusive", "--json", "--", "true", cwd=place).json()["id"])
    first.ended()
    shutil.move(place, ground.place / "moved")
    place.mkdir()
    second = ground.run("true", place=place)
    second.ended()
    assert record(second)["workspace_id"] is None
