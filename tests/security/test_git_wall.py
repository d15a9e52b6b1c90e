"""What an agent in a container writes decides nothing that our git does on this side.

Each attack plants a program that would leave a canary here. Then everything that looks at, saves, brings back or
removes an agent's files is done, in the command line and in the hub.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hitchpost.hub.client import HubRefused
from hitchpost.workspaces import store
from hitchpost.workspaces.store import Workspace
from tests.boxes import PLAIN, Boxed
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.repos import Repo
from tests.support import eventually

IN_BOX = ("--runtime", "docker", "--image", PLAIN, "--network", "none", "--name", "dev")
AS_SOMEBODY = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "
FILTERED = "echo '* filter=x' > .gitattributes; "
PROGRAMS = ("filter.x.clean", "filter.x.smudge", "filter.x.process", "core.fsmonitor", "diff.external")


class Attack:
    def __init__(self, boxed: Boxed, repo: Repo) -> None:
        self.boxed, self.repo = boxed, repo
        self.canary = repo.path.parent / "canary"
        self.hitch = boxed.ground.hitch

    @property
    def evil(self) -> str:
        """Shell words that make the settings of the repository in the current folder run a program."""
        return "".join(f"git config {name} 'touch {self.canary}; cat'; " for name in PROGRAMS)

    def settings(self) -> str:
        return f'[core]\\n fsmonitor = touch {self.canary}\\n[filter "x"]\\n clean = touch {self.canary}; cat\\n'

    def run(self, script: str, *words: str, cwd: Path | None = None) -> Truth:
        """A session whose agent has done all that ``script`` says, and still runs."""
        whole = f"{AS_SOMEBODY}{script}\necho planted; exec sleep 1000"
        answer = self.hitch("run", "--json", *IN_BOX, *words, "--", "sh", "-c", whole, cwd=cwd or self.repo.path)
        dev = Truth(self.boxed.ground.home, answer.json()["id"])
        eventually(lambda: b"planted\r\n" in dev.output(), 60, what=f"the attack, not {dev.output()!r}")
        return dev

    def on_branch(self, script: str) -> tuple[Truth, Workspace]:
        self.hitch("workspace", "create", "fix", cwd=self.repo.path)
        workspace = store.find(str(self.boxed.ground.home), "fix")
        return self.run(script.replace("@HERE@", workspace.path), "--workspace", "fix"), workspace

    def is_dead(self) -> None:
        assert not self.canary.exists()


@pytest.fixture
def attack(boxed: Boxed, repo: Repo) -> Iterator[Attack]:
    made = Attack(boxed, repo)
    yield made
    made.is_dead()


NESTED = (
    "git init -q evil; cd evil; @EVIL@ "
    + FILTERED
    + "echo a > f; git -c filter.x.process= -c filter.x.clean= add .; git -c filter.x.process= commit -qm x; "
    "cd ..; printf '[submodule \"evil\"]\\n path = evil\\n url = ./evil\\n ignore = none\\n' > .gitmodules; "
    "git -c filter.x.process= add evil .gitmodules; git commit -qm nested; echo changed > evil/f"
)
COMMON_DIR = (
    "d=$(git rev-parse --absolute-git-dir); c=$(git rev-parse --path-format=absolute --git-common-dir); "
    "git init -q --bare evil; cp -r $c/refs $c/packed-refs evil/; echo $c/objects > evil/objects/info/alternates; "
    "cd evil; @EVIL@ cd ..; " + FILTERED + "echo changed > README; echo @HERE@/evil > $d/commondir"
)
WORKTREE_SETTINGS = (
    "d=$(git rev-parse --absolute-git-dir); "
    + FILTERED
    + "echo changed > README; printf '@SETTINGS@' > $d/config.worktree"
)
SHARED_SETTINGS = "@EVIL@ " + FILTERED + "echo changed > README"


@pytest.mark.ids("S7")
@pytest.mark.parametrize("script", [NESTED, COMMON_DIR, WORKTREE_SETTINGS, SHARED_SETTINGS])
def test_a_worktree_of_a_container_runs_nothing_here(attack: Attack, hub: HubProcess, script: str) -> None:
    attack.repo.git("config", "extensions.worktreeConfig", "true")
    script = script.replace("@EVIL@", attack.evil).replace("@SETTINGS@", attack.settings())
    dev, workspace = attack.on_branch(script)
    hitch = attack.hitch
    for words in (
        ("diff", "dev"),
        ("diff", "dev", "--stat"),
        ("diff", "dev", "--json"),
        ("workspace", "ls"),
        ("workspace", "show", "fix"),
        ("workspace", "prune", "--dry-run"),
    ):
        hitch(*words)
        attack.is_dead()
    assert hub.ask("GET", f"/api/sessions/{dev.id}/diff")["files"]
    assert hub.ask("GET", "/api/workspaces")
    attack.is_dead()
    Repo(Path(workspace.path)).git("status", "--ignore-submodules=all")
    attack.is_dead()
    hitch("restart", "dev")
    hitch("stop", "dev")
    attack.is_dead()
    inner = Path(workspace.path, "evil", ".git")
    if inner.exists():  # a repository inside cannot be in a snapshot
        inner.rename(inner.with_name("git"))
    with pytest.raises(HubRefused):
        hub.ask("DELETE", "/api/workspaces/fix")
    attack.is_dead()
    hitch("workspace", "rm", "--force", "fix")
    hitch("workspace", "restore", "fix")
    attack.is_dead()
    hub.ask("DELETE", "/api/workspaces/fix?force=true")


@pytest.mark.ids("S7")
@pytest.mark.parametrize("script", [NESTED, COMMON_DIR, WORKTREE_SETTINGS, SHARED_SETTINGS])
def test_a_look_runs_nothing_that_an_agent_writes_into_the_repository_itself(
    ground: Ground, repo: Repo, script: str
) -> None:
    canary = repo.path.parent / "canary"
    evil = "".join(f"git config {name} 'touch {canary}; cat'; " for name in PROGRAMS)
    settings = f'[core]\\n fsmonitor = touch {canary}\\n[filter "x"]\\n clean = touch {canary}; cat\\n'
    repo.git("config", "extensions.worktreeConfig", "true")
    ground.hitch("workspace", "create", "fix", cwd=repo.path)
    workspace = store.find(str(ground.home), "fix")
    script = script.replace("@EVIL@", evil).replace("@SETTINGS@", settings).replace("@HERE@", workspace.path)
    words = ("run", "--json", "--name", "dev", "--workspace", "fix", "--", "sh", "-c", AS_SOMEBODY + script)
    dev = Truth(ground.home, ground.hitch(*words).json()["id"])
    assert dev.ended() == "completed", dev.output()
    canary.unlink(missing_ok=True)  # an agent's own git runs what it likes
    looks = ("diff dev", "diff dev --stat", "workspace ls", "workspace show fix", "workspace prune --dry-run")
    for look in looks:
        ground.hitch(*look.split())
        assert not canary.exists(), look
    ground.hitch("workspace", "rm", "--force", "fix", check=False)
    assert not canary.exists()


@pytest.mark.ids("S12")
@pytest.mark.parametrize("how", ["file", "alternates"])
def test_a_repository_that_an_agent_makes_of_a_folder_shows_the_next_container_nothing(
    attack: Attack, how: str
) -> None:
    place, secret = attack.boxed.ground.place, Repo(attack.repo.path.parent / "secret")
    attack.repo.git("clone", "-q", attack.repo.path, secret.path)
    commit = secret.commit("key", "secret\n")
    secret.git("worktree", "add", "-q", "-b", "feature", secret.path.parent / "wt")
    script = f"echo 'gitdir: {secret.path}/.git/worktrees/wt' > .git"
    if how == "alternates":
        script = "git init -q .; git commit -q --allow-empty -m x; "
        script += f"echo {secret.path}/.git/objects > .git/objects/info/alternates; "
        script += f"ln -s {secret.path}/.git/refs/heads/main .git/refs/heads/leak"
    attack.run(script, cwd=place)
    attack.hitch("rm", "--force", "dev")
    look = "git show HEAD:key; cat .git/packed-refs; git commit -q --allow-empty -m evil"
    dev = attack.run(look, cwd=place)
    assert b"secret\r\n" not in dev.output()
    assert commit.encode() not in dev.output()
    attack.hitch("diff", "dev", check=4)
    attack.hitch("stop", "dev")
    assert secret.git("rev-parse", "feature") == commit
    refused = attack.hitch("run", "--branch", "b1", "--", "true", cwd=place, check=4)
    assert f"an agent in a container could write {place}/.git" in refused.err


@pytest.mark.ids("F53")
@pytest.mark.parametrize("over", ["command", "rest"])
def test_commits_that_cannot_be_brought_out_are_named_before_they_are_lost(
    attack: Attack, hub: HubProcess, over: str
) -> None:
    script = (
        "c=$(git rev-parse --path-format=absolute --git-common-dir); echo one > one; git add one; git commit -qm one; "
    )
    dev, _ = attack.on_branch(script + f"mkdir -p $c/refs/tags; echo {'1' * 40} > $c/refs/tags/broken")
    said = "refs/tags/broken of the container is only in"
    assert said in attack.hitch("stop", "dev").err
    assert attack.repo.git("log", "-1", "--format=%s", "fix") == "one"
    attack.hitch("restart", "dev")
    attack.hitch("stop", "dev")
    assert said in attack.hitch("rm", "dev", check=4).err
    if over == "rest":
        (told,) = hub.ask("DELETE", f"/api/sessions/{dev.id}?force=true")["lost"]
        assert told.startswith(f"deleted: {said}")
    else:
        assert f"deleted: {said}" in attack.hitch("rm", "--force", "dev").err


@pytest.mark.ids("S7")
def test_a_plain_folder_in_which_a_repository_appears_is_not_compared(attack: Attack, hub: HubProcess) -> None:
    place = attack.boxed.ground.place
    script = "git init -q .; echo a > f; git add f; git commit -qm x; " + attack.evil + FILTERED + "echo b > f"
    dev = attack.run(script, "--exclusive", cwd=place)
    attack.repo.git("-C", place, "log", "-1")  # it is a repository now
    refused = attack.hitch("diff", "dev", check=4)
    assert f"{place} was in no git repository when dev began there" in refused.err
    with pytest.raises(HubRefused, match="was in no git repository"):
        hub.ask("GET", f"/api/sessions/{dev.id}/diff")
    attack.hitch("workspace", "ls")
    hub.ask("GET", "/api/workspaces")
    attack.hitch("restart", "dev")


@pytest.mark.ids("S7")
def test_in_a_main_worktree_the_repository_is_out_of_reach(attack: Attack, hub: HubProcess) -> None:
    repo = attack.repo
    before = (repo.path / ".git/config").read_bytes()
    script = "mv .git old; cp -r old .git; " + attack.evil + FILTERED + "echo changed > README; "
    script += "echo evil > .git/hooks/post-checkout; chmod 755 .git/hooks/post-checkout"
    dev = attack.run(script, "--here")
    assert "README" in attack.hitch("diff", "dev").out
    assert hub.ask("GET", f"/api/sessions/{dev.id}/diff")["files"]
    repo.git("status")
    attack.hitch("restart", "dev")
    attack.hitch("stop", "dev")
    attack.hitch("diff", "dev")
    assert (repo.path / ".git/config").read_bytes() == before
    assert not (repo.path / ".git/hooks/post-checkout").exists()


@pytest.mark.ids("S12")
@pytest.mark.parametrize("how", ["worktree", "main", "folder"])
def test_a_link_in_the_place_of_what_a_container_gets_is_refused(attack: Attack, how: str) -> None:
    secret = attack.repo.path.parent / "secret"
    secret.mkdir()
    if how == "worktree":
        _, workspace = attack.on_branch("true")
        link = Path(workspace.path, ".git")
    else:
        attack.run("true", "--here")
        link = attack.repo.path / ".git" if how == "main" else attack.repo.path
    attack.hitch("stop", "dev")
    link.rename(f"{link}-moved")
    link.symlink_to(secret)
    refused = attack.hitch("restart", "dev", check=False)
    link.unlink()
    Path(f"{link}-moved").rename(link)
    assert refused.code != 0
    assert str(link.parent if how == "worktree" else link) in refused.err
    assert attack.boxed.engine.containers() == []
    assert list(secret.iterdir()) == []
    attack.hitch("restart", "dev")


@pytest.mark.ids("F53")
def test_a_container_that_destroys_all_it_can_destroys_nothing_else(attack: Attack) -> None:
    repo = attack.repo
    repo.git("branch", "other")
    _, workspace = attack.on_branch("echo work > work")
    attack.hitch("restart", "dev")
    (kept,) = [line for line in repo.git("for-each-ref", "--format=%(refname)").splitlines() if "snapshots" in line]
    refs = repo.git("for-each-ref")
    attack.hitch("rm", "--force", "dev")
    script = "c=$(git rev-parse --path-format=absolute --git-common-dir); git commit -qam wip; "
    script += "rm -rf $c/objects/* $c/refs/* $c/packed-refs $c/logs $c/worktrees $c/* $c/.[a-z]* "
    script += "/workspace/* /hitchpost/objects/* 2>/dev/null; "
    script += "for f in /hitchpost/objects/pack/*; do echo x > $f; done 2>/dev/null"
    attack.run(script, "--workspace", "fix")
    attack.hitch("diff", "dev")
    attack.hitch("stop", "dev")
    assert repo.git("fsck", "--full", "--strict") == ""
    assert repo.git("for-each-ref") == refs
    assert repo.git("show", f"{kept}:work") == "work"
    attack.hitch("workspace", "rm", "--force", "fix")
    attack.hitch("workspace", "restore", "fix", "--snapshot", kept)
    assert Path(workspace.path, "work").read_text() == "work\n"


@pytest.mark.ids("F53")
def test_commits_of_a_container_are_brought_into_its_branch_and_no_other(attack: Attack, hub: HubProcess) -> None:
    repo = attack.repo
    main = repo.git("rev-parse", "main")
    script = "echo one > one; git add one; git commit -qm one; git branch aside; git commit -q --allow-empty -m two; "
    script += "git update-ref refs/heads/main HEAD; git stash list; git log --oneline"
    dev, workspace = attack.on_branch(script)
    assert "one" in attack.hitch("diff", "dev", "--stat").out
    assert repo.git("log", "--format=%s", "-2", "fix") == "two\none"
    assert repo.git("rev-parse", "main") == main
    assert "aside" not in repo.git("branch", "--format=%(refname:short)")
    (aside,) = repo.git("for-each-ref", "--format=%(refname)", f"refs/hitchpost/inside/{dev.id}/heads-aside-*").split()
    assert repo.git("log", "-1", "--format=%s", aside) == "one"
    assert Repo(Path(workspace.path)).git("status", "--porcelain") == ""
    assert [one["state"] for one in hub.ask("GET", "/api/workspaces")] == ["clean"]
    attack.hitch("stop", "dev")
    tip = repo.git("rev-parse", "fix")
    attack.hitch("rm", "dev")
    attack.run(
        "git reset -q --hard HEAD~2; echo other > other; git add other; git commit -qm rewritten", "--workspace", "fix"
    )
    attack.hitch("stop", "dev")
    assert repo.git("log", "--format=%s", "-1", "fix") == "rewritten"
    assert tip in repo.git("for-each-ref", "--format=%(objectname)", "refs/hitchpost/inside")
    assert repo.git("fsck", "--full", "--strict") == ""
    assert Repo(Path(workspace.path)).git("status", "--porcelain") == ""


@pytest.mark.ids("F53")
@pytest.mark.parametrize("packed", [True, False])
def test_links_among_a_containers_objects_and_refs_lead_nowhere(attack: Attack, packed: bool) -> None:
    secret = Repo(attack.repo.path.parent / "secret")
    attack.repo.git("clone", "-q", attack.repo.path, secret.path)
    commit = secret.commit("key", "secret\n")
    if packed:
        secret.git("repack", "-q", "-a", "-d")
    objects = secret.path / ".git/objects"
    script = "c=$(git rev-parse --path-format=absolute --git-common-dir); "
    script += f"echo {objects} >> $c/objects/info/alternates; rm -rf $c/objects/pack $c/objects/??; "
    for folder in objects.glob("pack" if packed else "??"):
        script += f"ln -s {folder} $c/objects/{folder.name}; "
    script += f"mkdir -p $c/refs/heads; echo {commit} > $c/refs/heads/fix; ln -s {secret.path}/.git/refs $c/refs/tags/x"
    attack.on_branch(script)
    before = attack.repo.git("for-each-ref")
    attack.hitch("diff", "dev")
    attack.hitch("stop", "dev")
    assert attack.repo.git("for-each-ref") == before
    assert attack.repo.git("cat-file", "-t", commit, check=False) == ""


@pytest.mark.ids("S12")
@pytest.mark.parametrize("pipe", ["README", ".gitignore", ".gitattributes", "sub/.git/HEAD"])
def test_a_pipe_in_the_place_of_a_file_is_named_and_keeps_nobody_waiting(
    attack: Attack, hub: HubProcess, pipe: str
) -> None:
    script = f"mkdir -p sub/.git/refs sub/.git/objects; echo x > sub/file; rm -f {pipe}; mkfifo {pipe}"
    dev, workspace = attack.on_branch(script)
    began = time.monotonic()
    refused = attack.hitch("diff", "dev", check=False)
    said = f"{workspace.path}/{pipe} is a pipe" if pipe != "README" else "cannot hash README"
    assert said in refused.err
    assert time.monotonic() - began < 20

    def ask(_: int) -> str:
        with pytest.raises(HubRefused) as answer:
            hub.ask("GET", f"/api/sessions/{dev.id}/diff")
        return answer.value.message

    with ThreadPoolExecutor(12) as askers:
        answers = [askers.submit(ask, number) for number in range(12)]
        assert hub.ask("POST", f"/api/sessions/{dev.id}/stop")["state"] == "stopped"
        assert all(said in answer.result(60) for answer in answers)
    assert attack.hitch("workspace", "ls").out.count("fix") == 1


@pytest.mark.ids("S12")
def test_a_pipe_in_the_place_of_what_we_read_keeps_nobody_waiting(attack: Attack) -> None:
    script = "d=$(git rev-parse --absolute-git-dir); rm -f $d/HEAD; mkfifo $d/HEAD; mkfifo .hitchpost.toml"
    attack.on_branch(script)
    began = time.monotonic()
    attack.hitch("diff", "dev")
    attack.hitch("stop", "dev")
    refused = attack.hitch("workspace", "rm", "--force", "fix", check=False)
    assert ".hitchpost.toml" in refused.err
    assert time.monotonic() - began < 40


@pytest.mark.ids("S7")
def test_a_trusted_teardown_does_not_run_what_a_container_has_changed(attack: Attack) -> None:
    repo = attack.repo
    repo.commit("Makefile", "down:\n\ttrue\n")
    repo.commit(".hitchpost.toml", '[workspace]\nteardown = ["make down"]\n')
    attack.hitch("workspace", "trust", "--yes", cwd=repo.path)
    attack.on_branch(f"printf 'down:\\n\\ttouch {attack.canary}\\n' > Makefile; git commit -qam down")
    attack.hitch("stop", "dev")
    answer = attack.hitch("workspace", "rm", "--force", "fix")
    assert "the teardown of .hitchpost.toml was not run: an agent in a container" in answer.err


@pytest.mark.ids("S12")
def test_a_large_difference_is_cut_and_says_so(attack: Attack, hub: HubProcess) -> None:
    dev, workspace = attack.on_branch("true")
    top = Path(workspace.path)
    with (top / "huge").open("wb") as file:
        for _ in range(150):
            file.write(b"a line of text that is here many times\n" * 27_000)
    found = hub.ask("GET", f"/api/sessions/{dev.id}/diff")
    assert [(one["path"], one["binary"]) for one in found["files"]] == [("huge", True)]
    assert (len(found["patch"]) < 1000, found["cut"]) == (True, False)
    for number in range(12):
        (top / f"large-{number}").write_bytes(b"another line of text\n" * 50_000)
    found = hub.ask("GET", f"/api/sessions/{dev.id}/diff")
    assert (len(found["patch"]) <= 8 << 20, found["cut"], len(found["files"])) == (True, True, 13)
    assert "only the first 8 MiB are shown" in attack.hitch("diff", "dev").err


@pytest.mark.ids("F51")
def test_a_session_that_moves_to_another_repository_takes_no_commits_there(attack: Attack) -> None:
    other = Repo(attack.repo.path.parent / "other")
    attack.repo.git("init", "-q", other.path)
    other.commit("README", "another\n")
    dev, _ = attack.on_branch("echo one > one; git add one; git commit -qm one")
    (other.path / "moved").touch()
    attack.hitch("restart", "dev", "--workspace", other.path)
    eventually(lambda: b"planted\r\n" in dev.output(2), what="a commit there")
    attack.hitch("stop", "dev")
    assert attack.repo.git("log", "--format=%s", "fix") == "one\nchange README"
    assert other.git("log", "--format=%s") == "one\nchange README"
    assert "moved" in attack.hitch("diff", "dev", "--stat").out
    assert other.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert attack.hitch("workspace", "show", "fix").out.count("clean") == 1


@pytest.mark.ids("F53")
def test_who_works_there_without_a_container_next_finds_its_commits(attack: Attack) -> None:
    attack.on_branch("echo one > one; git add one; git commit -qm one; echo two > two")
    attack.hitch("stop", "dev")
    words = ("run", "--json", "--name", "here", "--workspace", "fix", "--", "sh", "-c")
    script = "git --no-pager log -1 --format=%s; git status --porcelain; git add two; git commit -qm two"
    here = Truth(attack.boxed.ground.home, attack.hitch(*words, script).json()["id"])
    assert here.ended() == "completed"
    assert here.output() == b"one\r\n?? two\r\n"
    assert attack.repo.git("log", "-1", "--format=%s", "fix") == "two"
    assert "clean" in attack.hitch("workspace", "ls").out
    attack.hitch("restart", "dev", check=False)
    assert attack.repo.git("log", "-1", "--format=%s", "fix") == "two"
