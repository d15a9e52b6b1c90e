"""What runs in a container cannot get in between while our git works on files that it can write.

The racers wait for a sign that git is at work, then put a link in the place of a folder that it has yet to come to.
They outlive their agent: nothing in their environment says whose they are.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hitchpost.runtimes.container_file import read_box
from hitchpost.runtimes.freeze import NotStill, is_left, still, within_reach
from hitchpost.workspaces import snapshot, store
from hitchpost.workspaces.store import Workspace
from tests.boxes import PLAIN, STALE, Boxed, stopped
from tests.ground import Truth
from tests.repos import Repo
from tests.support import eventually

BOX = ("run", "--json", "--runtime", "docker", "--image", PLAIN, "--network", "none", "--name", "dev")
ONCE = "[ -e $HOME/began ] && { echo again; exec sleep 1000; }; touch $HOME/began; "
UNMARKED = "env -i PATH=$PATH HOME=$HOME tmux -L racer new-session -d "
UNMARKED += "'exec env -i PATH=$PATH HOME=$HOME bash $HOME/racer.sh'; until [ -e $HOME/waits ]; do sleep 0.01; done; "
MANY = 2000


class Race:
    """A session in a worktree, and a racer in its container that outlives it."""

    def __init__(self, boxed: Boxed, repo: Repo) -> None:
        self.boxed, self.repo, self.hitch = boxed, repo, boxed.ground.hitch
        self.home = str(boxed.ground.home)
        self.secret = repo.path.parent / "secret"
        self.secret.mkdir()
        self.hitch("workspace", "create", "fix", cwd=repo.path)

    @property
    def workspace(self) -> Workspace:
        return store.find(self.home, "fix")

    @property
    def top(self) -> Path:
        return Path(self.workspace.path)

    def begin(self, prepare: str = "", sign: str = "", then: str = "", *, end: str = "exec sleep 1000") -> Truth:
        """An agent that has done ``prepare``; its racer waits for ``sign`` and does ``then``."""
        racer = f"touch $HOME/waits; {sign}; {then}; touch $HOME/raced"
        script = f"{ONCE}{prepare}\ncat > $HOME/racer.sh <<'EOF'\n{racer}\nEOF\n"
        script += f"{UNMARKED if sign else ''}echo ready; {end}"
        answer = self.hitch(*BOX, "--workspace", "fix", "--", "bash", "-c", script, cwd=self.repo.path)
        dev = Truth(self.boxed.ground.home, answer.json()["id"])
        eventually(lambda: b"ready" in dev.output(), 60, what=f"the racer, not {dev.output()!r}")
        return dev

    def stale(self, *words: str) -> Truth:
        dev = self.begin(*words, end="read -r line; exit 3")
        self.hitch("send", "dev", "leave")
        dev.ended()
        assert self.boxed.label(dev) == STALE
        return dev

    def raced(self, dev: Truth) -> bool:
        return (dev.folder / "inside" / "home" / "raced").exists()

    def is_paused(self, dev: Truth) -> bool:
        box = read_box(str(dev.folder))
        assert box is not None
        assert self.boxed.engine.inspect(box.id)["State"]["Paused"] is box.paused
        return box.paused

    @contextmanager
    def holder(self, script: str = "time.sleep(1000)") -> Iterator[Callable[[], str]]:
        """Another process of ours that holds the containers still that can write in the worktree. It is killed in the
        end, unless it has ended by then. Gives what reads its lines."""
        code = "import subprocess, time\nfrom hitchpost.runtimes.freeze import still\n"
        code += f"with still({self.home!r}, {str(self.top)!r}) as held:\n    print('held', flush=True)\n    {script}"
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            try:
                yield holder.stdout.readline
            finally:
                holder.kill()


@pytest.fixture
def race(boxed: Boxed, repo: Repo) -> Iterator[Race]:
    made = Race(boxed, repo)
    yield made
    for session in boxed.ground.ids():
        boxed.ground.hitch("rm", "--force", session)


def swap(folder: str, target: Path) -> str:
    return f"mv {folder} .{folder}; ln -s {target} {folder}"


@pytest.mark.ids("S12")
def test_S12_a_snapshot_before_a_restart_holds_no_file_of_this_side(race: Race) -> None:
    (race.secret / "id_rsa").write_text("a secret of this side\n")
    prepare = "mkdir a z; echo first > a/0; head -c 90000000 /dev/zero > b; echo own > z/id_rsa"
    race.repo.write("first", "first\n")
    blob = race.repo.git("hash-object", "first")
    (race.repo.path / "first").unlink()
    sign = f"until [ -e /hitchpost/objects/{blob[:2]}/{blob[2:]} ]; do :; done"
    dev = race.begin(prepare, sign, swap("z", race.secret))
    said = race.hitch("restart", "dev").err
    assert "uncommitted work is kept in" in said
    (kept,) = [word for word in said.split() if word.startswith("refs/hitchpost/snapshots/")]
    eventually(lambda: race.raced(dev), 60, what="the racer")  # it was ready, and came too late
    assert (race.top / "z").is_symlink()
    assert race.repo.git("show", f"{kept}:z/id_rsa") == "own"
    secret = race.repo.git("hash-object", race.secret / "id_rsa")
    assert secret not in race.repo.git("cat-file", "--batch-all-objects", "--batch-check")
    assert not race.is_paused(dev)


@pytest.mark.ids("S12")
def test_S12_a_restore_beside_a_container_writes_nothing_elsewhere(race: Race) -> None:
    many = race.top / "d"
    many.mkdir()
    for number in range(MANY):
        (many / f"{number:05}").write_text("x\n")
    (many / "authorized_keys").write_text("a key of the agent\n")
    ref = snapshot.take(race.home, race.workspace, "for this test")
    assert ref is not None
    for path in many.iterdir():
        path.unlink()
    many.rmdir()
    race.stale("", "until [ -e d/00001 ]; do :; done", swap("d", race.secret))
    said = race.hitch("workspace", "restore", "fix", "--snapshot", ref, check=False)
    assert sorted(path.name for path in race.secret.iterdir()) == []
    assert said.code == 4
    assert "the container of dev still runs" in said.err
    assert "hitch stop dev removes it" in said.err
    race.hitch("stop", "dev")
    race.hitch("workspace", "restore", "fix", "--snapshot", ref)
    assert len(list(many.iterdir())) == MANY + 1
    assert list(race.secret.iterdir()) == []


@pytest.mark.ids("S12")
def test_S12_a_removal_beside_a_container_deletes_nothing_elsewhere(race: Race) -> None:
    names = [f"{number:05}" for number in range(MANY)]
    race.hitch("workspace", "rm", "fix")
    race.repo.git("branch", "-D", "fix")
    for name in names:
        race.repo.write(f"d/{name}", "x\n")
        (race.secret / name).write_text("mine\n")
    race.repo.git("add", "d")
    race.repo.git("commit", "-qm", "many")
    race.hitch("workspace", "create", "fix", cwd=race.repo.path)
    race.stale("", f"while set -- d/*; [ $# = {MANY} ]; do :; done", swap("d", race.secret))
    said = race.hitch("workspace", "rm", "--force", "fix", check=False)
    assert len(list(race.secret.iterdir())) == MANY
    assert said.code == 4
    assert "hitch stop dev removes it" in said.err
    assert "still runs" in race.hitch("workspace", "prune", "--dry-run").out
    race.hitch("stop", "dev")
    race.hitch("workspace", "rm", "--force", "fix")
    assert len(list(race.secret.iterdir())) == MANY


@pytest.mark.ids("S12")
def test_S12_a_difference_shows_no_file_of_this_side(race: Race) -> None:
    """Git has looked at every path before it opens the first one; that the first was read its times tell."""
    (race.secret / "key").write_text("a secret of this side\n")
    prepare = "mkdir a z; touch a/0; sleep 0.02; seq 300000 > a/0; echo mine > z/key"
    sign = "while [ -N a/0 ]; do :; done"
    dev = race.begin(prepare, sign, swap("z", race.secret))
    assert not race.raced(dev)
    patch = race.hitch("diff", "dev").out
    eventually(lambda: race.raced(dev), 60, what="the racer")
    assert "a secret of this side" not in patch
    assert "+300000" in patch
    assert not race.is_paused(dev)


@pytest.mark.ids("S12")
def test_S12_a_container_that_has_a_folder_mounted_counts_too(race: Race, boxed: Boxed) -> None:
    folder = race.repo.path / "below"
    folder.mkdir()
    other = race.repo.path.parent / "other"
    other.mkdir()
    words = ("--mount", f"{folder}:/there", "--mount", f"{other}:/other:ro", "--", "sleep", "1000")
    race.hitch(*BOX, "--workspace", str(boxed.ground.place), *words)

    def reached(path: Path) -> list[str]:
        return [live.name for live in within_reach(race.home, str(path))]

    assert reached(race.repo.path) == reached(folder / "deep") == reached(boxed.ground.place) == ["dev"]
    assert reached(race.top) == reached(other) == reached(race.repo.path / "bel") == []


@pytest.mark.ids("S12", "C70-2")
def test_S12_a_container_is_held_still_and_goes_on(race: Race) -> None:
    dev = race.begin()
    assert not race.is_paused(dev)
    with still(race.home, str(race.top)) as held:
        assert len(held) == 1
        assert race.is_paused(dev)
        assert race.boxed.label(dev) == "running"  # nobody has to know
    assert not race.is_paused(dev)
    with still(race.home, str(race.repo.path)) as held:
        assert held == ()  # nobody works there


@pytest.mark.ids("S12")
def test_S12_what_a_person_has_paused_stays_paused(race: Race) -> None:
    dev = race.begin("echo work > work")
    race.boxed.engine.pause(race.boxed.container(dev))
    assert snapshot.take(race.home, race.workspace, "for this test") is not None
    assert race.is_paused(dev)
    assert race.boxed.label(dev) == "running (paused)"
    race.boxed.engine.docker("unpause", race.boxed.container(dev))


@pytest.mark.ids("S12")
def test_S12_a_container_goes_on_after_who_held_it_was_killed(race: Race) -> None:
    dev = race.begin()
    with race.holder():
        assert race.is_paused(dev)
    assert race.is_paused(dev)
    assert "it is still paused: whatever was working on its files was killed" in race.hitch("doctor", check=1).out
    assert "resumed its container" in race.hitch("doctor", "--fix", check=False).out
    assert not race.is_paused(dev)
    assert "is paused" not in race.hitch("doctor", check=False).out
    with race.holder():
        pass
    race.hitch("stop", "dev")
    assert race.boxed.engine.containers() == []


@pytest.mark.ids("S12")
def test_S12_a_container_does_not_go_on_before_our_git_has_ended(race: Race) -> None:
    dev = race.begin()
    start = "print(subprocess.Popen(['sleep', '1000'], pass_fds=held).pid, flush=True); time.sleep(1000)"
    with race.holder(start) as line:
        worker = int(line())
    race.hitch("explain", "dev")
    race.hitch("doctor", "--fix", check=False)
    assert race.is_paused(dev)
    assert not is_left(str(dev.folder))
    os.kill(worker, signal.SIGKILL)
    eventually(lambda: is_left(str(dev.folder)), what="a container that was left paused")
    race.hitch("doctor", "--fix", check=False)
    assert not race.is_paused(dev)


@pytest.mark.ids("S12")
def test_S12_without_an_answer_of_the_engine_nothing_is_done(race: Race) -> None:
    dev = race.begin("echo work > work")
    with stopped(race.boxed.engine.pid), pytest.raises(NotStill, match="did not answer"):
        snapshot.take(race.home, race.workspace, "for this test")
    assert snapshot.listing(race.workspace) == []
    eventually(lambda: race.is_paused(dev), what="the engine that does it late")
    assert "resumed its container" in race.hitch("doctor", "--fix", check=False).out
    assert not race.is_paused(dev)


@pytest.mark.ids("S12")
def test_S12_files_that_an_agent_chose_come_into_no_new_worktree_until_a_person_has_looked(race: Race) -> None:
    repo = race.repo
    repo.commit(".hitchpost.toml", "[workspace]\nsetup = ['make']\n")
    repo.commit("Makefile", "-include local.mk\nall:\n")
    race.hitch("workspace", "trust", "--yes", cwd=repo.path)
    canary = repo.path.parent / "canary"
    plant = f"printf 'all: x\nx:\n\ttouch {canary}\n' > local.mk; "
    plant += "echo local.mk > .gitignore; cp .gitignore .worktreeinclude"
    made = race.hitch(*BOX, "--workspace", str(repo.path), "--", "sh", "-c", f"{plant}; echo ready; exec sleep 1000")
    dev = Truth(race.boxed.ground.home, made.json()["id"])
    eventually(lambda: b"ready" in dev.output(), 60, what="the agent")
    said = race.hitch("workspace", "create", "beside", cwd=repo.path).err
    assert "nothing was copied, because an agent in a container could write the files" in said
    assert not Path(store.find(race.home, "beside").path, "local.mk").exists()
    assert not canary.exists()
    assert "still runs and can write" in race.hitch("workspace", "trust", "--yes", cwd=repo.path, check=4).err
    race.hitch("stop", "dev")
    assert "  local.mk" in race.hitch("workspace", "trust", "--yes", cwd=repo.path).out
    race.hitch("workspace", "create", "later", cwd=repo.path)
    assert Path(store.find(race.home, "later").path, "local.mk").exists()


@pytest.mark.ids("S12")
def test_S12_a_restart_waits_for_who_holds_the_container_still(race: Race) -> None:
    dev = race.begin()
    container = race.boxed.container(dev)
    with race.holder("time.sleep(2)\nprint('undisturbed', flush=True)") as line:
        race.hitch("restart", "dev")
        assert line() == "undisturbed\n"
    assert race.boxed.container(dev) == container
    assert b"again" in eventually(lambda: dev.output(2), what="the next run")
