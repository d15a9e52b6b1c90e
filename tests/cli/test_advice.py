"""Advice can be followed: each command that a message proposes is run in the very state that the message is about."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hitchpost.errors import HitchpostError, NotStopped
from hitchpost.hub import client as hub_client
from hitchpost.hub.http import static
from hitchpost.ops.sessions.start import start
from hitchpost.ops.sessions.stop import _tells
from hitchpost.ops.views.observe import observe
from hitchpost.settings import Settings
from hitchpost.store import locks
from hitchpost.workspaces import container_writes
from tests.boxes import ECHO, STALE, Boxed
from tests.cli.advice import in_source, proposed
from tests.cli.live import live
from tests.cli.own_agents import own_agent
from tests.cli.places import new_session
from tests.ground import Ground, Truth, alive
from tests.hubs import HubProcess, refused
from tests.repos import Repo
from tests.support import Answer, eventually, halt
from tests.tmuxes import Panes

ONCE = "[ -e once ] && exec sleep 1000; touch once; exit 3"
"""Fails, and works the next time."""
SLOW_KEEPER = "the keeper of dev is alive but did not answer"


@dataclass
class Stage:
    """Where a message is said. ``after`` is undone when its advice was followed."""

    request: pytest.FixtureRequest
    ground: Ground
    after: ExitStack = field(default_factory=ExitStack)
    session: Truth | None = None

    def __getattr__(self, name: str) -> Any:
        return self.request.getfixturevalue(name)

    def begin(self, script: str = "sleep 1000", **options: Any) -> Truth:
        self.session = self.ground.begin_sh(script, name="dev", **options)
        return self.session

    def ended(self, script: str = ONCE) -> Truth:
        session = self.begin(script)
        session.ended()
        return session

    def err(self, *words: str, **options: Any) -> str:
        """What a command says that is refused."""
        answer = self.ground.hitch(*words, check=False, **options)
        assert answer.code in (1, 2, 3, 4, 5), str(answer)
        return answer.err

    def doctor(self) -> str:
        return self.ground.hitch("doctor", check=False).out

    def record(self, session: Truth, **changes: object) -> None:
        path = session.folder / "session.json"
        path.with_name("new").write_text(json.dumps({**json.loads(path.read_bytes()), **changes}))
        path.with_name("new").rename(path)


Scene = Callable[[Stage], str]


# Sessions -------------------------------------------------------------------------------------------------------


def ended(stage: Stage) -> str:
    stage.ended()
    return stage.err("attach", "dev")


def ended_and_sent_to(stage: Stage) -> str:
    stage.ended()
    return stage.err("send", "dev", "hello")


def ended_in_a_conversation(stage: Stage) -> str:
    own_agent(stage.ground.place, "talker", ONCE, '[conversation]\nmints = true\nresume = ["--resume={id}"]\n')
    stage.err("run", "talker", "--name", "dev", cwd=stage.ground.place)
    stage.session = Truth(stage.ground.home, stage.ground.hitch("ps", "--json").json()[0]["id"])
    stage.record(stage.session, conversation_begun=True, supports_resume=True)
    return stage.err("attach", "dev")


def lost_its_conversation(stage: Stage) -> str:
    script = 'case "$1" in --resume*) echo no such conversation; exit 42;; esac; exec sleep 1000'
    own_agent(stage.ground.place, "talker", script, '[conversation]\nmints = true\nresume = ["--resume={id}"]\n')
    stage.ground.hitch("run", "talker", "--name", "dev", cwd=stage.ground.place)
    stage.session = Truth(stage.ground.home, stage.ground.hitch("ps", "--json").json()[0]["id"])
    stage.record(stage.session, conversation_begun=True, supports_resume=True)
    stage.ground.hitch("stop", "--now", "dev")
    return stage.err("resume", "dev")


ASKING = """
shows_prompt = true
[rules]
version = 1
[[screen]]
state = "blocked"
kind = "permission"
find = ['Allow .*\\?']
message_from = 'Allow (?P<text>.*)\\?'
"""
ASKS = (
    "stty -echo; echo ready; printf 'Allow to touch it?'; read -r _; printf '\\033[2J\\033[Hworking'; exec sleep 1000"
)


def asking(choices: str, *words: str) -> Scene:
    """An agent that asks for a permission; ``choices`` is how its rules say that it is answered."""

    def scene(stage: Stage) -> str:
        own_agent(stage.ground.place, "asker", ASKS, ASKING + choices)
        words_of_run = ("run", "asker", "--json", "--name", "dev", "--workspace", str(stage.ground.place))
        session = stage.session = stage.ground.made(*words_of_run)
        eventually(lambda: stage.ground.ps(session)["attention"] == "blocked", 60, what="its question")
        return stage.err(*words)

    return scene


TAKES_AN_ANSWER = 'options = { yes = "\\r" }'
sent_while_asked = asking(TAKES_AN_ANSWER, "send", "dev", "hello")
sent_while_asked_by_keys = asking("", "send", "dev", "hello")
answered_where_only_keys_do = asking("", "answer", "dev", "yes")


def interrupted_where_only_keys_do(stage: Stage) -> str:
    stage.begin("echo ready; exec sleep 1000")
    return stage.err("interrupt", "dev")


def nothing_to_send_again(stage: Stage) -> str:
    stage.ended()
    return stage.err("restart", "--again", "dev")


def never_started(stage: Stage) -> str:
    new_session(stage.ground.home, stage.ground.place, name="dev")
    return stage.err("wait", "dev", "--until", "exit")


def suspended(stage: Stage) -> str:
    stage.record(stage.ended(), record="suspended")
    said = stage.err("send", "dev", "hello")
    assert "may be resumable when agent supports it" in said
    return said


def archived(stage: Stage) -> str:
    session = stage.ended()
    stage.ground.hitch("archive", "dev")
    stage.begin("sleep 1000")  # the name is another's now
    said = stage.err("send", session.id, "hello")
    assert "Session is archived" in said
    assert said.partition("hitch logs")[2] == stage.err("restart", session.id).partition("hitch logs")[2]
    return said


def broken(stage: Stage) -> str:
    stage.record(stage.ended(), record="error")
    return stage.err("resume", "dev")


def live_one(stage: Stage) -> str:
    session = stage.begin()
    with pytest.raises(HitchpostError) as refused:
        start(str(stage.ground.home), session.id, Settings(), caller=os.environ, actor="test")
    return str(refused.value)


def without_a_terminal(stage: Stage) -> str:
    stage.begin()
    return stage.err("attach", "dev")


def left(stage: Stage) -> str:
    stage.begin("echo ready; sleep 1000")
    with live("attach", "dev", terminal=(100, 30)) as visit:
        visit.shows(b"ready")
        visit.press(b"\x02d")
        return visit.shows(b"comes back]").decode()


def keeper_stopped(stage: Stage) -> Truth:
    session = stage.begin()
    pid = session.keeper_pid()
    session.kill_keeper(signal.SIGSTOP)

    def go_on() -> None:
        if alive(pid):
            session.kill_keeper(signal.SIGCONT)

    stage.after.callback(go_on)
    return session


def silent_keeper(stage: Stage) -> str:
    keeper_stopped(stage)
    said = stage.err("send", "dev", "hello")
    assert SLOW_KEEPER in said
    return said


def stop_beside_a_stopped_keeper(stage: Stage) -> str:
    keeper_stopped(stage)
    return stage.err("stop", "dev")


def doctor_of_a_stopped_keeper(stage: Stage) -> str:
    keeper_stopped(stage)
    return stage.doctor()


def not_stopped(stage: Stage) -> str:
    """The state that is nearest: no keeper is made to refuse, or to stay when it was ended."""
    seen = observe(str(stage.ground.home), keeper_stopped(stage).id)
    return str(NotStopped("dev", "its keeper refused", _tells(seen)))


def lost_keeper(stage: Stage) -> str:
    stage.begin().kill_keeper()
    return stage.doctor()


def survivors(stage: Stage) -> str:
    session = stage.begin("setsid sleep 1000 & until [ -e go ]; do sleep 0.01; done")
    eventually(lambda: any("1000" in one.argv for one in stage.ground.processes()), what="the survivor")
    (stage.ground.place / "go").touch()
    session.ended()
    said = stage.doctor()
    stage.after.callback(lambda: stage.ground.end(session))
    return said


def no_terminal(stage: Stage) -> str:
    stage.ground.begin_sh("sleep 1000", name="dev")
    return stage.ground.hitch("top", check=2).err


def no_dashboard(stage: Stage) -> str:
    stage.ground.begin_sh("sleep 1000", name="dev")
    missing = stage.ground.place / "textual.py"
    missing.write_text("raise ModuleNotFoundError(name='textual')")
    return stage.ground.hitch("top", check=1, env={"PYTHONPATH": str(stage.ground.place)}).err


def unknown_session(stage: Stage) -> str:
    return stage.err("logs", "nobody")


def flooded_pane(stage: Stage) -> str:
    panes: Panes = stage.panes
    go = stage.ground.place / "go"
    flood = "head -c 1300000 /dev/zero | tr '\\0' x; echo"  # once too much; what follows leaves it in tmux's history
    dev = panes.sh(f"until [ -e go ]; do sleep 0.01; done; {flood}; echo over $((1 + 1)); exec sleep 1000")
    stage.session = dev
    halt(panes.server(dev))
    go.touch()
    eventually(lambda: b"over 2" in dev.output(), 60, "the flood")
    os.kill(panes.server(dev), signal.SIGCONT)
    panes.shows(dev, "over 2")
    return eventually(lambda: said if "has them" in (said := history(panes, dev)) else "", what="what was skipped")


def history(panes: Panes, session: Truth) -> str:
    return panes.tmux(session, "capture-pane", "-p", "-J", "-S", "-")


def adopted(stage: Stage) -> str:
    folder = os.environ["TMUX_TMPDIR"]

    def begin() -> None:
        subprocess.run(["tmux", "-f", "/dev/null", "new-session", "-d", "-s", "work", "sleep 1000"], check=True)

    begin()
    found = stage.ground.hitch("adopt", "--tmux", "work", "--name", "dev", "--json").json()
    stage.ground.hitch("stop", "dev")
    Truth(stage.ground.home, found["id"]).ended()
    said = stage.err("restart", "dev")
    assert said.rpartition("; ")[2] == stage.err("send", "dev", "hello").rpartition("; ")[2]
    begin()
    stage.after.callback(subprocess.run, ["tmux", "kill-server"], check=True, env={**os.environ, "TMUX_TMPDIR": folder})
    return said


def stale(stage: Stage) -> str:
    boxed: Boxed = stage.boxed
    stage.session = boxed.run("sh", "-c", ECHO)
    stage.ground.hitch("send", "dev", "leave")
    eventually(lambda: boxed.label(stage.session) == STALE, what="stale")  # type: ignore[arg-type]
    return stage.err("attach", "dev")


def ended_at_once(stage: Stage) -> str:
    return stage.err("run", "--name", "dev", "--", "sh", "-c", "echo 3 errors; exit 1", cwd=stage.ground.place)


def not_delivered(stage: Stage) -> str:
    folder = stage.ground.watch.scratch / "bin"
    folder.mkdir()
    program = folder / "aider"
    program.write_text("#!/bin/sh\necho bye; sleep 0.2; exit 0\n")
    program.chmod(0o755)
    words = ("run", "aider", "--name", "dev", "--prompt", "hello")
    return stage.err(*words, cwd=stage.ground.place, env={"PATH": f"{folder}:{os.environ['PATH']}"})


def unkept(stage: Stage) -> str:
    boxed: Boxed = stage.boxed
    session = stage.session = boxed.run("sh", "-c", ECHO)
    session.kill_keeper()
    (place,) = (session.folder / "inside").glob("1-*")
    (place / "out").unlink()
    (place / "out").write_text("no pipe")
    with live("attach", "dev", terminal=(80, 24)) as refused:
        assert refused.process.wait(20) == 4
        return refused.err()


def folder_deleted(stage: Stage) -> str:
    shutil.rmtree(stage.begin().folder)
    return stage.doctor()


def crowded(stage: Stage) -> str:
    for _ in range(6):
        stage.ground.begin_sh("sleep 1000")
    return stage.ground.hitch("run", "--name", "dev", "--", "sleep", "1000", cwd=stage.ground.place).err


def forced_without_a_pod(stage: Stage) -> str:
    stage.begin()
    return stage.err("restart", "--force", "dev")


def no_cluster(stage: Stage) -> str:
    stage.after.callback(stage.ground.hitch, "down")
    return stage.err("run", "--runtime", "pod", "--", "true", cwd=stage.ground.place)


def no_cluster_but_a_hub(stage: Stage) -> str:
    assert stage.hub.process is not None
    return stage.err("run", "--runtime", "pod", "--", "true", cwd=stage.ground.place)


# Folders --------------------------------------------------------------------------------------------------------


def in_worktree(stage: Stage, script: str = "exit 0") -> Truth:
    repo: Repo = stage.repo
    words = ("run", "--json", "--name", "dev", "--branch", "fix-it", "--", "sh", "-c", script)
    stage.session = Truth(stage.ground.home, stage.ground.hitch(*words, cwd=repo.path).json()["id"])
    return stage.session


def folder_of(stage: Stage, session: Truth) -> str:
    return str(stage.ground.ps(session)["workspace"]["path"])


def worktree_gone(stage: Stage) -> Truth:
    session = in_worktree(stage)
    session.ended()
    shutil.rmtree(folder_of(stage, session))
    return session


def restart_without_worktree(stage: Stage) -> str:
    worktree_gone(stage)
    return stage.err("restart", "dev")


def diff_without_worktree(stage: Stage) -> str:
    worktree_gone(stage)
    return stage.err("diff", "dev")


def doctor_without_worktree(stage: Stage) -> str:
    worktree_gone(stage)
    return stage.doctor()


def run_without_worktree(stage: Stage) -> str:
    worktree_gone(stage)
    return stage.err("run", "--branch", "fix-it", "--", "true", cwd=stage.repo.path)


def exclusive_folder_gone(stage: Stage) -> Path:
    place = stage.ground.place / "leased"
    place.mkdir()
    words = ("run", "--json", "--name", "dev", "--exclusive", "--workspace", str(place), "--", "true")
    Truth(stage.ground.home, stage.ground.hitch(*words).json()["id"]).ended()
    place.rmdir()
    return place


def doctor_without_folder(stage: Stage) -> str:
    exclusive_folder_gone(stage)
    return stage.doctor()


def run_without_folder(stage: Stage) -> str:
    exclusive_folder_gone(stage)
    return stage.err("run", "--workspace", "leased", "--", "true")


def restored_under_a_live_agent(stage: Stage) -> str:
    session = in_worktree(stage, "sleep 1000")
    folder = folder_of(stage, session)
    shutil.rmtree(folder)
    eventually(lambda: session.state == "orphaned", what="orphaned")
    stage.ground.hitch("workspace", "restore", "fix-it")
    return stage.err("resume", "dev")


def half_made(stage: Stage) -> str:
    in_worktree(stage).ended()
    (path,) = (stage.ground.home / "workspaces").glob("*/workspace.json")
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "made": False}))
    return stage.doctor()


def notes_of_git_gone(stage: Stage) -> str:
    in_worktree(stage).ended()
    shutil.rmtree(stage.repo.path / ".git" / "worktrees")
    return stage.doctor()


def removed_with_work(stage: Stage) -> str:
    session = in_worktree(stage)
    session.ended()
    Path(folder_of(stage, session), "new").write_text("work\n")
    return stage.ground.hitch("workspace", "rm", "--force", "fix-it").err


def removed_beside_a_container(stage: Stage) -> str:
    boxed: Boxed = stage.boxed
    stage.ground.hitch("workspace", "create", "fix-it", cwd=stage.repo.path)
    (folder,) = [Path(path) for path in stage.repo.worktrees[1:]]
    stage.session = boxed.run("sh", "-c", ECHO, place=folder)
    stage.ground.hitch("send", "dev", "leave")
    stage.session.ended()
    stage.after.callback(stage.ground.hitch, "workspace", "rm", "fix-it")
    return stage.err("workspace", "rm", "fix-it")


def untrusted(stage: Stage) -> str:
    stage.repo.commit(".hitchpost.toml", '[workspace]\nsetup = ["true"]\n')
    words = ("run", "--branch", "fix-it", "--", "true")
    return stage.ground.hitch(*words, cwd=stage.repo.path).err


def repository_of_an_agent(stage: Stage) -> str:
    container_writes.note_folders(str(stage.ground.home), str(stage.repo.path))
    return stage.err("run", "--branch", "fix-it", "--", "true", cwd=stage.repo.path)


def files_of_an_agent(stage: Stage) -> str:
    stage.repo.commit(".worktreeinclude", "notes\n")
    container_writes.note_folders(str(stage.ground.home), str(stage.repo.path), str(stage.repo.path / ".git"))
    return stage.ground.hitch("run", "--branch", "fix-it", "--", "true", cwd=stage.repo.path).err


def commits_that_stay_inside(stage: Stage) -> str:
    boxed: Boxed = stage.boxed
    script = f"mkdir -p .git/refs/tags; echo {'1' * 40} > .git/refs/tags/broken"
    stage.session = boxed.run("sh", "-c", script, place=stage.repo.path)
    stage.session.ended()
    return boxed.ground.hitch("rm", "dev", check=False).err


def unknown_workspace(stage: Stage) -> str:
    return stage.err("workspace", "path", "nowhere")


# Files ----------------------------------------------------------------------------------------------------------


def unreadable(stage: Stage) -> Truth:
    session = stage.ended()
    (session.folder / "state.json").write_text("{")
    return session


def explained_unreadable(stage: Stage) -> str:
    unreadable(stage)
    return stage.ground.hitch("explain", "dev").out


def listed_unreadable(stage: Stage) -> str:
    unreadable(stage)
    return stage.ground.hitch("ps").out


def doctor_unreadable(stage: Stage) -> str:
    unreadable(stage)
    return stage.doctor()


def unknown_runtime(stage: Stage) -> str:
    stage.record(stage.ended(), runtime="moon")
    return stage.ground.hitch("ps").out


def locked(stage: Stage) -> str:
    session = stage.ended()
    stage.after.enter_context(locks.SessionLock(str(session.folder)))
    with pytest.raises(locks.LockTimeout) as late, locks.SessionLock(str(session.folder), timeout_s=0.05):
        pass
    return str(late.value)


def broken_index(stage: Stage) -> str:
    stage.ended()
    (stage.ground.home / "sessions" / ".new-abc").mkdir()
    return stage.doctor()


def no_home(stage: Stage) -> str:
    return stage.doctor()


def open_home(mode: int) -> Scene:
    def scene(stage: Stage) -> str:
        home = stage.ground.watch.scratch / "my home"
        (home / "sessions").mkdir(parents=True, mode=0o700)
        home.chmod(mode)
        stage.monkeypatch.setenv("HITCHPOST_HOME", str(home))
        return stage.doctor()

    return scene


def same_names(stage: Stage) -> str:
    stage.begin()
    other = stage.ground.begin_sh("sleep 1000", name="other")
    stage.record(other, name="dev")
    return stage.doctor()


# The hub --------------------------------------------------------------------------------------------------------


def no_hub(stage: Stage) -> str:
    stage.after.callback(stage.ground.hitch, "down")
    return stage.ground.hitch("status").out


def nobody_waits_for_a_limit(stage: Stage) -> str:
    stage.after.callback(stage.ground.hitch, "down")
    stage.ended()
    return stage.ground.hitch("resume", "dev", "--when-limit", "wait", "--json").err


def handed_over_while_it_runs(stage: Stage) -> str:
    stage.begin("echo ready; sleep 1000")
    return stage.err("resume", "dev", "--agent", "claude")


def nobody_answers(stage: Stage) -> str:
    stage.after.callback(stage.ground.hitch, "down")
    with pytest.raises(hub_client.NoHub) as absent:
        hub_client.ask(str(stage.ground.home), "GET", "/api/health")
    return str(absent.value)


def stopped_hub(stage: Stage) -> str:
    stage.ground.hitch("up", "--port", "0")
    pid = json.loads((stage.ground.home / "hub.json").read_bytes())["pid"]
    halt(pid)
    stage.after.callback(lambda: eventually(lambda: not alive(pid), what="the end of the hub"))
    return stage.ground.hitch("status").out


def up_with_more_variables(stage: Stage) -> str:
    stage.ground.hitch("up", "--port", "0")
    return stage.ground.hitch("up", "--keep-env", "PATH").err


def hub_of_nobody(stage: Stage) -> str:
    stage.ended()
    held = os.open(stage.ground.home, os.O_RDONLY)
    stage.after.callback(os.close, held)
    fcntl.flock(held, fcntl.LOCK_EX)
    return stage.err("down")


def second_hub(stage: Stage) -> str:
    assert stage.hub.process is not None
    return refused().err


def up_twice(stage: Stage) -> str:
    assert stage.hub.process is not None
    return stage.ground.hitch("up").err


def tried_by_no_channel(stage: Stage) -> str:
    assert stage.hub.process is not None
    return stage.ground.hitch("notify", "--test", "pigeon", check=3).err


def refused_by_the_hub(path: str, **headers: str) -> Scene:
    def scene(stage: Stage) -> str:
        hub: HubProcess = stage.hub
        with hub.http(None, **headers) as client:
            answer = client.get(path)
        assert answer.status_code in (401, 403)
        return str(answer.json()["error"]["hint"])

    return scene


def started_twice(stage: Stage) -> str:
    stage.begin("echo ready; sleep 1000")
    hub: HubProcess = stage.hub
    with pytest.raises(hub_client.HubRefused) as refused:
        hub.ask("POST", "/api/agents/dev/start")
    return str(refused.value)


def no_page(stage: Stage) -> str:
    stage.begin("echo ready; sleep 1000")
    return static.NOT_BUILT


def unknown_token(stage: Stage) -> str:
    return stage.err("token", "rm", "nobody")


def unknown_user(stage: Stage) -> str:
    return stage.err("user", "rm", "nobody")


def user_twice(stage: Stage) -> str:
    stage.ground.hitch("user", "add", "anna")
    return stage.err("user", "add", "anna", "--role", "owner")


# What is said anywhere ------------------------------------------------------------------------------------------


def nothing_to_run(stage: Stage) -> str:
    return stage.err("run")


def name_taken(stage: Stage) -> str:
    stage.begin("sleep 1000")
    return stage.err("run", "--name", "dev", "--", "true")


def unknown_agent(stage: Stage) -> str:
    return stage.err("run", "true")


def helped(*words: str) -> Scene:
    def scene(stage: Stage) -> str:
        stage.ended()
        return " ".join(stage.ground.hitch(*words, "--help").out.split())

    return scene


# The table ------------------------------------------------------------------------------------------------------


def started_in_a_terminal(stage: Stage) -> str:
    with live("run", "--name", "dev", "--", "sh", "-c", "echo ready; exec cat", terminal=(100, 30)) as started:
        assert started.code() == 0
        said = started.out().decode()
    stage.after.callback(stage.ground.hitch, "stop", "dev")
    return said


def finished_without_worktree(stage: Stage) -> str:
    session = in_worktree(stage, "exit 0")
    session.ended()
    shutil.rmtree(folder_of(stage, session))
    return stage.err("finish", "dev", "--yes")


@dataclass(frozen=True)
class Row:
    """``words`` of the clause are the command. Its exit code is one of ``codes``; ``shows`` is in what it prints.

    ``then`` is a command of ours that works afterwards.
    """

    file: str
    clause: str
    words: int
    scene: Scene
    codes: tuple[int, ...] = (0,)
    shows: str = ""
    then: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.file}-{self.scene.__name__}-{self.clause}".replace(" ", "_")


SEEN = (0, 1)
"""Of the doctor: it has looked, and found something or not."""
WAY_ON = "ops/views/advice.py"
ROWS = (
    Row(WAY_ON, "hitch restart {} starts it again", 3, ended, shows="running (run 2)"),
    Row(WAY_ON, "hitch restart {} starts it again", 3, ended_and_sent_to, shows="running (run 2)"),
    Row(WAY_ON, "hitch resume {} goes on with its conversation", 3, ended_in_a_conversation, shows="same conversation"),
    Row(WAY_ON, "hitch restart {} begins another", 3, ended_in_a_conversation, shows="running (run 2)"),
    Row(WAY_ON, "hitch answer {} yes allows it", 4, sent_while_asked, shows="answered yes to dev"),
    Row(WAY_ON, "hitch attach {} shows it", 3, sent_while_asked_by_keys, shows="Allow to touch it?"),
    Row(
        "ops/sessions/answer.py", "hitch attach {} shows it", 3, answered_where_only_keys_do, shows="Allow to touch it?"
    ),
    Row("hub/notifier.py", "hitch notify lists what is", 2, tried_by_no_channel, shows="told of: permission"),
    Row("cli/up.py", "hitch link makes one that lasts longer", 2, up_twice, shows="#code="),
    Row("ops/sessions/first_prompt.py", "hitch restart {} starts it without one", 3, nothing_to_send_again),
    Row(WAY_ON, "hitch restart {} starts it", 3, never_started, shows="(run 1)"),
    Row(WAY_ON, "hitch resume {} starts it again", 3, suspended, shows="running (run 2)"),
    Row(WAY_ON, "hitch unarchive {0} brings it back", 3, archived, shows="brought back as dev-2"),
    Row(WAY_ON, "hitch logs {0} shows its output", 3, archived),
    Row(WAY_ON, "hitch rm {0} deletes it", 3, archived),
    Row(WAY_ON, "hitch rm {0} deletes it", 3, broken),
    Row(WAY_ON, "hitch explain {0} says why", 3, broken, shows="the record is error"),
    Row(WAY_ON, "hitch restart {} starts a new session in it", 3, stale, shows="running (run 2)"),
    Row(WAY_ON, "hitch stop {} removes it", 3, stale),
    Row("errors.py", "hitch logs {} shows what it printed", 3, ended_at_once, shows="3 errors"),
    Row("errors.py", "hitch restart {} begins another conversation", 3, lost_its_conversation, shows="running (run 3)"),
    Row("errors.py", "hitch logs {}", 3, not_delivered, shows="bye"),
    Row("errors.py", "hitch cancel {} ends and archives that one", 3, name_taken, shows="cancelled"),
    Row("ops/sessions/takeover.py", "hitch doctor says why", 2, unkept, codes=(1,), shows="no longer a pipe"),
    Row("ops/sessions/takeover.py", "hitch stop {} ends it", 3, unkept),
    Row("ops/doctor/deleted_sessions.py", "hitch doctor --fix", 3, folder_deleted, shows="ended the keeper and"),
    Row("runtimes/adopted.py", "hitch adopt --tmux TARGET watches it", 4, adopted),
    Row("ops/sessions/interrupt.py", "hitch attach {} opens it", 3, interrupted_where_only_keys_do, shows="ready"),
    Row("cli/attach.py", "hitch logs {} shows its output", 3, ended),
    Row("cli/attach.py", "hitch logs -f {} follows without one", 4, without_a_terminal),
    Row("cli/attach.py", "hitch attach {} comes back", 3, left, shows="ready"),
    Row("keeper/sources/tmux_pane.py", "hitch logs {} has them", 3, flooded_pane, shows="x" * 100),
    Row("ops/sessions/start.py", "hitch restart {} stops it first", 3, live_one, shows="running (run 2)"),
    Row("ops/sessions/start.py", "hitch stop {} ends it", 3, restored_under_a_live_agent),
    Row("ops/sessions/stop.py", "hitch explain {} shows what is known", 3, not_stopped, shows="stopped by a signal"),
    Row("ops/doctor/sessions.py", "hitch doctor --fix", 3, lost_keeper, shows="fixed"),
    Row("ops/doctor/sessions.py", "hitch stop {} ends them", 3, survivors),
    Row("ops/views/workplace.py", "hitch workspace restore {} brings it back", 4, restart_without_worktree),
    Row("ops/views/workplace.py", "hitch restart {} --workspace FOLDER moves the session", 5, restart_without_worktree),
    Row("ops/views/diff.py", "hitch workspace restore {} brings it back", 4, diff_without_worktree),
    Row("ops/doctor/workspaces.py", "hitch workspace restore {} brings it back", 4, doctor_without_worktree),
    Row("ops/doctor/workspaces.py", "hitch workspace rm {} forgets it", 4, doctor_without_folder),
    Row("ops/doctor/workspaces.py", "hitch doctor --fix", 3, half_made, SEEN, "fixed"),
    Row("ops/doctor/workspaces.py", "hitch workspace restore {} makes them again", 4, notes_of_git_gone),
    Row("ops/views/neighbours.py", "hitch ps", 2, crowded, shows="dev"),
    Row("workspaces/container_writes.py", "hitch stop {} removes it", 3, removed_beside_a_container),
    Row("workspaces/worktree.py", "hitch workspace restore {} brings it back", 4, run_without_worktree),
    Row("workspaces/worktree.py", "hitch workspace rm {} forgets it", 4, run_without_folder),
    Row("workspaces/project.py", "hitch workspace trust {}", 4, untrusted),
    Row("workspaces/include.py", "hitch workspace trust {}", 4, files_of_an_agent),
    Row("workspaces/container_writes.py", "hitch workspace trust {} takes it as yours", 4, repository_of_an_agent),
    Row("ops/sessions/remove.py", "hitch rm --force {} deletes it", 4, commits_that_stay_inside),
    Row("cli/workspace.py", "hitch workspace restore {} brings it back", 4, removed_with_work),
    Row("ops/doctor/report.py", "hitch doctor --fix", 3, broken_index, SEEN, "fixed"),
    Row("ops/doctor/report.py", "hitch run makes it", 2, no_home),
    Row("ops/doctor/report.py", "hitch cancel {} ends and archives it", 3, same_names),
    Row("ops/views/explain.py", "hitch doctor", 2, explained_unreadable, (1,), "run: hitch doctor --fix"),
    Row("ops/views/session_json.py", "hitch doctor", 2, listed_unreadable, (1,), "run: hitch doctor --fix"),
    Row("ops/doctor/sessions.py", "hitch doctor --fix", 3, doctor_unreadable, SEEN, "fixed"),
    Row("ops/views/listing.py", "hitch doctor", 2, unknown_runtime, (1,), "moon"),
    Row("store/locks.py", "hitch doctor", 2, locked, SEEN),
    Row("errors.py", "hitch doctor", 2, silent_keeper, (1,), "kill -CONT"),
    Row("errors.py", "hitch ps --all lists them", 3, unknown_session),
    Row("cli/top.py", "hitch ps lists sessions without one", 2, no_terminal, shows="dev", then=("stop", "dev")),
    Row("cli/top.py", "hitch ps", 2, no_dashboard, shows="dev", then=("stop", "dev")),
    Row("errors.py", "hitch workspace ls --all lists them", 4, unknown_workspace),
    Row("errors.py", "hitch token ls lists them", 3, unknown_token),
    Row("hub/http/tokenfile.py", "hitch user ls lists them", 3, unknown_user, shows="NAME"),
    Row("hub/http/tokenfile.py", "hitch user set {} changes the role and the limits", 4, user_twice, shows="anna: mem"),
    Row("cli/status.py", "hitch up starts it", 2, no_hub, shows="the hub is up"),
    Row("hub/client.py", "hitch up starts it", 2, nobody_answers, shows="the hub is up"),
    Row("cli/run.py", "hitch up", 2, nobody_waits_for_a_limit, shows="the hub is up"),
    Row("ops/sessions/resume.py", "hitch stop {} ends it first", 3, handed_over_while_it_runs, shows="dev: stopped"),
    Row("hub/client.py", "hitch down ends it", 2, stopped_hub, shows="the hub is down"),
    Row("hub/client.py", "kill -CONT {} resumes it", 3, stopped_hub, then=("down",)),
    Row("ops/sessions/stop.py", "kill -CONT {}", 3, stop_beside_a_stopped_keeper, then=("stop", "dev")),
    Row("ops/doctor/sessions.py", "kill -CONT {}", 3, doctor_of_a_stopped_keeper, then=("stop", "dev")),
    Row("ops/doctor/report.py", "chmod 700 {}", 3, open_home(0o755), then=("ps",)),
    Row("store/home.py", "chmod 700 {}", 3, open_home(0o777), then=("ps",)),
    Row("cli/down.py", "hitch doctor", 2, hub_of_nobody, SEEN),
    Row("cli/up.py", "hitch down ends it", 2, up_with_more_variables, shows="the hub is down"),
    Row("cli/up.py", "hitch up prints another", 2, up_twice, shows="#code="),
    Row("hub/http/server.py", "hitch status shows it", 2, second_hub, shows="running   pid "),
    Row("hub/http/gate.py", "hitch up prints", 2, refused_by_the_hub("/", Host="elsewhere"), shows="#code="),
    Row("hub/http/gate.py", "hitch up prints a URL that signs you in", 2, refused_by_the_hub("/api/me"), shows="#c"),
    Row("hub/http/gate.py", "hitch token create makes one", 3, refused_by_the_hub("/api/me", Authorization="Bearer x")),
    Row("hub/http/routes/agents.py", "hitch attach {}", 3, started_twice, shows="ready"),
    Row("hub/http/static.py", "hitch ps lists", 2, no_page, shows="dev"),
    Row("hub/http/static.py", "hitch attach SESSION enters one", 3, no_page, shows="ready"),
    Row("ops/sessions/spec.py", "hitch run AGENT", 3, nothing_to_run),
    Row("ops/sessions/spec.py", "hitch run -- COMMAND …", 5, nothing_to_run),
    Row("ops/sessions/spec.py", "hitch agents lists the agents", 2, nothing_to_run, shows="claude"),
    Row("agents/catalog.py", "hitch run -- {} …", 5, unknown_agent),
    Row("cli/run.py", "hitch agents", 2, helped("run"), shows="claude"),
    Row("cli/run.py", "hitch workspace ls", 3, helped("run")),
    Row("cli/run.py", "hitch ps", 2, helped("run"), shows="dev"),
    Row("cli/run.py", "hitch attach {} enters its terminal", 3, started_in_a_terminal, shows="ready"),
    Row("cli/run.py", "hitch ps shows who needs you", 2, started_in_a_terminal, shows="dev"),
    Row("ops/sessions/finish.py", "hitch workspace restore {} brings it back", 4, finished_without_worktree),
    Row("ops/sessions/give_up.py", "hitch stop {} ends it", 3, forced_without_a_pod, shows="dev: stopped"),
    Row("runtimes/pod.py", "hitch up --fleet ADDRESS starts a hub of a fleet", 4, no_cluster, shows="the hub is up"),
    Row(
        "runtimes/pod.py",
        "hitch context add NAME URL adds one that runs elsewhere",
        5,
        no_cluster_but_a_hub,
        shows="you are test there",
    ),
    Row("cli/group.py", "hitch context --help", 3, helped("ps"), shows="hitch context add team"),
    Row("cli/adopt.py", "hitch ps", 2, helped("adopt"), shows="dev"),
    Row("cli/completion.py", "hitch completion bash", 3, helped("completion"), shows="complete -o"),
    Row("cli/completion.py", "hitch completion zsh", 3, helped("completion"), shows="#compdef"),
)

FROM_AFAR = "tests/cli/remote/test_advice.py"
ELSEWHERE = {
    ("cli/context.py", "hitch context use {} makes it the usual one"): FROM_AFAR,
    ("cli/remote/attach.py", "hitch attach {} comes back"): FROM_AFAR,
    ("cli/remote/attach.py", "hitch logs -f {} follows without one"): FROM_AFAR,
    ("cli/remote/attach.py", "hitch logs {} shows its output"): FROM_AFAR,
    ("cli/remote/contexts.py", "hitch context ls lists them"): FROM_AFAR,
    ("cli/remote/contexts.py", "hitch context rm {} forgets it"): FROM_AFAR,
    ("cli/remote/run.py", "hitch attach {} enters its terminal"): FROM_AFAR,
    ("cli/remote/run.py", "hitch ps shows who needs you"): FROM_AFAR,
    ("cli/remote/stand_in.py", "hitch logs {} has them"): FROM_AFAR,
    ("cli/remote/table.py", "hitch ps --watch"): FROM_AFAR,
    ("cli/remote/table.py", "hitch replay SESSION --export FILE brings a recording here"): FROM_AFAR,
    (
        "cli/remote/tls.py",
        "hitch context add {} {} --ca-file FILE adds it with the authority that has signed it",
    ): FROM_AFAR,
    ("cli/remote/tls.py", "hitch context rm {} forgets it"): FROM_AFAR,
    ("cli/remote/tls.py", "hitch context show {} tries it again"): FROM_AFAR,
    ("ops/sessions/stop.py", "hitch restart --force {}"): "tests/fleet/test_cluster_faults.py",
    ("ops/sessions/stop.py", "hitch stop {} removes it once its engine answers"): "tests/runtimes/test_docker_hub.py",
    ("cli/attachment.py", "hitch logs {} has them"): "tests/cli/test_attach.py",
    ("hub/run_ends.py", "hitch doctor"): "tests/faults/test_hub_on_disks.py",
    ("cli/fleet.py", "hitch fleet undrain {} undoes it"): "tests/fleet/test_operating.py",
    ("cli/fleet.py", "hitch resume {}"): "tests/fleet/test_operating.py",
    ("hub/nodes.py", "hitch fleet status lists them"): "tests/fleet/test_operating.py",
}
"""What takes a scene that another file has: there it is followed."""

NO_ADVICE = {
    (
        "cli/completion.py",
        "hitch completion fish > ~/",
    ): "a comment of the script",
    ("cli/run.py", "hitch run claude --name auth --prompt"): "examples in the help, of an agent that is installed",
    ("cli/run.py", "hitch run claude --branch fix-auth"): "the same",
    ("cli/run.py", "hitch run -- make -j8"): "the same",
    ("cli/run.py", "hitch run claude --wait --json --prompt"): "the same",
    ("watcher/opencode.py", "hitch attach"): "names the way, of a session that the sentence has named",
    ("watcher/shown.py", "hitch attach shows it"): "the same",
    ("model/draining.py", "hitch resume starts it on another node"): "the same",
    ("ops/doctor/workspaces.py", "hitch run --branch and hitch diff need it"): "what git is for, where there is none",
}

PLACES = {"FOLDER": "{place}", "AGENT": "bash", "COMMAND": "true", "TARGET": "work", "SESSION": "dev"}


def follow(stage: Stage, argv: list[str]) -> Answer:
    """Run a proposed command as a person would type it."""
    if argv[0] != "hitch":
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return Answer(tuple(argv), done.returncode, done.stdout, done.stderr)
    words = [PLACES.get(word, word).format(place=stage.ground.place) for word in argv[1:] if word != "…"]
    if words == ["run"]:
        words += ["--", "true"]
    if words == ["up", "--fleet", "ADDRESS"]:
        words[2] = stage.database
    if words[0] == "up":
        words += ["--port", "0"]
    if words == ["context", "add", "NAME", "URL"]:
        words = ["context", "add", "team", stage.hub.url, "--token-file", "-"]
        return stage.ground.hitch(*words, check=False, stdin=f"{stage.hub.token()}\n")
    if words[0] == "attach":
        with live(*words, terminal=(100, 30)) as visit:
            visit.shows(b"ready")
            visit.press(b"\x02d")
            return Answer(tuple(words), visit.code(), visit.out().decode(), visit.err())
    if "-f" in words:
        with live(*words) as followed:
            stage.ground.hitch("stop", "dev")
            return Answer(tuple(words), followed.code(), followed.out().decode(), followed.err())
    return stage.ground.hitch(*words, check=False, stdin="y\n", cwd=stage.ground.place)


@pytest.fixture
def stage(request: pytest.FixtureRequest, ground: Ground) -> Iterator[Stage]:
    made = Stage(request, ground)
    with closing(made.after):
        yield made


@pytest.mark.ids("D-4")
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_what_a_message_proposes_works_in_that_state(stage: Stage, row: Row) -> None:
    said = " ".join(row.scene(stage).replace("\r", "").split())
    answer = follow(stage, proposed(said, row.clause, row.words))
    assert answer.code in row.codes, str(answer)
    assert row.shows in answer.out, str(answer)
    if row.then:
        stage.ground.hitch(*row.then)


def test_every_command_in_a_message_has_its_row() -> None:
    rows = {(row.file, row.clause) for row in ROWS}
    assert in_source() == rows | set(ELSEWHERE) | set(NO_ADVICE)
    for (_, clause), path in ELSEWHERE.items():
        assert f'proposed(said, "{clause}"' in Path(path).read_text()


@pytest.mark.ids("F50", "X27")
@pytest.mark.parametrize("lives", [True, False])
def test_doctor_and_restart_give_the_same_advice_for_an_orphaned_session(stage: Stage, lives: bool) -> None:
    session = in_worktree(stage, "sleep 1000")
    shutil.rmtree(folder_of(stage, session))
    eventually(lambda: session.state == "orphaned", what="orphaned")
    if not lives:
        stage.ground.hitch("stop", "dev")
    message, _, advice = stage.err("restart", "dev").strip().partition("; ")
    assert "is gone or is another folder than the session's" in message
    lines = [line.strip() for line in stage.doctor().splitlines()]
    assert f"→ {advice}" in lines
    assert advice == (
        "hitch workspace restore fix-it brings it back, or hitch restart dev --workspace FOLDER moves the session"
    )
    stage.ground.hitch("workspace", "restore", "fix-it")
    assert "running (run 2)" in stage.ground.hitch("restart", "dev").out


@pytest.mark.parametrize("name", ["two words", "$(id)", "-x", "a;b", "ü"])
def test_advice_names_a_session_in_a_way_that_a_shell_takes(stage: Stage, name: str) -> None:
    session = stage.ground.begin_sh(ONCE, name=name)
    session.ended()
    said = stage.err("send", session.id, "hello")
    answer = follow(stage, proposed(said, "hitch restart {} starts it again", 3))
    assert (answer.code, session.state_file()["run"]) == (0, 2), str(answer)


@pytest.mark.ids("D-4")
def test_the_hub_says_what_to_do_as_a_hint_of_its_own(stage: Stage) -> None:
    hub: HubProcess = stage.hub
    texts = {"suspended": "may be resumable when agent supports it", "archived": "Session is archived", "error": ""}
    for record, text in texts.items():
        session = stage.ground.begin_sh("exit 0", name=record)
        session.ended()
        stage.record(session, record=record)
        eventually(lambda: hub.ask("GET", f"/api/sessions/{session.id}")["record"] == record, what=record)  # noqa: B023
        with hub.http() as client:
            error = client.post(f"/api/sessions/{session.id}/prompt", json={"text": "x"}).json()["error"]
        assert (error["code"], text in error["message"], "hitch" in error["message"]) == ("wrong_state", True, False)
        word = session.id if record == "archived" else record
        verb = {"suspended": "resume", "archived": "unarchive", "error": "explain"}[record]
        assert error["hint"].startswith(f"hitch {verb} {word} ")
        assert stage.err("send", session.id, "x") == f"hitch: {error['message']}; {error['hint']}\n"


@pytest.mark.ids("D-11", "D-12")
@pytest.mark.parametrize("verb", ["archive", "cancel"])
def test_what_is_archived_cannot_be_put_away_again(stage: Stage, verb: str) -> None:
    hub: HubProcess = stage.hub
    session = stage.ended()
    stage.ground.hitch("archive", "dev")
    words = (verb, session.id) if verb == "archive" else (verb, session.id, "--yes")
    answer = stage.ground.hitch(*words, check=4)
    back, output = f"hitch unarchive {session.id} brings it back", f"hitch logs {session.id} shows its output"
    advice = f"{back}, {output}, hitch rm {session.id} deletes it"
    assert answer.err == f"hitch: dev is archived already; {advice}\n"
    with hub.http() as client:
        refused = client.post(f"/api/sessions/{session.id}/{verb}")
    told = {"code": "wrong_state", "message": "dev is archived already", "hint": advice}
    assert (refused.status_code, refused.json()["error"]) == (409, told)


MOVES = ("archive", "cancel", "restart", "resume")


@pytest.mark.ids("D-4", "D-12")
@pytest.mark.parametrize("record", ["archived", "error"])
def test_every_move_of_a_final_record_is_refused_in_plain_words_and_changes_nothing(stage: Stage, record: str) -> None:
    session = stage.ended()
    stage.record(session, record=record)
    before = (session.story(), session.state_file())
    for move in MOVES:
        said = stage.err(move, session.id, *(["--yes"] if move == "cancel" else []))
        assert said.startswith(f"hitch: dev is {record}"), said
        assert "hitch rm" in said
        assert not any(word in said for word in ("cannot go from", "transition", "cannot become")), said
    assert (session.story(), session.state_file()) == before
