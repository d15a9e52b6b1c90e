"""Whatever a container's refs and objects are: its own branch is brought out, quickly, and nothing is lost unsaid."""

from __future__ import annotations

import os
import subprocess
import time
import zlib
from hashlib import sha1
from pathlib import Path

import pytest

from hitchpost.workspaces import container_commits, container_git, git, objects, refs, snapshot
from hitchpost.workspaces.changes import changes
from hitchpost.workspaces.diff import difference
from hitchpost.workspaces.removal import remove
from tests.repos import Repo
from tests.workspaces.copies import Copy, copied


@pytest.fixture
def copy(home: Path, repo: Repo) -> Copy:
    return copied(home, repo)


def kept(repo: Repo, copy: Copy) -> dict[str, str]:
    told = repo.git("for-each-ref", "--format=%(refname) %(objectname)", f"refs/hitchpost/inside/{copy.session.name}/")
    return dict(line.removeprefix(f"refs/hitchpost/inside/{copy.session.name}/").split() for line in told.splitlines())


def bomb(copy: Copy, size: int, seed: bytes = b"") -> str:
    """A small loose object that becomes a blob of ``size`` bytes."""
    header, zeros = b"blob %d\0" % size, bytes(1 << 20)
    digest, packing = sha1(header + seed, usedforsecurity=False), zlib.compressobj(1)
    parts = [packing.compress(header + seed)]
    left = size - len(seed)
    while left:
        part = zeros[: min(left, len(zeros))]
        digest.update(part)
        parts.append(packing.compress(part))
        left -= len(part)
    name = digest.hexdigest()
    path = copy.folder / "objects" / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join((*parts, packing.flush())))
    return name


# What cannot be brought out ---------------------------------------------------------------------------------------


@pytest.mark.ids("F53")
def test_a_branch_below_the_name_of_one_that_was_is_brought_out(repo: Repo, copy: Copy) -> None:
    first = copy.commit("one")
    copy.git("branch", "a")
    container_commits.bring_out(copy.tree)
    copy.git("branch", "-D", "a")
    copy.git("branch", "a/b")
    second = copy.commit("two")
    container_commits.bring_out(copy.tree)
    assert repo.git("rev-parse", "fix") == second
    assert kept(repo, copy) == {f"heads-a-{first[:16]}": first, f"heads-a-b-{first[:16]}": first}
    assert container_git.left_inside(str(copy.session)) == []


@pytest.mark.ids("F53")
def test_hundreds_of_tags_do_not_keep_the_branch_inside(repo: Repo, copy: Copy) -> None:
    tip = copy.commit("work")
    packed = copy.folder / "packed-refs"
    packed.write_text(packed.read_text() + "".join(f"{tip} refs/tags/t{number:03}\n" for number in range(600)))
    notes = container_commits.bring_out(copy.tree)
    assert repo.git("rev-parse", "fix") == tip
    assert len(kept(repo, copy)) == container_commits.MOST_MOVED
    assert sum("more than 500 branches and tags have changed at once" in note for note in notes) == 100
    assert len(container_git.left_inside(str(copy.session))) == 100
    container_commits.bring_out(copy.tree)
    assert len(kept(repo, copy)) == 600
    assert container_git.left_inside(str(copy.session)) == []


@pytest.mark.ids("F53")
def test_a_ref_that_leads_nowhere_keeps_no_other_inside(repo: Repo, copy: Copy) -> None:
    tip = copy.commit("work")
    copy.git("branch", "aside")
    (copy.folder / "refs/tags/broken").write_text(f"{'1' * 40}\n")
    notes = container_commits.bring_out(copy.tree)
    assert repo.git("rev-parse", "fix") == tip
    assert kept(repo, copy) == {f"heads-aside-{tip[:16]}": tip}
    assert [note for note in notes if "refs/tags/broken could not be copied into the repository" in note]
    (text,) = container_git.left_inside(str(copy.session))
    assert text.startswith(f"refs/tags/broken of the container is only in {copy.folder}: ")


@pytest.mark.ids("F53")
def test_what_was_left_is_still_there_when_the_next_container_gets_its_refs(repo: Repo, copy: Copy) -> None:
    tip = copy.commit("work")
    lost = "1" * 40
    packed = copy.folder / "packed-refs"
    packed.write_text(packed.read_text() + f"{lost} refs/tags/broken\n")
    container_commits.bring_out(copy.tree)
    other = repo.commit("other")
    container_git.refresh(copy.tree)
    found = refs.packed(str(copy.folder))
    assert (found["refs/tags/broken"], found["refs/heads/main"], found["refs/heads/fix"]) == (lost, other, tip)
    assert len(container_git.left_inside(str(copy.session))) == 1
    container_git.make(copy.tree, str(copy.session))
    (text,) = container_git.left_inside(str(copy.session))
    assert "commits of an earlier container are only in" in text
    assert Path(text.rpartition(" ")[2], "packed-refs").exists()


@pytest.mark.ids("S12")
def test_a_folder_in_the_place_of_its_refs_keeps_no_container_from_starting(repo: Repo, copy: Copy) -> None:
    packed = copy.folder / "packed-refs"
    packed.unlink()
    (packed / "deep").mkdir(parents=True)
    repo.git("branch", "later")
    container_git.refresh(copy.tree)
    assert "refs/heads/later" in packed.read_text()


# Objects ----------------------------------------------------------------------------------------------------------


@pytest.mark.ids("S12")
@pytest.mark.parametrize("how", ["loose", "pack"])
def test_small_objects_that_become_large_are_not_even_copied(repo: Repo, copy: Copy, how: str) -> None:
    tip = copy.commit("work")
    name = bomb(copy, 48 << 20)
    copy.git("update-ref", "refs/tags/bomb", name)
    if how == "pack":
        copy.git("repack", "-q", "-a", "-d", "-l")
        copy.git("prune-packed")
    container_commits.bring_out(copy.tree, objects.Limits(32 << 20, 60.0))
    left = " ".join(container_git.left_inside(str(copy.session)))
    assert "refs/tags/bomb of the container is only in" in left
    assert repo.git("cat-file", "-t", name, check=False) == ""
    if how == "loose":
        assert repo.git("rev-parse", "fix") == tip
    else:
        assert "refs/heads/fix of the container is only in" in left
    container_commits.bring_out(copy.tree)
    assert repo.git("rev-parse", "fix") == tip
    assert list(kept(repo, copy).values()) == [name]


@pytest.mark.ids("S12")
def test_a_delta_counts_as_what_it_makes(repo: Repo, copy: Copy) -> None:
    Path(copy.workspace.path, "large").write_bytes(os.urandom(1 << 20) * 4)
    copy.git("add", "large")
    copy.git("commit", "-q", "-m", "large")
    Path(copy.workspace.path, "large").write_bytes(Path(copy.workspace.path, "large").read_bytes() + b"more")
    tip = copy.commit("more")
    copy.git("commit", "-q", "-a", "-m", "larger")
    copy.git("repack", "-q", "-a", "-d", "-l", "-f")
    (pack,) = (copy.folder / "objects/pack").glob("*.pack")
    assert pack.stat().st_size < 6 << 20
    staged = objects.Staged(copy.tree, str(copy.session), tip, objects.WHOLE)
    with staged:
        assert objects.WHOLE.total_bytes - staged.left > pack.stat().st_size + (8 << 20)


@pytest.mark.ids("S12")
def test_whoever_waits_for_commits_is_told_so(repo: Repo, copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "PROGRESS_EVERY_S", 0.0)
    for number in range(3):
        copy.commit(f"file-{number}")
    waited: list[float] = []
    container_commits.bring_out(copy.tree, progress=waited.append)
    assert len(waited) > 5
    assert waited == sorted(waited)


@pytest.mark.ids("S12")
def test_no_folder_of_ours_is_where_temporary_files_are(
    repo: Repo, copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container may have that one mounted, or work around it. Our git would do what it writes there."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = tmp_path.stat().st_mtime_ns
    copy.commit("file")
    container_commits.bring_out(copy.tree)
    assert not changes(copy.tree).count
    assert difference(copy.tree, None).files == ()
    assert repo.git("rev-parse", "fix") == copy.git("rev-parse", "HEAD")
    assert tmp_path.stat().st_mtime_ns == before


@pytest.mark.ids("S12")
def test_nothing_is_left_of_what_was_copied(repo: Repo, copy: Copy) -> None:
    for number in range(3):
        copy.commit(f"file-{number}")
        container_commits.bring_out(copy.tree)
        assert not (copy.session / objects.STAGED).exists()
    assert repo.git("fsck", "--full", "--strict") == ""


@pytest.mark.ids("S12")
def test_an_object_that_becomes_another_while_it_is_copied_is_measured_as_it_was_copied(
    repo: Repo, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = bomb(copy, 48 << 20)
    copy.git("update-ref", "refs/tags/bomb", name)
    path, copying = copy.folder / "objects" / name[:2] / name[2:], objects._copy_bytes
    large = path.read_bytes()
    path.write_bytes(zlib.compress(b"blob 3\0abc").ljust(len(large), b"\0"))

    def lucky(fd: int, target: str, size: int) -> None:
        path.write_bytes(large)  # what runs in the container does this in the right moment
        copying(fd, target, size)

    monkeypatch.setattr(objects, "_copy_bytes", lucky)
    container_commits.bring_out(copy.tree, objects.Limits(32 << 20, 60.0))
    assert repo.git("cat-file", "-t", name, check=False) == ""


@pytest.mark.ids("S12")
@pytest.mark.parametrize("where", ["refs/heads/fix", "refs/heads/other", "HEAD"])
def test_a_few_trees_that_stand_for_any_number_of_files_are_refused(
    home: Path, repo: Repo, copy: Copy, where: str
) -> None:
    blob = copy.git("hash-object", "-w", "--stdin", stdin=b"x")
    kind, name = "100644 blob", blob
    for _ in range(9):
        listing = "".join(f"{kind} {name}\tf{number}\n" for number in range(10))
        kind, name = "040000 tree", copy.git("mktree", stdin=listing.encode())
    commit = copy.git("commit-tree", "-p", "HEAD", "-m", "endless", name)
    before = repo.git("rev-parse", "fix")
    copy.git("symbolic-ref", "HEAD", "refs/heads/other") if where.endswith("other") else None
    copy.git("update-ref", "--no-deref", where, commit)
    Path(copy.workspace.path, "work").write_text("work\n")
    began = time.monotonic()
    assert changes(copy.tree).untracked == ("work",)
    ref = snapshot.take(copy.home, copy.workspace, "a test")
    assert time.monotonic() - began < 30
    assert repo.git("show", f"{ref}:work") == "work"
    assert repo.git("rev-parse", "fix") == before
    remove(copy.home, copy.workspace, force=True)


# The index on this side -------------------------------------------------------------------------------------------


@pytest.mark.ids("F53")
def test_what_somebody_adds_meanwhile_is_not_lost(repo: Repo, copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    copy.commit("work")
    here, run = Repo(Path(copy.workspace.path)), git.run
    added: list[int] = []
    here.write("mine")

    def slow(folder: str, *words: str, **how: object) -> git.Done:
        done = run(folder, *words, **how)  # type: ignore[arg-type]
        if words[0] == "read-tree" and not added:
            argv = ["git", "add", "mine"]
            added.append(subprocess.run(argv, cwd=here.path, capture_output=True, check=False).returncode)
        return done

    monkeypatch.setattr(git, "run", slow)
    container_commits.bring_out(copy.tree)
    monkeypatch.undo()
    assert len(added) == 1
    assert added[0] != 0 or "mine" in here.git("ls-files").splitlines()
