"""The tmux runtime: the agent below a keeper in a pane, ADR 22's three objects, and the shell that stays."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hitchpost.ops.sessions.restart import restart
from hitchpost.ops.sessions.stop import stop
from hitchpost.runtimes.link import Link
from hitchpost.runtimes.tmux import version_of
from hitchpost.settings import Settings
from tests.ground import Ground, Truth, alive, died_of, left_with
from tests.repos import Repo
from tests.support import Hitch, Process, eventually
from tests.tmuxes import Panes


@pytest.mark.ids("A22-1", "A22-4", "A22-8", "F1")
def test_an_agent_that_ends_well_is_completed_and_a_shell_stays_in_the_pane(panes: Panes) -> None:
    dev = panes.sh("echo hello; exit 0")
    assert panes.final(dev) == "completed"
    assert dev.exit() == left_with(0)
    assert dev.exit_status() == "0\n"
    assert dev.output() == b"hello\r\n"
    (_, dead, pid) = panes.panes(dev)[0]
    assert not dead
    eventually(lambda: Process.read(pid).argv[0].endswith("sh"), what="the shell")  # type: ignore[union-attr]
    assert pid == dev.keeper_pid(), "the same process: first the keeper, then the shell"
    screen = panes.shows(dev, "[completed]")
    assert screen.splitlines()[0] == "hello"


@pytest.mark.ids("A22-5", "A22-8", "F2")
def test_an_agent_that_ends_with_a_code_is_failed_with_adr_22s_words(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("exit 7")
    assert panes.final(dev) == "failed"
    assert dev.exit_status() == "7\n"
    assert ground.ps(dev)["label"] == "failed: command exited with code 7"


@pytest.mark.ids("F3", "F4", "A22-8")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_death_by_signal_is_told_exactly(panes: Panes, ground: Ground, number: signal.Signals) -> None:
    ground.configure("")
    dev = panes.sh(f"ulimit -c 0; kill -{int(number)} $$")
    assert panes.final(dev) == "failed"
    assert dev.exit() == died_of(number)
    assert dev.exit_status() == f"{128 + number}\n"
    assert ground.ps(dev)["label"] == f"failed: command killed by {number.name}"


@pytest.mark.ids("A22-1", "A22-7")
def test_explain_tells_of_the_three_objects_one_by_one(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("until test -e go; do sleep 0.02; done")

    def objects() -> dict[str, str]:
        facts = ground.hitch("explain", dev.id, "--json").json()["facts"]
        return {one["fact"]: one["value"] for one in facts if one["fact"] in ("tmux session", "shell", "command")}

    server = panes.server(dev)
    assert objects() == {
        "tmux session": f"open (server {server})",
        "shell": "running (the keeper)",
        "command": "running",
    }
    (ground.place / "go").touch()
    panes.final(dev)
    assert objects() == {
        "tmux session": f"open (server {server})",
        "shell": "running (the user's own now)",
        "command": "finished",
    }
    panes.shows(dev, "[completed]")
    panes.tmux(dev, "send-keys", "exit", "Enter")
    eventually(lambda: not alive(server), what="the end of the server")
    assert objects() == {"tmux session": "closed", "shell": "exited", "command": "finished"}
    assert ground.ps(dev)["status"] == "completed", "the shell that leaves afterwards changes nothing"


@pytest.mark.ids("A22-6")
def test_output_that_changes_is_working_and_none_is_idle(panes: Panes, ground: Ground) -> None:
    settings = Settings(quiet_s=0.2)
    busy = panes.sh("while true; do echo x; sleep 0.02; done", settings=settings)
    quiet = panes.sh("sleep 1000", settings=settings)
    eventually(lambda: ground.ps(busy)["attention"] == "working")
    eventually(lambda: ground.ps(quiet)["attention"] == "idle")
    assert ground.ps(busy)["attention"] == "working"


def test_keys_typed_into_the_pane_reach_the_agent_and_the_size_follows(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("stty size; read line; echo got:$line; stty size; sleep 1000")
    panes.shows(dev, "24 80")
    panes.tmux(dev, "resize-window", "-x", "100", "-y", "40")
    eventually(lambda: _size(dev.agent_pid()) == (40, 100), what="the new size")
    panes.tmux(dev, "send-keys", "-l", "häßlich $(x) #{y}")
    panes.tmux(dev, "send-keys", "Enter")
    panes.shows(dev, "got:häßlich $(x) #{y}")
    panes.shows(dev, "40 100")


def _size(agent: int) -> tuple[int, int]:
    fd = os.open(f"/proc/{agent}/fd/0", os.O_RDONLY | os.O_NOCTTY)
    try:
        size = os.get_terminal_size(fd)
    finally:
        os.close(fd)
    return size.lines, size.columns


def test_a_prompt_is_pasted_byte_by_byte_and_shown_in_the_pane(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("stty -echo; echo ready; cat > got; :")
    panes.shows(dev, "ready")
    text = "first #(touch canary) #{pid}\nsecond $(touch canary) `touch canary` ; -x 'quoted' \"twice\" ünï"
    ground.hitch("send", dev.id, text)
    eventually(lambda: (ground.place / "got").read_text() == text + "\n")
    assert not (ground.place / "canary").exists()
    stop(str(ground.home), dev.id, actor="test")


def test_terminal_queries_are_answered_by_tmux_even_when_nobody_looks(panes: Panes, ground: Ground) -> None:
    dev = panes.sh(r"stty raw -echo; printf '\033[6n'; dd bs=1 count=6 of=answer 2>/dev/null; sleep 1000")
    eventually(lambda: (ground.place / "answer").exists() and (ground.place / "answer").read_bytes() == b"\x1b[1;1R")
    assert b"\x1b[6n" in dev.output()


def test_reports_of_the_agent_are_read_from_its_own_terminal(panes: Panes, ground: Ground) -> None:
    dev = panes.sh(r"printf '\033]7501;state=blocked\033\\'; sleep 1000")
    eventually(lambda: ground.ps(dev)["attention"] == "blocked")


@pytest.mark.ids("F9")
def test_stop_leaves_no_process_behind_neither_tmux_nor_its_shell(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("setsid sleep 1001 & (setsid nohup sleep 1002 &) ; trap '' TERM; sleep 1003; sleep 1004")
    eventually(lambda: len([one for one in ground.processes() if "sleep" in one.argv[0]]) == 3)
    stop(str(ground.home), dev.id, grace_s=0.2, actor="test")
    assert dev.state == "stopped"
    assert dev.exit()["intent"] == "user"
    assert ground.processes() == []


@pytest.mark.parametrize("verb", ["stop", "archive"])
def test_the_shell_of_a_command_that_ended_by_itself_goes_when_somebody_says_so(
    panes: Panes, ground: Ground, verb: str
) -> None:
    dev = panes.sh("exit 0")
    panes.shows(dev, "[completed]")
    assert [dead for _, dead, _ in panes.panes(dev)] == [False]
    ground.hitch(verb, dev.id)
    assert ground.processes() == []
    assert dev.state == "completed"


def test_restart_uses_the_pane_again_and_keeps_a_shell_that_is_busy(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("echo run; read line")
    first = panes.panes(dev)
    restart(str(ground.home), dev.id, Settings(), caller=Hitch.environment(), actor="test")
    assert dev.state_file()["run"] == 2
    assert [pane for pane, _, _ in panes.panes(dev)] == [pane for pane, _, _ in first]
    panes.tmux(dev, "send-keys", "Enter")
    panes.shows(dev, "[completed]")
    panes.tmux(dev, "send-keys", "sleep 1234", "Enter")
    eventually(lambda: [one for one in ground.processes() if one.argv == ("sleep", "1234")])
    restart(str(ground.home), dev.id, Settings(), caller=Hitch.environment(), actor="test")
    assert len(panes.panes(dev)) == 2
    assert [one.argv for one in ground.processes() if one.argv == ("sleep", "1234")]


def test_the_shell_is_the_users_in_the_workspace_without_the_runs_marks(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("exit 0", env={"CANARY": "here"})
    panes.shows(dev, "[completed]")
    panes.tmux(dev, "send-keys", "env > seen.new && pwd -P >> seen.new && mv seen.new seen", "Enter")
    eventually((ground.place / "seen").exists)
    seen = (ground.place / "seen").read_text().splitlines()
    assert "CANARY=here" in seen
    assert seen[-1] == os.path.realpath(ground.place)
    assert not [line for line in seen if line.startswith(("HITCHPOST_SESSION", "HITCHPOST_RUN", "HITCHPOST_KEEPER"))]
    assert f"TMUX={dev.folder}/tmux.sock,{panes.server(dev)},0" in seen


def test_no_environment_value_is_in_the_server_or_in_any_command_line(panes: Panes) -> None:
    dev = panes.sh("sleep 1000", env={"API_TOKEN": "canary-7361"})
    server, keeper = panes.server(dev), dev.keeper_pid()
    for pid in (server, keeper):
        for name in ("environ", "cmdline"):
            assert b"canary-7361" not in Path(f"/proc/{pid}/{name}").read_bytes()
    assert "canary-7361" not in panes.tmux(dev, "show-environment", "-g")
    assert b"canary-7361" in Path(f"/proc/{dev.agent_pid()}/environ").read_bytes()


def test_another_client_may_look_type_and_own_the_size(panes: Panes, ground: Ground) -> None:
    dev = panes.sh("stty -echo; while read line; do echo got:$line; done")
    with Link.connect(str(dev.run()), role="attach", cols=60, rows=20) as link:
        link.send(b"I", b"from the side\r")
        eventually(lambda: b"got:from the side" in dev.output())
        assert _size(dev.agent_pid()) == (20, 60)
        panes.shows(dev, "got:from the side")
        panes.tmux(dev, "send-keys", "back", "Enter")
        eventually(lambda: b"got:back" in dev.output())
        assert _size(dev.agent_pid()) == (24, 80)


def test_an_agent_that_cannot_start_leaves_no_server(panes: Panes, ground: Ground) -> None:
    answer = ground.hitch("run", "--runtime", "tmux", "--name", "dev", "--", "no-such-program", check=1)
    assert "program not found on PATH: no-such-program" in answer.err
    eventually(lambda: not [one for one in ground.processes() if "tmux" in one.argv[0]], what="no server")
    ground.hitch("rm", "dev")


def test_a_home_with_a_path_too_long_for_a_socket_works(panes: Panes, ground: Ground, monkeypatch) -> None:
    home = ground.home / ("long-" * 20) / "home"
    home.parent.mkdir()
    monkeypatch.setenv("HITCHPOST_HOME", str(home))
    deep = Panes(Ground(home, ground.place, ground.watch, ground.hitch))
    try:
        dev = deep.sh("echo deep; sleep 1000")
        deep.shows(dev, "deep")
    finally:
        deep.close()


@pytest.mark.parametrize(
    ("said", "version"),
    [("tmux 3.3a\n", (3, 3)), ("tmux next-3.6\n", (3, 6)), ("tmux 1.8", (1, 8)), ("tmux master\n", None), ("", None)],
)
def test_versions_are_read(said: str, version: tuple[int, int] | None) -> None:
    assert version_of(said) == version


@pytest.mark.ids("F54", "A31-13")
def test_a_workspace_is_leased_by_the_keeper_in_the_pane_and_by_nobody_after_it(
    panes: Panes, ground: Ground, repo: Repo
) -> None:
    words = ("run", "--json", "--runtime", "tmux", "--branch", "fix#(touch${IFS}canary)")
    with working_in(repo.path):
        dev = Truth(ground.home, ground.hitch(*words, "--", "sleep", "1000").json()["id"])
        panes.sessions.append(dev)
        refused = ground.hitch(*words, "--", "sleep", "1000", check=4).err
        assert f"is in use by {ground.ps(dev)['name']}" in refused
        stop(str(ground.home), dev.id, actor="test")
        again = Truth(ground.home, ground.hitch(*words, "--", "sleep", "1000").json()["id"])
        panes.sessions.append(again)
    assert again.state == "running"
    assert not list(ground.watch.scratch.rglob("canary"))


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
