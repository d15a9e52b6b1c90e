"""Whatever happens to a command, it ends with one line and an exit code, and never with a traceback."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.places import new_session
from tests.ground import Ground
from tests.support import Hitch, Process, eventually

READERS = (
    ("--version",),
    ("--help",),
    ("ps",),
    ("ps", "--json"),
    ("explain", "dev"),
    ("explain", "dev", "--json"),
    ("logs", "dev", "--json"),
    ("status",),
    ("services", "--json"),
    ("doctor",),
    ("agents",),
    ("token", "ls", "--json"),
    ("workspace", "ls", "--json"),
    ("prune", "--dry-run", "--json"),
    ("completion", "bash"),
    ("workspace", "create", "--help"),
)


def shell(
    ground: Ground, words: tuple[str, ...], redirections: str, *, unbuffered: str = ""
) -> subprocess.CompletedProcess[str]:
    line = f"{shlex.join((*ground.hitch.command, *words))} {redirections}"
    env = {**Hitch.environment(), "PYTHONUNBUFFERED": unbuffered}
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=env, timeout=60, check=False)


@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_output_that_cannot_be_written_is_one_line_and_exit_code_1(ground: Ground, words: tuple[str, ...]):
    new_session(ground.home, ground.place, name="dev")
    for unbuffered in ("", "1"):
        done = shell(ground, words, ">/dev/full", unbuffered=unbuffered)
        assert (done.returncode, done.stderr) == (1, "hitch: cannot write the output: No space left on device\n")


@pytest.mark.parametrize("redirections", [">&-", "2>&-", "<&-", ">&- 2>&- <&-", "2>/dev/full"])
@pytest.mark.parametrize("words", [("ps",), ("explain", "dev"), ("send", "dev", "-"), ("explain", "nobody")])
def test_descriptors_that_are_closed_or_full_change_nothing_else(
    ground: Ground, words: tuple[str, ...], redirections: str
):
    new_session(ground.home, ground.place, name="dev")
    codes = {"send": 4, "explain": 3 if words[-1] == "nobody" else 0, "ps": 0}
    done = shell(ground, words, redirections)
    assert done.returncode == codes[words[0]]
    assert "Traceback" not in done.stderr + done.stdout


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e308", "-1", "x", ""])
@pytest.mark.parametrize(
    "words",
    [
        ("wait", "dev", "--timeout"),
        ("send", "dev", "text", "--wait", "--timeout"),
        ("stop", "dev", "--grace"),
        ("replay", "dev", "--speed"),
        ("replay", "dev", "--from"),
        ("replay", "dev", "--idle-limit"),
        ("run", "--cpus"),
    ],
    ids=" ".join,
)
def test_a_number_that_no_clock_can_measure_is_a_usage_error(hitch: Hitch, words: tuple[str, ...], number: str):
    answer = hitch.here(*words, number, check=2)
    assert answer.err.startswith("Usage: hitch ")
    assert f"Invalid value for '{words[-1]}'" in answer.err


@pytest.mark.parametrize(
    "words", [("wait", "dev"), ("send", "dev", "x", "--wait"), ("stop", "--grace", "1000", "dev")], ids=" ".join
)
def test_ctrl_c_is_exit_code_130_and_says_nothing(ground: Ground, words: tuple[str, ...]):
    dev = ground.begin_sh("trap '' TERM HUP; echo ready; while :; do cat; sleep 0.1; done", name="dev")
    eventually(lambda: b"ready" in dev.output(), what="the agent's first line")
    with subprocess.Popen(
        [*ground.hitch.command, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=Hitch.environment(),
    ) as command:
        process = Process.read(command.pid)
        assert process is not None
        eventually(lambda: _waits(command.pid), 60, what="the command to wait")
        command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=60)
    assert (command.returncode, err) == (130, "")
    assert out in ("", "sent to dev\n")
    ground.hitch("stop", "--now", "dev")


def _waits(pid: int) -> bool:
    """Whether the command has a connection to a keeper."""
    names = []
    for entry in os.listdir(f"/proc/{pid}/fd"):
        try:
            names.append(os.readlink(f"/proc/{pid}/fd/{entry}"))
        except OSError:
            continue
    return any(name.startswith("socket:") for name in names)


BUG = "import hitchpost.cli.agents as it; it.command.callback = lambda **_: {}['x\\x1b']; "
CALL = "from hitchpost.cli.main import main; main()"


def with_a_bug(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BUG + CALL, "agents"], capture_output=True, text=True, env=env, check=False
    )


def test_a_bug_is_one_line_and_its_traceback_is_in_a_file(home: Path):
    env = {name: value for name, value in Hitch.environment().items() if name != "HITCHPOST_DEBUG"}
    done = with_a_bug(env)
    log = home / "bugs.log"
    line = f"hitch: internal error: KeyError: 'x\\x1b' (this is a bug; details in {log})\n"
    assert (done.returncode, done.stdout, done.stderr) == (70, "", line)
    assert "Traceback (most recent call last):" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600
    size = log.stat().st_size
    with_a_bug(env)
    assert log.stat().st_size == 2 * size, "the file tells of each"


def test_a_bug_in_a_home_that_is_not_there_makes_none(home: Path):
    env = {name: value for name, value in Hitch.environment().items() if name != "HITCHPOST_DEBUG"}
    done = with_a_bug({**env, "HITCHPOST_HOME": str(home / "none")})
    told = "hitch: internal error: KeyError: 'x\\x1b' (this is a bug; HITCHPOST_DEBUG=1 shows where)\n"
    assert (done.returncode, done.stderr) == (70, told)
    assert list(home.iterdir()) == []


def test_who_looks_for_bugs_sees_them(home: Path):
    assert "Traceback (most recent call last):" in with_a_bug(Hitch.environment()).stderr


SETTINGS = {
    "no toml": b"grace_s = ",
    "no text": b'image = "\xff\xfe"',
    "nul": b"\x00",
    "unknown key": b"graces = 1",
    "a text for a number": b'grace_s = "10"',
    "not a number": b"grace_s = nan",
    "without end": b"quiet_s = inf",
    "more than a clock has": b"reap_idle_minutes = 1e308",
    "a huge number": b"log_cap_mib = 99999999999999999999999999999",
    "true": b"pids_max = true",
    "a number for a text": b"image = 1",
    "a list for a table": b"env = []",
    "a number in a table": b"env = {A = 1}",
    "nul in a value": b'env = {A = "a\\u0000b"}',
    "a name that is none": b'env = {"A=B" = "x"}',
    "a text for a list": b'env_files = "x"',
    "an env file that is not there": b'env_files = ["/nonexistent"]',
    "an env file that is a folder": b'env_files = ["/tmp"]',
    "an env file with a nul": b'env_files = ["\\u0000"]',
    "an env file with a nul in it": b'env_files = ["nul.env"]',
    "deep": b"env = " + b"[" * 5000,
}


@pytest.mark.parametrize("text", SETTINGS.values(), ids=SETTINGS)
def test_wrong_settings_are_told_and_nothing_is_started(ground: Ground, text: bytes):
    new_session(ground.home, ground.place, name="dev")
    ground.configure("")
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "hitchpost" / "config.toml"
    config.write_bytes(text.replace(b"nul.env", os.fsencode(ground.place / "nul.env")))
    (ground.place / "nul.env").write_bytes(b"A=a\0b")
    for words in (("run", "--", "true"), ("restart", "dev"), ("resume", "dev")):
        answer = ground.hitch.here(*words, check=2)
        assert answer.err.startswith("hitch: "), words
        assert answer.err.count("\n") == 1, words
    assert [one["state"] for one in ground.hitch("ps", "--json").json()] == ["created"]


def test_settings_that_are_a_folder_or_may_not_be_read_are_told(ground: Ground):
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "hitchpost" / "config.toml"
    config.mkdir(parents=True)
    assert (
        ground.hitch("run", "--", "true", check=2).err
        == f"hitch: cannot read {config}: expected a file, but got a link or a folder\n"
    )
