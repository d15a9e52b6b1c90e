"""Neither a repository, nor a hook, nor a commit that an agent in a container could write runs anything here."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hitchpost.errors import Refused
from hitchpost.ops.sessions.place import choose
from hitchpost.workspaces import container_commits, container_git, container_writes, copying, project, store, worktree
from hitchpost.workspaces.removal import remove
from hitchpost.workspaces.restoring import restore
from hitchpost.workspaces.tree import discover
from tests.boxes import SOMEBODY
from tests.repos import Repo
from tests.support import Hitch
from tests.workspaces.copies import copied

HOOKS = ("post-checkout", "post-index-change", "reference-transaction")


@pytest.fixture
def canary(repo: Repo) -> Path:
    return repo.path.parent / "canary"


def program(path: Path, canary: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n")
    path.chmod(0o755)


def secret(repo: Repo) -> Repo:
    """Another repository of the same person, with a worktree."""
    found = Repo(repo.path.parent / "secret")
    repo.git("clone", "-q", repo.path, found.path)
    found.commit("key", "secret\n")
    found.git("worktree", "add", "-q", "-b", "feature", repo.path.parent / "wt")
    return found


# Which repository -------------------------------------------------------------------------------------------------


@pytest.mark.ids("S7")
def test_a_file_that_names_another_repository_gives_a_container_nothing_of_it(repo: Repo) -> None:
    place = repo.path.parent / "place"
    place.mkdir()
    other = secret(repo)
    (place / ".git").write_text(f"gitdir: {other.path}/.git/worktrees/wt\n")
    assert discover(str(place)) is None
    (place / ".git").write_text(f"gitdir: {other.path}/.git\n")
    found = discover(str(place))
    assert found is not None
    with pytest.raises(Refused):
        container_git.check(found)


def test_worktrees_submodules_and_separate_git_folders_are_found(repo: Repo) -> None:
    top = repo.path.parent
    repo.git("worktree", "add", "-q", top / "tree")
    repo.git("submodule", "add", "-q", secret(repo).path, "sub")
    repo.git("init", "-q", "--separate-git-dir", top / "apart", top / "elsewhere")
    for place in (top / "tree", repo.path / "sub", top / "elsewhere"):
        found = discover(str(place))
        assert found is not None, place
        assert found.top == str(place)


@pytest.mark.ids("S7")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_a_repository_of_another_user_is_none_unless_git_takes_it_for_safe(repo: Repo) -> None:
    place = repo.path / "sub"
    place.mkdir()
    for path in (repo.path, repo.path / ".git"):
        os.chown(path, SOMEBODY, -1)
        assert discover(str(place)) is None
        repo.git("config", "--global", "safe.directory", str(repo.path))
        assert discover(str(place)) is not None
        repo.git("config", "--global", "--unset", "safe.directory")
        os.chown(path, os.geteuid(), -1)
    assert discover(str(place)) is not None


@pytest.mark.ids("S7")
def test_a_repository_that_appears_where_a_container_could_write_is_none(home: Path, repo: Repo, canary: Path) -> None:
    place = Repo(repo.path.parent / "place")
    (place.path / "sub").mkdir(parents=True)
    container_writes.note_folders(str(home), str(place.path))
    place.git("init", "-q")
    place.commit("f")
    Repo(place.path / "sub").git("init", "-q", "--bare")
    for hooks in (place.path / ".git/hooks", place.path / "sub/hooks"):
        program(hooks / "post-checkout", canary)
    assert discover(str(place.path), str(home)) is None
    (note,) = choose(str(home), str(place.path)).notes
    assert note.startswith(f"{place.path}/.git is not used, because an agent in a container could write it; look at it")
    for where in (place.path, place.path / "sub"):
        with pytest.raises(Refused, match="an agent in a container could write"):
            worktree.make(str(home), str(where), "b1")
    assert not canary.exists()
    container_writes.accept(str(home), str(place.path / ".git"))
    assert discover(str(place.path), str(home)) is not None
    container_writes.note_folders(str(home), str(place.path))
    assert discover(str(place.path), str(home)) is None


@pytest.mark.ids("S7")
def test_what_a_container_has_a_copy_of_stays_a_repository_and_nothing_below_becomes_one(
    home: Path, repo: Repo
) -> None:
    container_writes.note_folders(str(home), str(repo.path), str(repo.path / ".git"))
    assert discover(str(repo.path), str(home)) is not None
    inner = Repo(repo.path / "inner")
    inner.path.mkdir()
    inner.git("init", "-q")
    assert discover(str(inner.path), str(home)) is None
    made = worktree.make(str(home), str(repo.path), "fix").workspace
    container_writes.note_folders(str(home), str(repo.path), str(repo.path / ".git"), [str(repo.path.parent)])
    with pytest.raises(Refused, match="an agent in a container could write"):
        store.tree(str(home), made)


# Hooks ------------------------------------------------------------------------------------------------------------


@pytest.mark.ids("S7")
@pytest.mark.parametrize("how", ["relative", "absolute", "link", "linked hook"])
def test_hooks_in_a_worktree_are_not_run(home: Path, repo: Repo, canary: Path, how: str) -> None:
    for name in HOOKS:
        program(repo.path / ".husky" / name, canary)
    hooks = repo.path / ".git/hooks"
    shutil.rmtree(hooks, ignore_errors=True)
    if how == "link":
        hooks.symlink_to("../.husky")
    elif how == "linked hook":
        hooks.mkdir()
        (hooks / "post-checkout").symlink_to("../../.husky/post-checkout")
    else:
        repo.git("config", "core.hooksPath", ".husky" if how == "relative" else str(repo.path / ".husky"))
    made = worktree.make(str(home), str(repo.path), "b2")
    assert not canary.exists()
    assert [note for note in made.notes if "git's hooks were not run" in note]
    assert Repo(Path(made.workspace.path)).git("status", "--porcelain") == ""


@pytest.mark.parametrize("elsewhere", [True, False])
def test_hooks_that_no_agent_can_write_are_run(home: Path, repo: Repo, canary: Path, elsewhere: bool) -> None:
    hooks = repo.path.parent / "hooks" if elsewhere else repo.path / ".git/hooks"
    program(hooks / "post-checkout", canary)
    if elsewhere:
        repo.git("config", "core.hooksPath", str(hooks))
    assert worktree.make(str(home), str(repo.path), "b2").notes == ()
    assert canary.exists()


@pytest.mark.ids("S7")
@pytest.mark.parametrize("how", ["hook", "filter"])
def test_what_a_container_commits_is_not_run_when_its_worktree_comes_back(
    home: Path, repo: Repo, canary: Path, how: str
) -> None:
    repo.commit(".gitattributes", "* filter=x\n" if how == "filter" else "\n")
    copy = copied(home, repo)
    program(Path(copy.workspace.path, "tools/run"), canary)
    copy.git("add", "tools")
    copy.commit("work")
    Path(copy.workspace.path, "new").write_text("new\n")
    container_commits.bring_out(copy.tree)
    if how == "hook":
        program(repo.path / ".git/hooks/post-checkout", canary)
    else:
        repo.git("config", "filter.x.smudge", "sh tools/run")
    remove(str(home), copy.workspace, force=True)
    back = restore(str(home), store.read(str(home), copy.workspace.id))
    assert not canary.exists()
    assert "it was checked out without hooks and filters, such as Git LFS: an agent in a container" in back.notes[0]
    assert Path(back.workspace.path, "new").read_text() == "new\n"
    assert Path(back.workspace.path, "work").read_text() == "text\n"
    assert Repo(Path(back.workspace.path)).git("-c", "filter.x.smudge=", "status", "--porcelain") == "?? new"


# Setup ------------------------------------------------------------------------------------------------------------


@pytest.mark.ids("S7")
def test_setup_does_not_run_what_a_container_has_committed_until_somebody_has_looked(
    home: Path, hitch: Hitch, repo: Repo, canary: Path
) -> None:
    repo.commit("Makefile", "dev:\n\ttrue\n")
    repo.commit(".hitchpost.toml", '[workspace]\nsetup = ["make dev"]\n')
    hitch("workspace", "trust", "--yes", cwd=repo.path)
    copy = copied(home, repo)
    first = copy.commit("Makefile", f"dev:\n\ttouch {canary}\n")
    tip = copy.commit("more")
    container_commits.bring_out(copy.tree)
    assert repo.git("rev-parse", "fix") == tip
    remove(str(home), copy.workspace)
    shutil.rmtree(copy.session)
    for branch in ("fix", "first", "after"):
        if branch == "first":
            repo.git("branch", "first", first)
        if branch == "after":
            repo.git("merge", "-q", "fix")
        said = hitch("workspace", "create", branch, cwd=repo.path).err
        assert "the setup of .hitchpost.toml was not run: an agent in a container made commit" in said, branch
        assert "it was checked out without hooks and filters" in said
        assert not canary.exists()
    hitch("workspace", "trust", "--yes", "first")
    made = store.find(str(home), "fix")
    assert project.set_up(str(home), made)[1] != []
    assert not canary.exists()
    assert project.set_up(str(home), store.find(str(home), "first"))[1] == []
    assert canary.exists()
    canary.unlink()
    hitch("workspace", "trust", "--yes", "fix")
    assert project.set_up(str(home), made)[1] == []
    assert canary.exists()


@pytest.mark.ids("S7")
@pytest.mark.parametrize("where", ["", "below"])
def test_a_copy_of_what_a_container_has_changed_runs_no_teardown(
    home: Path, hitch: Hitch, repo: Repo, canary: Path, where: str
) -> None:
    repo.commit("below/part.mk", "clean:\n\ttrue\n")
    repo.commit("Makefile", "include below/part.mk\n")
    repo.commit(".hitchpost.toml", '[workspace]\nteardown = ["make clean"]\n')
    hitch("workspace", "trust", "--yes", cwd=repo.path)
    made = worktree.make(str(home), str(repo.path), "fix").workspace
    container_writes.note_folders(str(home), os.path.join(made.path, where), os.path.join(made.path, ".git"))
    Path(made.path, "below/part.mk").write_text(f"clean:\n\ttouch {canary}\n")
    fork = copying.copy(str(home), store.tree(str(home), made), "fork").workspace
    assert Path(fork.path, "below/part.mk").read_text().endswith(f"touch {canary}\n")
    gone = remove(str(home), fork, force=True)
    assert "an agent in a container may have changed what it runs" in gone.notes[0]
    assert not canary.exists()


@pytest.mark.ids("S7")
def test_trust_takes_a_repository_of_any_kind_as_yours(home: Path, hitch: Hitch, repo: Repo) -> None:
    top = repo.path.parent
    repo.git("clone", "-q", "--bare", repo.path, top / "bare.git")
    made = worktree.make(str(home), str(top / "bare.git"), "fix").workspace
    apart = Repo(top / "place")
    repo.git("init", "-q", "--separate-git-dir", top / "place-git", apart.path)
    apart.commit("f")
    container_writes.note_folders(str(home), str(top))
    with pytest.raises(Refused, match="could write") as raised:
        store.tree(str(home), made)
    assert raised.value.hint == f"look at it; then hitch workspace trust {top}/bare.git takes it as yours"
    hitch("workspace", "trust", "--yes", top / "bare.git")
    store.tree(str(home), made)
    hitch("workspace", "trust", "--yes", apart.path)
    worktree.make(str(home), str(apart.path), "other")


@pytest.mark.ids("S7")
def test_what_a_second_container_could_write_is_not_taken_back_by_the_first_ones_next_run(
    home: Path, repo: Repo
) -> None:
    around = str(repo.path.parent)
    tree = Repo(repo.path.parent / "tree")
    repo.git("worktree", "add", "-q", tree.path)
    link = str(tree.path / ".git")
    container_writes.note_folders(str(home), str(tree.path), link)
    container_writes.note_folders(str(home), str(tree.path), link)
    assert not container_writes.could_write(str(home), link)
    container_writes.note_folders(str(home), around)
    container_writes.note_folders(str(home), str(tree.path), link)
    assert container_writes.could_write(str(home), link)
    container_writes.accept(str(home), link)
    container_writes.note_folders(str(home), str(tree.path), link)
    assert not container_writes.could_write(str(home), link)


# Races ------------------------------------------------------------------------------------------------------------


def lucky(repo: Repo, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """A racer in a container that always puts its repository there in the right moment: before ``git … moment``."""
    folder = repo.path.parent / "programs"
    program = folder / "git"
    folder.mkdir()
    evil, link = repo.path / "sub/evil", repo.path / "sub/.git"
    act = f'case "$*" in *"{moment}"*) [ -e {evil} ] && mv {evil} {link} ;; esac'
    program.write_text(f'#!/bin/sh\n{act}\nPATH=${{PATH#*:}}\nexec git "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.ids("S7")
@pytest.mark.parametrize("moment", ["rev-parse --absolute-git-dir", "--get-all core.hooksPath", "worktree add"])
def test_a_repository_that_appears_beside_a_person_while_a_worktree_is_made_decides_nothing(
    home: Path, repo: Repo, canary: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    repo.commit(".gitattributes", "* filter=x\n")
    here = Repo(repo.path / "sub")
    here.path.mkdir()
    repo.git("init", "-q", "--bare", "sub/evil")
    (here.path / "evil/objects/info/alternates").write_text(f"{repo.path}/.git/objects\n")
    (here.path / "evil/refs/heads/main").write_text(f"{repo.head}\n")
    with (here.path / "evil/config").open("a") as config:
        config.write(f'[core]\nbare = false\n[filter "x"]\nsmudge = touch {canary}; cat\n')
    container_writes.note_folders(str(home), str(repo.path), str(repo.path / ".git"))
    lucky(repo, monkeypatch, moment)
    if moment.startswith("rev-parse"):
        with pytest.raises(Refused, match="container"):
            worktree.make(str(home), str(here.path), "fix")
    else:
        made = worktree.make(str(home), str(here.path), "fix").workspace
        assert made.repo == str(repo.path / ".git")
    assert not canary.exists()
