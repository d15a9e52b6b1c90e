"""The launcher of Codex ends as Codex does, and leaves nothing. A small program stands for Codex."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hitchpost.agents import codex_launch
from hitchpost.agents.codex_launch import sorted_out
from tests.support import eventually

STAND_IN = """\
#!{python} -IS
import os, signal, socket, sys, time
if "app-server" in sys.argv:
    if os.path.exists("no-server"):
        sys.exit(1)
    if os.path.exists("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server = socket.socket(socket.AF_UNIX)
    server.bind(sys.argv[-1].removeprefix("unix://"))
    server.listen()
    open("server", "w").write(f"{{os.getpid()}} {{' '.join(sys.argv[1:-1])}}")
    time.sleep(60)
open("screen.new", "w").write(f"{{os.getpid()}} {{' '.join(sys.argv[1:])}}")
os.rename("screen.new", "screen")
exec(os.environ["DOES"])
"""
Launch = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    program = tmp_path / "bin/codex"
    program.parent.mkdir()
    program.write_text(STAND_IN.format(python=os.path.realpath(sys.executable)))
    program.chmod(0o755)
    (tmp_path / "run").mkdir(mode=0o700)

    def start(does: str, *words: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-I", "-S", codex_launch.__file__, str(tmp_path / "run"), "codex", *words]
        env = {"PATH": str(program.parent), "DOES": does}
        return subprocess.Popen(argv, env=env, cwd=tmp_path, stdin=subprocess.DEVNULL)

    return start


def told(path: Path) -> tuple[int, str]:
    pid, _, words = path.read_text().partition(" ")
    return int(pid), words


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize(
    ("does", "status"),
    [
        ("sys.exit(0)", 0),
        ("sys.exit(3)", 3),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
    ],
)
def test_it_ends_as_codex_does_and_its_server_with_it(launch: Launch, tmp_path: Path, does: str, status: int):
    assert launch(does).wait(30) == status
    assert is_gone(told(tmp_path / "server")[0])


def test_a_server_that_does_not_want_to_end_is_ended(launch: Launch, tmp_path: Path):
    (tmp_path / "stubborn").touch()
    assert launch("sys.exit(5)").wait(30) == 5
    assert is_gone(told(tmp_path / "server")[0])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_reaches_codex(launch: Launch, tmp_path: Path, number: signal.Signals):
    launched = launch("signal.signal(signal.SIGINT, signal.SIG_DFL); open('ready', 'w'); time.sleep(60)")
    eventually(lambda: (tmp_path / "ready").exists(), 30)
    launched.send_signal(number)
    assert launched.wait(30) == -number
    assert is_gone(told(tmp_path / "screen")[0])


def test_what_is_killed_takes_everything_with_it(launch: Launch, tmp_path: Path):
    launched = launch("time.sleep(60)")
    eventually((tmp_path / "screen").exists, 30)
    launched.kill()
    launched.wait(30)
    eventually(lambda: is_gone(told(tmp_path / "screen")[0]) and is_gone(told(tmp_path / "server")[0]), 30)


def test_both_are_told_what_concerns_them(launch: Launch, tmp_path: Path):
    launch("", "--no-daemon", "-c", "a=1", "-m", "big", "do this").wait(30)
    address = f"unix://{tmp_path}/run/codex.sock"
    assert told(tmp_path / "server")[1] == '-c a=1 -c model="big" app-server --listen'
    assert told(tmp_path / "screen")[1] == f"--remote {address} -c a=1 -m big do this"


@pytest.mark.parametrize("words", [("--search",), ("exec", "do this"), ("--remote", "ws://other")])
def test_what_needs_no_server_runs_alone_and_in_the_same_process(
    launch: Launch, tmp_path: Path, words: tuple[str, ...]
):
    launched = launch("sys.exit(7)", "--no-daemon", *words)
    assert launched.wait(30) == 7
    assert told(tmp_path / "screen") == (launched.pid, " ".join(("--no-daemon", *words)))
    assert not (tmp_path / "server").exists()


def test_codex_runs_alone_when_the_server_does_not_come(launch: Launch, tmp_path: Path):
    (tmp_path / "no-server").touch()
    assert launch("sys.exit(7)", "--no-daemon", "-m", "big").wait(30) == 7
    assert told(tmp_path / "screen")[1] == "--no-daemon -m big"


def test_a_conversation_that_goes_on_takes_its_permissions_from_the_server():
    words = [
        "--no-daemon",
        "resume",
        "ID",
        "-a",
        "never",
        "--sandbox=read-only",
        "-c",
        "approval_policy=x",
        "-m",
        "big",
    ]
    assert sorted_out(words) == (
        [
            "-c",
            'approval_policy="never"',
            "-c",
            'sandbox_mode="read-only"',
            "-c",
            "approval_policy=x",
            "-c",
            'model="big"',
        ],
        ["resume", "ID", "-m", "big"],
    )
    bypass = "--dangerously-bypass-approvals-and-sandbox"
    assert sorted_out(["fork", "ID", bypass]) == (list(codex_launch.BYPASSED), ["fork", "ID"])
    assert sorted_out([bypass]) == (list(codex_launch.BYPASSED), [bypass])


def test_what_follows_two_dashes_is_a_prompt():
    assert sorted_out(["-m", "big", "--", "--search"]) == (["-c", 'model="big"'], ["-m", "big", "--", "--search"])
