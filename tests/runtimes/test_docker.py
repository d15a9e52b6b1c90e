"""Agents in containers: started, watched, left, restarted and removed, in a real engine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from datetime import datetime, timedelta

import pytest

from hitchpost import wire
from hitchpost.runtimes import engine
from hitchpost.runtimes.container_file import read_box
from hitchpost.terminal import output
from tests.boxes import ECHO, PLAIN, STALE, WITH_PYTHON, Boxed
from tests.ground import NEVER_RAN, Truth, alive, left_with
from tests.repos import Repo
from tests.support import Process, eventually


def becomes(boxed: Boxed, session: Truth, label: str, timeout_s: float = 60) -> None:
    eventually(lambda: boxed.label(session).startswith(label), timeout_s, f"{label}, not {boxed.label(session)}")


@pytest.mark.ids("C70-1", "C70-2", "C70-6", "F64")
@pytest.mark.parametrize("image", [PLAIN, WITH_PYTHON])
def test_an_agent_that_leaves_makes_its_container_stale_and_the_next_run_goes_on_in_it(boxed: Boxed, image: str):
    dev = boxed.run("sh", "-c", ECHO, image=image)
    container = boxed.container(dev)
    assert boxed.label(dev) == "running"
    boxed.ground.hitch("send", "dev", 'hello "world" #{pane_id}; $(x) \\;')
    eventually(lambda: b'<hello "world" #{pane_id}; $(x) \\;>' in dev.output(), what="the echo")
    boxed.ground.hitch("send", "dev", "leave")
    assert dev.ended() == "failed"
    assert dev.exit() == left_with(3)
    assert boxed.label(dev) == STALE
    row = boxed.ground.ps(dev)
    assert (row["sandbox_alive"], row["session_alive"]) == (True, False)
    boxed.ground.hitch("restart", "dev")
    assert boxed.label(dev) == "running"
    assert boxed.container(dev) == container
    assert boxed.engine.containers() == [container]
    boxed.ground.hitch("stop", "dev")
    assert boxed.label(dev) == "stopped"
    assert boxed.engine.containers() == []


@pytest.mark.ids("E-16")
@pytest.mark.parametrize("image", [PLAIN, WITH_PYTHON])
def test_the_permission_mode_of_the_image_holds_unless_the_person_names_another(boxed: Boxed, image: str):
    boxed.engine.load(image)
    made = boxed.engine.docker("create", image, "true").stdout.strip()
    wanted = ("ENV PATH=/workspace:/usr/bin", "ENV CLAUDE_PERMISSION_MODE=bypassPermissions")
    boxed.engine.docker("commit", *(f"--change={line}" for line in wanted), made, "hp-claude")
    boxed.engine.docker("rm", made)
    program = boxed.ground.place / "claude"
    program.write_text('#!/bin/sh\nprintf "<%s>" "$@"; echo .; exec sleep 1000\n')
    program.chmod(0o755)
    hitch = boxed.ground.hitch
    box = ("--runtime", "docker", "--image", "hp-claude", "--network", "none", "--workspace", str(boxed.ground.place))

    def said(*words: str) -> str:
        answer = hitch("run", "claude", "--json", "--name", "dev", *box, *words)
        session = Truth(boxed.ground.home, answer.json()["id"])
        eventually(lambda: session.output().endswith(b".\r\n"), what="its words")
        text = session.output().decode()
        hitch("rm", "--force", "dev")
        return text.splitlines()[-1]

    assert said("--prompt", "go on") == "<--permission-mode><bypassPermissions><go on>."
    assert said("--env", "CLAUDE_PERMISSION_MODE=plan") == "<--permission-mode><plan>."
    assert said("--", "--permission-mode", "default") == "<--permission-mode><default>."
    boxed.engine.docker("rmi", "hp-claude")


@pytest.mark.ids("A22-5", "E-3")
def test_the_exit_is_exact_where_the_image_has_a_python_and_a_shells_where_not(boxed: Boxed):
    killed = boxed.run("sh", "-c", "kill -SEGV $$", image=WITH_PYTHON, name="killed")
    killed.ended()
    assert killed.exit()["signal"] == "SIGSEGV"
    shell = boxed.run("sh", "-c", "kill -SEGV $$", image=PLAIN, name="shell")
    shell.ended()
    assert shell.exit()["code"] == 128 + signal.SIGSEGV
    done = boxed.run("true", image=WITH_PYTHON, name="done")
    done.ended()
    assert (done.state, done.exit()) == ("completed", left_with(0))


def test_awkward_words_reach_the_agent_as_they_are(boxed: Boxed):
    words = ["a b", "", "'", '"', "$HOME", "\\", "\\0101", "line\nend\n", "ü", ";", "x;", "#{pane_id}", "-n", "%s"]
    script = 'for word in "$@"; do printf "[%s]" "$word"; done; echo; sleep 1000'
    dev = boxed.run("sh", "-c", script, "sh", *words)
    wanted = "".join(f"[{word}]" for word in words).replace("\n", "\r\n").encode()
    eventually(lambda: wanted in dev.output(), what=f"{wanted!r}, not {dev.output()!r}")


def test_a_long_paste_arrives_whole(boxed: Boxed):
    dev = boxed.run("sh", "-c", "stty -echo; echo ready; while read -r line; do printf '%s\\n' \"$line\" >> all; done")
    eventually(lambda: b"ready" in dev.output(), what="the agent")
    lines = [f"{number}: " + "word " * 150 + "end" for number in range(40)]
    boxed.ground.hitch("send", "dev", "\n".join(lines))
    wanted = "".join(f"{line}\n" for line in lines)
    file = boxed.ground.place / "all"
    eventually(lambda: file.exists() and len(file.read_text()) >= len(wanted), 60, "all of it")
    assert file.read_text() == wanted


@pytest.mark.ids("F60")
@pytest.mark.parametrize("before", ["running", "stale"])
def test_a_container_removed_by_hand_is_stopped(boxed: Boxed, before: str):
    dev = boxed.run("sh", "-c", ECHO)
    if before == "stale":
        boxed.ground.hitch("send", "dev", "leave")
        dev.ended()
    boxed.engine.docker("rm", "-f", boxed.container(dev))
    assert dev.ended() == "failed"
    assert "stale" not in boxed.label(dev)
    if before == "running":  # nobody is left who could say how it ended, so nobody waits for that
        changed = datetime.fromisoformat(boxed.ground.ps(dev)["state_changed_at"])
        assert changed - datetime.fromisoformat(boxed.ground.ps(dev)["exit"]["ended_at"]) < timedelta(seconds=5)
    status = boxed.ground.hitch("status", "--json").json()
    assert status["counts"] == {"stopped": 1}
    boxed.ground.hitch("restart", "dev")
    assert boxed.label(dev) == "running"


@pytest.mark.ids("F61")
def test_a_paused_container_is_running_and_not_stale(boxed: Boxed):
    dev = boxed.run("sh", "-c", ECHO)
    boxed.engine.pause(boxed.container(dev))
    assert boxed.label(dev) == "running (paused)"
    boxed.engine.docker("unpause", boxed.container(dev))
    assert boxed.label(dev) == "running"


@pytest.mark.ids("F61")
def test_a_paused_session_can_be_stopped(boxed: Boxed):
    dev = boxed.run("sh", "-c", ECHO)
    boxed.engine.pause(boxed.container(dev))
    boxed.ground.hitch("stop", "dev")
    assert dev.state == "stopped"
    assert boxed.engine.containers() == []


@pytest.mark.ids("F9")
def test_what_an_agent_left_in_its_container_is_counted_and_ended_before_the_next_run(boxed: Boxed):
    script = "trap '' HUP; sleep 1000 </dev/null >/dev/null 2>&1 & exit 0"
    dev = boxed.run("sh", "-c", script)
    dev.ended()
    assert dev.exit()["survivors"] == 1
    assert boxed.label(dev) == STALE
    boxed.ground.hitch("restart", "dev")
    dev.ended(2)
    inside = boxed.engine.docker("top", boxed.container(dev), "-eo", "pid,args").stdout
    assert inside.count("sleep 1000") == 1, inside


@pytest.mark.ids("F51")
def test_another_workspace_means_another_container(boxed: Boxed):
    dev = boxed.run("sh", "-c", "touch here; " + ECHO)
    container = boxed.container(dev)
    other = boxed.ground.place.parent / "other"
    other.mkdir()
    boxed.ground.hitch("restart", "dev", "--workspace", other)
    eventually(lambda: (other / "here").exists(), what="the file in the other folder")
    assert boxed.container(dev) != container
    assert boxed.engine.containers() == [boxed.container(dev)]


def test_a_container_that_nobody_wrote_down_is_found_by_its_label(boxed: Boxed):
    """As after a kill between the engine's answer and our note of it."""
    dev = boxed.run("sh", "-c", ECHO)
    box = json.loads((dev.folder / "box.json").read_bytes())
    (dev.folder / "box.json").write_text(json.dumps({"schema": 1, "engine": box["engine"]}))
    assert boxed.label(dev) == "running"
    boxed.ground.hitch("rm", "--force", "dev")
    assert boxed.engine.containers() == []


@pytest.mark.ids("F62", "F63")
def test_an_engine_that_hangs_or_ends_changes_nothing_about_what_is_known(boxed: Boxed):
    dev = boxed.run("sh", "-c", ECHO)
    gone = boxed.run("sh", "-c", ECHO, name="gone")
    boxed.engine.signal(signal.SIGSTOP)
    try:
        boxed.ground.hitch("send", "dev", "still here")
        eventually(lambda: b"<still here>" in dev.output(), what="an echo without the engine")
        assert boxed.label(dev) == "running"
        boxed.ground.hitch("send", "gone", "leave")
        gone.ended()
        assert boxed.label(gone) == STALE
    finally:
        boxed.engine.signal(signal.SIGCONT)
    boxed.engine.kill()
    assert boxed.label(dev) == "running"
    refused = boxed.ground.hitch("stop", "gone", check=1)
    assert "container engine" in refused.err
    boxed.engine.start()
    boxed.ground.hitch("send", "dev", "back")
    eventually(lambda: b"<back>" in dev.output(), what="an echo after the engine's restart")
    boxed.ground.hitch("stop", "dev", "gone")
    assert boxed.engine.containers() == []


@pytest.mark.ids("F66")
def test_what_the_image_lacks_is_said_and_no_container_stays(boxed: Boxed):
    run = ("run", "--runtime", "docker", "--workspace", boxed.ground.place, "--network", "none")
    missing = boxed.ground.hitch(*run, "--image", "no-such-image", "--name", "a", "--", "sh", check=1)
    assert "the engine has no image no-such-image; build one" in missing.err
    for image in (PLAIN, WITH_PYTHON):
        boxed.engine.load(image)
        refused = boxed.ground.hitch(*run, "--image", image, "--", "no-such-agent", check=1)
        assert "no-such-agent" in refused.err
    assert boxed.engine.containers() == []


@pytest.mark.ids("F66")
@pytest.mark.parametrize("program", ["sh", "tmux", "cat", "sleep"])
def test_a_program_that_the_image_lacks_is_named_at_once(boxed: Boxed, program: str):
    words = (
        "run",
        "--runtime",
        "docker",
        "--image",
        boxed.engine.without(program),
        "--network",
        "none",
        "--name",
        "dev",
    )
    refused = boxed.ground.hitch(*words, "--workspace", boxed.ground.place, "--", "ls", check=1)
    assert f"{program} is not in the image" in refused.err
    assert set(boxed.labels().values()) == {f"failed: {program} is not in the image"}
    assert boxed.engine.containers() == []


@pytest.mark.parametrize("program", ["mv", "mkdir"])
def test_other_programs_are_not_needed(boxed: Boxed, program: str):
    dev = boxed.run("sh", "-c", "exit 3", image=boxed.engine.without(program))
    dev.ended()
    assert boxed.label(dev) == STALE
    assert dev.exit() == left_with(3)


@pytest.mark.ids("S12", "E-16")
def test_a_container_has_no_more_than_it_needs(boxed: Boxed, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTHER_SECRET", "do-not-pass")
    monkeypatch.setenv("API_KEY", "do-pass")
    config = boxed.ground.place.parent / "settings"
    config.mkdir()
    (config / "rules").write_text("be kind")
    script = "echo key=$API_KEY other=$OTHER_SECRET; cat /config/rules; touch /config/x || echo read-only; "
    script += "pwd; touch made; grep Cap /proc/self/status; grep NoNew /proc/self/status; sleep 1000"
    options = ("--env", "API_KEY", "--memory", "64m", "--cpus", "0.5", "--config", str(config))
    dev = boxed.run("sh", "-c", script.replace("grep Cap", "head -60").split("; grep NoNew")[0], options=options)
    eventually(lambda: b"/workspace" in dev.output(), what="its words")
    said = dev.output()
    assert b"key=do-pass other=\r\n" in said
    assert b"be kind" in said
    assert b"read-only" in said
    eventually(lambda: (boxed.ground.place / "made").exists(), what="the file in the workspace")
    seen = boxed.engine.inspect(boxed.container(dev))
    text = json.dumps(seen)
    assert "do-pass" not in text
    assert "do-not-pass" not in text
    host = seen["HostConfig"]
    assert host["CapDrop"] == ["ALL"]
    assert "no-new-privileges" in host["SecurityOpt"]
    assert (host["Memory"], host["NanoCpus"], host["Privileged"]) == (64 << 20, 500_000_000, False)
    assert host["PidsLimit"] > 0
    assert seen["Name"] == f"/agent-{dev.id}"
    assert not any("docker.sock" in mount["Source"] for mount in seen["Mounts"])
    assert seen["Config"]["User"] == f"{os.getuid()}:{os.getgid()}"


@pytest.mark.ids("S12")
def test_the_engines_socket_does_not_get_inside(boxed: Boxed):
    socket = boxed.engine.url.removeprefix("unix://")
    words = ("run", "--runtime", "docker", "--image", PLAIN, "--mount", f"{socket}:/run/x.sock", "--", "sh")
    assert "socket" in boxed.ground.hitch(*words, check=4).err


@pytest.mark.ids("S12")
def test_a_container_that_only_has_the_name_is_not_ours(boxed: Boxed):
    dev = boxed.run("sh", "-c", ECHO)
    boxed.ground.hitch("stop", "dev")
    boxed.engine.docker("run", "-d", "--network", "none", "--name", f"agent-{dev.id}", PLAIN, "sleep", "infinity")
    refused = boxed.ground.hitch("restart", "dev", check=1)
    assert f"agent-{dev.id}" in refused.err
    assert len(boxed.engine.containers()) == 1


def test_an_agent_whose_keeper_was_killed_never_runs_twice(boxed: Boxed):
    dev = boxed.run("sh", "-c", ECHO)
    agent = dev.agent_pid()
    dev.kill_keeper()
    boxed.ground.hitch("restart", "dev")
    assert dev.exit()["intent"] == "restart"
    assert dev.agent_pid(2) != agent
    assert not os.path.exists(f"/proc/{agent}")
    boxed.ground.hitch("rm", "--force", "dev")
    assert boxed.engine.containers() == []


def test_stop_ends_what_does_not_want_to_end(boxed: Boxed):
    dev = boxed.run("sh", "-c", "trap '' TERM HUP INT; while :; do sleep 1; done")
    boxed.ground.hitch("stop", "dev", "--grace", "0.2")
    assert dev.state == "stopped"
    assert dev.exit()["intent"] == "user"
    assert boxed.engine.containers() == []


@pytest.mark.ids("A22-1")
def test_a_tmux_that_is_killed_inside_ends_the_run(boxed: Boxed):
    dev = boxed.run("sh", "-c", "trap '' HUP; sleep 1000", image=WITH_PYTHON)
    boxed.engine.docker("exec", boxed.container(dev), "tmux", "kill-server")
    assert dev.ended() == "failed"
    assert boxed.label(dev) == STALE
    assert dev.exit()["error"] == "tmux session no longer exists"


@pytest.mark.ids("F20", "C70-2")
@pytest.mark.parametrize("image", [PLAIN, WITH_PYTHON])
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "keeper lost"])
def test_an_agent_that_ends_well_because_its_tmux_was_killed_has_not_completed(boxed: Boxed, image: str, kept: bool):
    dev = boxed.run("sh", "-c", "while read -r line; do :; done; exit 0", image=image)
    agent = dev.agent_pid()
    if not kept:
        dev.kill_keeper()
    boxed.engine.docker("exec", boxed.container(dev), "tmux", "kill-server")
    eventually(lambda: not alive(agent), what="the end of the agent")
    eventually(lambda: boxed.label(dev) == STALE, what="stale")
    assert boxed.ground.ps(dev)["state"] == "failed"
    if kept:
        assert dev.exit()["error"] == "tmux session no longer exists"


def test_output_comes_back_when_who_brings_it_is_killed_inside(boxed: Boxed):
    dev = boxed.run("sh", "-c", ECHO)
    boxed.ground.hitch("send", "dev", "before")
    eventually(lambda: b"<before>" in dev.output(), what="the echo")
    first = dev.output()
    [cat] = [one for one in boxed.processes(dev) if one.argv == ("cat",)]
    os.kill(cat.pid, signal.SIGKILL)
    eventually(lambda: Process.read(cat.pid) is None, what="the end of cat")

    def echoed() -> bool:
        boxed.ground.hitch("send", "dev", "after")
        return b"<after>" in dev.output()

    eventually(echoed, what="the echo after it")
    assert dev.output().startswith(first)
    moments = output.moments(str(dev.run() / "output"))
    assert [moment.value for moment in moments if moment.kind == wire.AT_GAP] == [len(first)]
    boxed.ground.hitch("send", "dev", "leave")
    assert dev.ended() == "failed"
    assert dev.exit()["code"] == 3
    assert dev.exit()["lost_output_bytes"] is None
    assert boxed.ground.hitch("logs", "dev", "--json").json()["lost"] is None
    facts = boxed.ground.hitch("explain", "dev", "--json").json()["facts"]
    assert [fact["value"] for fact in facts if fact["fact"] == "lost output"] == ["unknown: nobody could count it"]


def test_nothing_that_a_start_leaves_running_keeps_the_engine_waiting(boxed: Boxed):
    """Whoever holds a pipe of the engine's delays what is started next in the container, by four seconds."""
    dev = boxed.run("sh", "-c", ECHO)
    [stays] = [one.pid for one in boxed.processes(dev) if "/hitchpost/bin/begin.sh" in one.argv]
    held = [os.readlink(f"/proc/{stays}/fd/{fd}") for fd in os.listdir(f"/proc/{stays}/fd")]
    assert [what for what in held if what.startswith("pipe:")] == []


def test_an_exit_that_nobody_can_tell_any_more_is_not_waited_for(boxed: Boxed):
    dev = boxed.run("sh", "-c", ECHO)
    [waiter] = [one for one in boxed.processes(dev) if "/hitchpost/bin/agent.sh" in one.argv and "tmux" not in one.argv]
    os.kill(waiter.pid, signal.SIGKILL)
    with suppress(ProcessLookupError):  # it was hung up
        os.kill(dev.agent_pid(), signal.SIGKILL)
    assert dev.ended(timeout_s=5) == "failed"
    assert boxed.label(dev) == STALE
    assert dev.exit() == NEVER_RAN


@pytest.mark.ids("S12")
def test_links_planted_from_inside_lead_nowhere(boxed: Boxed):
    """What the container shares with us is full of traps: its next run must not read or write through them."""
    secret, victim = boxed.ground.place.parent / "secret", boxed.ground.place.parent / "victim"
    secret.write_text("wait 0")
    victim.write_text("mine")
    traps = "for name in exit_status pid failed argv; do ln -s {0} $PWD/$name; done; ln -s {1} keys; ln -s {1} out"
    script = "cd /hitchpost/run; mkdir 2 2-x; for at in 1-* 2 2-x; do cd $at; rm -f keys exit_status; "
    script += traps.format(secret, victim) + "; cd ..; done; exit 5"
    dev = boxed.run("sh", "-c", script)
    dev.ended()
    boxed.ground.hitch("restart", "dev", check=False)
    assert victim.read_text() == "mine"
    assert secret.read_text() == "wait 0"


def test_git_works_in_a_worktree_and_its_hooks_stay_as_they_are(boxed: Boxed, repo: Repo):
    script = "git -c user.name=a -c user.email=a@b commit --allow-empty -m 'from inside' && echo done; "
    script += f"echo evil > {repo.path}/.git/hooks/post-checkout; git config core.x y; echo over; sleep 1000"
    words = ("run", "--json", "--runtime", "docker", "--image", PLAIN, "--network", "none", "--branch", "fix")
    script = "rm -f .git && echo gone; " + script
    dev = Truth(boxed.ground.home, boxed.ground.hitch(*words, "--", "sh", "-c", script, cwd=repo.path).json()["id"])
    eventually(lambda: b"over" in dev.output(), what="the end of the script")
    assert b"done" in dev.output()
    assert b"gone" not in dev.output()
    boxed.ground.hitch("workspace", "ls")
    assert repo.git("config", "core.x", check=False) == ""
    assert "from inside" in repo.git("log", "--oneline", "fix")
    assert not (repo.path / ".git/hooks/post-checkout").exists()


@pytest.mark.parametrize("how", ["--here", "--exclusive"])
def test_in_a_main_worktree_settings_and_hooks_stay_as_they_are(boxed: Boxed, repo: Repo, how: str):
    script = "echo evil > .git/hooks/post-checkout; git config core.x y; "
    script += "git -c user.name=a -c user.email=a@b commit --allow-empty -m inside && echo done; sleep 1000"
    words = ("run", "--json", "--runtime", "docker", "--image", PLAIN, "--network", "none", how)
    dev = Truth(boxed.ground.home, boxed.ground.hitch(*words, "--", "sh", "-c", script, cwd=repo.path).json()["id"])
    eventually(lambda: b"done" in dev.output(), what=f"the commit, not {dev.output()!r}")
    boxed.ground.hitch("diff", dev.id)
    assert repo.git("log", "--format=%s", "-1") == "inside"
    assert repo.git("config", "core.x", check=False) == ""
    assert not (repo.path / ".git/hooks/post-checkout").exists()


@pytest.mark.ids("C70-3", "F63")
def test_a_probe_that_cannot_be_made_says_neither_alive_nor_dead(boxed: Boxed):
    dev = boxed.run("sh", "-c", ECHO)
    box = read_box(str(dev.folder))
    assert box is not None
    assert engine.ask(box.engine, lambda docker: engine.session_is_alive(docker, box)) is True
    boxed.engine.docker("exec", box.id, "mv", "/usr/bin/tmux", "/usr/bin/away")
    with pytest.raises(engine.EngineFailed, match="cannot query tmux"):
        engine.ask(box.engine, lambda docker: engine.session_is_alive(docker, box))


def test_a_removal_that_is_interrupted_leaves_the_container_known(boxed: Boxed):
    dev = boxed.run("sh", "-c", ECHO)
    boxed.ground.hitch("send", "dev", "leave")
    dev.ended()

    boxed.engine.signal(signal.SIGSTOP)
    try:
        with subprocess.Popen([*boxed.ground.hitch.command, "stop", "dev"], stderr=subprocess.DEVNULL) as command:
            eventually((dev.folder / "box-going.json").exists, what="the removal")
            command.send_signal(signal.SIGINT)
            assert command.wait(20) != 0
    finally:
        boxed.engine.signal(signal.SIGCONT)
    assert boxed.label(dev) == STALE


def test_a_container_is_removed_from_the_engine_that_it_was_made_in(boxed: Boxed):
    """Also when only that was written down: somebody was killed before the rest was known."""
    dev = boxed.run("sh", "-c", ECHO)
    boxed.ground.hitch("send", "dev", "leave")
    dev.ended()
    path = dev.folder / "box.json"
    known = json.loads(path.read_bytes())
    path.write_text(json.dumps({"schema": known["schema"], "engine": known["engine"]}))
    boxed.ground.hitch("rm", "dev", env={"DOCKER_HOST": "unix:///nowhere.sock"})
    assert boxed.engine.containers() == []


def test_the_engine_is_not_asked_for_its_version(boxed: Boxed):
    """Podman takes most of a second for the answer."""
    log = boxed.engine.folder / "log"
    before = log.stat().st_size
    boxed.run("sleep", "1000")
    boxed.ground.hitch("rm", "--force", "dev")
    asked = log.read_bytes()[before:].decode()
    assert "Calling DELETE /v1." in asked
    assert "/version" not in asked


def test_what_was_written_down_about_an_older_container_does_not_end_the_newer_one(boxed: Boxed):
    dev = boxed.run("sh", "-c", ECHO)
    known = json.loads((dev.folder / "box.json").read_bytes())
    noted = boxed.ground.home / "containers" / f"{dev.id}.json"
    noted.parent.mkdir()
    noted.write_text(json.dumps({**known, "id": "0" * 64}))
    assert f"removed the container of {dev.id}" in boxed.ground.hitch("doctor", "--fix", check=False).out
    assert not noted.exists()
    assert boxed.label(dev) == "running"
    assert boxed.engine.containers() == [known["id"]]


@pytest.mark.ids("C14")
def test_a_session_whose_folder_was_deleted_is_found_and_ended_with_its_container(boxed: Boxed) -> None:
    dev = boxed.run("sh", "-c", ECHO)
    container = boxed.container(dev)
    shutil.rmtree(dev.folder)
    assert f"the folder of {dev.id} was deleted" in boxed.ground.hitch("doctor", check=False).out
    assert boxed.engine.containers() == [container]
    told = boxed.ground.hitch("doctor", "--fix", check=False).out
    assert f"ended the keeper and the agent of {dev.id}" in told
    assert boxed.engine.containers() == []
    assert "deleted" not in boxed.ground.hitch("doctor", check=False).out
