"""Finishing a workspace's work with real git: commits, merges and pushes, and nothing of the repository runs."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from hitchpost.errors import GitFailed, Refused
from hitchpost.workspaces import container_writes, finishing, worktree
from hitchpost.workspaces.finishing import CONFLICTS, FAST_FORWARD, MERGED, UP_TO_DATE
from hitchpost.workspaces.store import Workspace
from tests.repos import Repo

HOOKS = [
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-merge-commit",
    "post-merge",
    "pre-push",
    "post-checkout",
    "post-index-change",
    "reference-transaction",
    "post-rewrite",
    "pre-receive",
    "update",
    "post-receive",
    "post-update",
]


@pytest.fixture
def work(home: Path, repo: Repo) -> tuple[Workspace, Repo]:
    """A workspace on the branch ``fix``, and its worktree."""
    made = worktree.make(str(home), str(repo.path), "fix").workspace
    return made, Repo(Path(made.path))


def state(repo: Repo, *branches: str) -> dict[str, str]:
    """Everything that finishing may change on this side."""
    refs = {name: repo.git("rev-parse", name) for name in ("HEAD", "main", "fix", *branches)}
    return {**refs, "status": repo.git("status", "--porcelain"), **repo.files()}


def test_everything_is_committed_and_the_branch_that_is_checked_out_follows_with_its_files(
    home: Path, repo: Repo, work: tuple[Workspace, Repo]
) -> None:
    workspace, tree = work
    tree.write("README", "better\n")
    tree.write("new/file", "new\n")
    before = repo.head
    found = finishing.plan(str(home), workspace)
    assert (found.branch, found.changes.changed, found.changes.untracked) == ("fix", ("README",), ("new/file",))
    assert found.merge is not None
    assert (found.merge.into, found.merge.kind, found.merge.commits) == ("main", FAST_FORWARD, 1)
    assert (found.merge.folder, found.merge.refusal, found.push) == (str(repo.path), "", None)
    assert (repo.head, tree.head) == (before, before), "a plan changes nothing"
    made = finishing.commit(str(home), workspace, "Fix it")
    assert (tree.head, tree.git("log", "-1", "--format=%an %s")) == (made, "Tester Fix it")
    assert tree.git("status", "--porcelain") == ""
    assert finishing.commit(str(home), workspace, "again") is None
    assert finishing.merge(str(home), workspace, "main", "unused") == made
    assert (repo.head, repo.git("status", "--porcelain")) == (made, "")
    assert repo.files() == {"README": "better\n", "new/file": "new\n"}
    assert finishing.merge(str(home), workspace, "main", "unused") is None
    after = finishing.plan(str(home), workspace)
    assert after.merge is not None
    assert (after.changes.count, after.merge.kind) == (0, UP_TO_DATE)


def test_branches_that_have_both_gone_on_are_merged_and_work_of_your_own_stays(
    home: Path, repo: Repo, work: tuple[Workspace, Repo]
) -> None:
    workspace, tree = work
    tree.commit("theirs")
    ours = repo.commit("ours")
    repo.write("README", "not committed\n")
    repo.write("staged", "s\n")
    repo.git("add", "staged")
    found = finishing.plan(str(home), workspace).merge
    assert found is not None
    assert (found.kind, found.commits, found.refusal) == (MERGED, 1, "")
    made = finishing.merge(str(home), workspace, "main", "Merge branch 'fix'")
    assert repo.git("rev-parse", "main^1", "main^2").split() == [ours, tree.head]
    assert (repo.head, repo.git("log", "-1", "--format=%s")) == (made, "Merge branch 'fix'")
    assert repo.git("status", "--porcelain").splitlines() == [" M README", "A  staged"]
    assert set(repo.files()) == {"README", "ours", "staged", "theirs"}


def test_a_merge_that_conflicts_leaves_everything_as_it_was_and_names_the_files(
    home: Path, repo: Repo, work: tuple[Workspace, Repo]
) -> None:
    workspace, tree = work
    tree.commit("README", "theirs\n")
    repo.commit("README", "ours\n")
    before = state(repo)
    found = finishing.plan(str(home), workspace).merge
    assert found is not None
    assert (found.kind, found.conflicts) == (CONFLICTS, ("README",))
    with pytest.raises(Refused, match="merging fix into main conflicts in README; nothing was changed"):
        finishing.merge(str(home), workspace, "main", "m")
    assert state(repo) == before
    assert tree.git("status", "--porcelain") == ""


@pytest.mark.parametrize("name", ["README", "new"])
def test_files_of_your_own_are_never_overwritten(
    home: Path, repo: Repo, work: tuple[Workspace, Repo], name: str
) -> None:
    workspace, tree = work
    tree.commit(name, "theirs\n")
    repo.write(name, "mine, not committed\n")
    before = state(repo)
    found = finishing.plan(str(home), workspace).merge
    assert found is not None
    assert found.refusal == f"{repo.path} has changes of its own in {name}; commit or stash them first"
    with pytest.raises(Refused, match="has changes of its own"):
        finishing.merge(str(home), workspace, "main", "m")
    assert state(repo) == before


def test_a_branch_that_is_not_checked_out_moves_alone_and_one_in_another_worktree_not_at_all(
    home: Path, repo: Repo, work: tuple[Workspace, Repo]
) -> None:
    workspace, tree = work
    made = tree.commit("theirs")
    repo.git("branch", "next")
    files = repo.files()
    assert finishing.merge(str(home), workspace, "next", "m") == made
    assert (repo.git("rev-parse", "next"), repo.files()) == (made, files)
    repo.git("worktree", "add", "-q", "-b", "other", repo.path.parent / "other")
    with pytest.raises(Refused, match=r"other is checked out in another worktree \(other\)"):
        finishing.merge(str(home), workspace, "other", "m")
    with pytest.raises(Refused, match="there is no branch 'nothing'"):
        finishing.merge(str(home), workspace, "nothing", "m")


def test_work_on_another_branch_than_the_workspaces_own_is_not_touched(
    home: Path, repo: Repo, work: tuple[Workspace, Repo]
) -> None:
    workspace, tree = work
    tree.git("checkout", "-q", "-b", "elsewhere")
    tree.write("new")
    for deed in (
        lambda: finishing.plan(str(home), workspace),
        lambda: finishing.commit(str(home), workspace, "m"),
        lambda: finishing.merge(str(home), workspace, "main", "m"),
    ):
        with pytest.raises(Refused, match="is on branch elsewhere, not on its own branch fix"):
            deed()


def test_a_branch_is_pushed_and_never_by_force(home: Path, repo: Repo, work: tuple[Workspace, Repo]) -> None:
    workspace, tree = work
    far = Repo(repo.path.parent / "far.git")
    repo.git("init", "-q", "--bare", far.path)
    with pytest.raises(Refused, match="has no remote repository"):
        finishing.push(str(home), workspace, "fix")
    repo.git("remote", "add", "origin", str(far.path))
    first = tree.commit("one")
    assert finishing.push(str(home), workspace, "fix").url == str(far.path)
    assert far.git("rev-parse", "fix") == first == repo.git("rev-parse", "refs/remotes/origin/fix")
    tree.git("reset", "-q", "--hard", "HEAD^")
    tree.commit("two")
    with pytest.raises(Exception, match="failed to push"):
        finishing.push(str(home), workspace, "fix")
    assert far.git("rev-parse", "fix") == first


@pytest.mark.ids("S7")
def test_no_hook_filter_driver_or_program_of_the_repository_runs(
    home: Path, repo: Repo, work: tuple[Workspace, Repo]
) -> None:
    workspace, tree = work
    canary = repo.path.parent / "canary"
    program = repo.path.parent / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >>{canary}\ncat\n')
    program.chmod(0o755)
    far = Repo(repo.path.parent / "far.git")
    repo.git("init", "-q", "--bare", far.path)
    for folder in (repo.path / ".git/hooks", far.path / "hooks"):
        for hook in HOOKS:
            (folder / hook).write_bytes(program.read_bytes())
            (folder / hook).chmod(0o755)
    repo.git("remote", "add", "origin", str(far.path))
    lines = [f"{number}\n" for number in range(9)]
    repo.commit("both", "".join(lines))
    tree.git("merge", "-q", "main")
    tree.commit("both", "".join(["theirs\n", *lines[1:]]))
    repo.commit("both", "".join([*lines[:-1], "ours\n"]))
    canary.unlink()  # the test's own commits have run them
    tree.write(".gitattributes", "* merge=evil diff=evil\n")
    tree.write("README", "changed\n")
    settings = {
        "core.hooksPath": repo.path / ".git/hooks",
        "core.fsmonitor": program,
        "core.sshCommand": program,
        "core.editor": program,
        "core.alternateRefsCommand": program,
        "commit.gpgSign": "true",
        "gpg.program": program,
        "merge.evil.driver": program,
        "diff.evil.command": program,
        "diff.evil.textconv": program,
        "diff.external": program,
        "credential.helper": f"!{program}",
        "remote.origin.receivepack": program,
        "alias.push": f"!{program}",
    }
    for name, text in settings.items():
        repo.git("config", name, str(text))
    finishing.plan(str(home), workspace)
    assert finishing.commit(str(home), workspace, "m")
    assert finishing.merge(str(home), workspace, "main", "m")
    finishing.push(str(home), workspace, "main")
    assert not canary.exists(), canary.read_text()
    assert refs_of(far)["main"] == refs_of(repo)["main"]


def refs_of(repo: Repo) -> dict[str, str]:
    """Read as files: git would run what the settings say."""
    top = repo.path if (repo.path / "HEAD").exists() else repo.path / ".git"
    return {name: (top / "refs/heads" / name).read_text().strip() for name in ("main",)}


@pytest.mark.ids("S7")
def test_files_that_go_through_a_filter_are_refused_and_the_filter_does_not_run(
    home: Path, repo: Repo, work: tuple[Workspace, Repo]
) -> None:
    workspace, tree = work
    canary = repo.path.parent / "canary"
    for kind in ("clean", "smudge", "process"):
        repo.git("config", f"filter.evil.{kind}", f"touch {canary}; cat")
    tree.write(".gitattributes", "*.big filter=evil\n")
    tree.write("a.big", "content\n")
    before = tree.head
    found = finishing.plan(str(home), workspace)
    assert "go through a filter of git" in found.refusal
    with pytest.raises(Refused, match="go through a filter of git"):
        finishing.commit(str(home), workspace, "m")
    assert (tree.head, canary.exists()) == (before, False)


@pytest.mark.ids("S7")
@pytest.mark.parametrize("url", ["ext::sh -c 'touch CANARY'", "-oProxyCommand=x:y", "fd::17", "foo::bar"])
def test_an_address_that_is_a_program_is_not_pushed_to(
    home: Path, repo: Repo, work: tuple[Workspace, Repo], url: str
) -> None:
    workspace, _ = work
    canary = repo.path.parent / "canary"
    repo.git("config", "protocol.allow", "always")
    repo.git("config", "remote.origin.url", url.replace("CANARY", str(canary)))
    with pytest.raises(Refused, match="is none that can be pushed to"):
        finishing.push(str(home), workspace, "fix")
    assert not canary.exists()


@pytest.mark.ids("S7")
def test_files_of_a_folder_that_is_pushed_to_are_not_touched_and_none_of_its_filters_runs(
    home: Path, repo: Repo, work: tuple[Workspace, Repo]
) -> None:
    workspace, tree = work
    canary, far = repo.path.parent / "canary", Repo(repo.path.parent / "far")
    repo.git("clone", "-q", repo.path, far.path)
    far.git("checkout", "-q", "-b", "fix")
    far.git("config", "receive.denyCurrentBranch", "updateInstead")
    far.git("config", "filter.evil.smudge", f"touch {canary}; cat")
    (far.path / ".git/info/attributes").write_text("* filter=evil\n")
    repo.git("remote", "add", "origin", str(far.path))
    tree.commit("new")
    with pytest.raises(GitFailed, match="failed to push"):
        finishing.push(str(home), workspace, "fix")
    assert not canary.exists()


@pytest.mark.ids("S7")
def test_git_pushes_from_a_folder_that_no_container_can_write(
    home: Path, repo: Repo, work: tuple[Workspace, Repo], monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, tree = work
    repo.git("init", "-q", "--bare", repo.path.parent / "far.git")
    repo.git("remote", "add", "origin", str(repo.path.parent / "far.git"))
    tree.commit("one")
    told, programs = repo.path.parent / "told", repo.path.parent / "bin"
    programs.mkdir()
    (programs / "git").write_text(f'#!/bin/sh\necho "$GIT_DIR" >>{told}\nexec {shutil.which("git")} "$@"\n')
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    temporary = repo.path.parent / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    finishing.push(str(home), workspace, "fix")
    used = [line for line in told.read_text().splitlines() if "hitchpost-git-" in line]
    assert used
    assert [line for line in used if line.startswith(str(temporary))] == []
    assert not any(Path(line).exists() for line in used)


def test_a_repository_that_a_container_could_write_is_not_used(
    home: Path, repo: Repo, work: tuple[Workspace, Repo]
) -> None:
    workspace, tree = work
    tree.write("new")
    container_writes.note_folders(str(home), str(repo.path))
    with pytest.raises(Refused, match="an agent in a container could write"):
        finishing.plan(str(home), workspace)


def test_an_address_is_shown_without_a_password(home: Path, repo: Repo, work: tuple[Workspace, Repo]) -> None:
    repo.git("remote", "add", "origin", "https://me:secret@example.org/shop.git")
    found = finishing.plan(str(home), work[0]).push
    assert found is not None
    assert found.address == "https://example.org/shop.git"


def test_who_commits_has_to_be_known(
    home: Path, repo: Repo, work: tuple[Workspace, Repo], monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, tree = work
    tree.write("new")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    with pytest.raises(Refused, match="git does not know your name"):
        finishing.commit(str(home), workspace, "m")
