"""Names and commits that an agent wrote are what they can be, or nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hitchpost.errors import Refused
from hitchpost.workspaces import refs
from tests.repos import Repo


@pytest.mark.parametrize("name", ["refs/heads/fix", "refs/heads/ünï/🎉", "refs/heads/$(x)", "refs/stash"])
def test_names_of_refs(name: str) -> None:
    assert refs.is_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "refs",
        "refs/",
        "HEAD",
        "heads/x",
        "refs//x",
        "refs/.x",
        "refs/x/../../y",
        "refs/x.lock",
        "refs/x.lock/y",
        "refs/a b",
        "refs/a\nb",
        "refs/a~1",
        "refs/a^",
        "refs/a:b",
        "refs/a?",
        "refs/a*",
        "refs/[a",
        "refs/a\\b",
        "refs/a.",
        "refs/@{1}",
        "refs/a\x7f",
        "../refs/x",
        "/refs/x",
    ],
)
def test_what_is_no_name_of_a_ref(name: str) -> None:
    assert not refs.is_name(name)


def test_everything_that_git_tells_is_read_as_bytes_too(repo: Repo) -> None:
    repo.git("branch", "packed")
    repo.git("tag", "-a", "-m", "one", "v1")
    repo.git("pack-refs", "--all")
    repo.git("branch", "deep/er/loose")
    told = dict(
        line.split(" ")[::-1] for line in repo.git("for-each-ref", "--format=%(objectname) %(refname)").splitlines()
    )
    assert refs.everything(str(repo.path / ".git")) == (told, True)
    assert refs.head(str(repo.path / ".git")) == refs.Head("main", repo.head)
    repo.git("checkout", "-q", "--detach")
    assert refs.head(str(repo.path / ".git")) == refs.Head(None, repo.head)


@pytest.mark.parametrize("text", ["ref: refs/heads/../../x", "--output=x", "ref: x", "", "0" * 39, "x" * 5000])
def test_a_head_that_names_nothing_is_refused(repo: Repo, text: str) -> None:
    repo.write(".git/HEAD", text)
    with pytest.raises(Refused, match="cannot tell what is checked out"):
        refs.head(str(repo.path / ".git"))


def test_links_and_pipes_are_not_read(repo: Repo) -> None:
    git = repo.path / ".git"
    repo.git("branch", "other")
    (git / "refs/heads/linked").symlink_to(git / "refs/heads/other")
    (git / "refs/heads/folder").symlink_to(git / "refs/heads", target_is_directory=True)
    os.mkfifo(git / "refs/heads/pipe")
    assert set(refs.everything(str(git))[0]) == {"refs/heads/main", "refs/heads/other"}
    assert refs.commit(str(git), "refs/heads/linked") is None
    assert refs.commit(str(git), "refs/heads/folder/other") is None
    assert refs.commit(str(git), "refs/heads/pipe") is None
    Path(git / "HEAD").unlink()
    os.mkfifo(git / "HEAD")
    with pytest.raises(Refused):
        refs.head(str(git))


def test_more_folders_than_anybody_needs_are_not_gone_through(repo: Repo) -> None:
    git = repo.path / ".git"
    for number in range(refs.MOST_REFS):
        (git / f"refs/tags/{number}").mkdir()
    repo.git("pack-refs", "--all")
    assert refs.everything(str(git)) == ({"refs/heads/main": repo.head}, False)
    assert refs.commit(str(git), "refs/heads/main") == repo.head
