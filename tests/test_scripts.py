"""The scripts: each says what it does when it is asked, and does nothing then."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.ground import Ground

SCRIPTS = Path(__file__).parents[1] / "script"
WITHOUT_ARGUMENTS = ("audit", "lint", "pictures", "release", "up")
OTHERS = ("agents", "bench", "faults", "kube", "lock", "setup", "test", "ui")


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """A copy beside which there is nothing: whatever a script did there would fail, or leave something."""
    return Path(shutil.copytree(SCRIPTS, tmp_path / "script", ignore=shutil.ignore_patterns("__pycache__")))


def call(script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([script, *words], cwd="/", text=True, capture_output=True, timeout=60)


@pytest.mark.parametrize("name", [*WITHOUT_ARGUMENTS, *OTHERS])
@pytest.mark.parametrize("word", ["-h", "--help"])
def test_a_script_that_is_asked_for_help_prints_it_and_does_nothing(scripts: Path, name: str, word: str) -> None:
    answer = call(scripts / name, word)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith(f"usage: script/{name}")
    assert len(answer.stdout.splitlines()) > 1
    assert [path.name for path in scripts.parent.iterdir()] == ["script"]


@pytest.mark.parametrize("name", [*WITHOUT_ARGUMENTS, "kube", "setup", "ui"])
def test_an_argument_that_a_script_does_not_know_is_refused(scripts: Path, name: str) -> None:
    answer = call(scripts / name, "--nonsense")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith(f"script/{name}: expected ")
    assert "'--nonsense'" in answer.stderr
    assert [path.name for path in scripts.parent.iterdir()] == ["script"]


def test_kubernetes_is_there_only_when_it_is_whole(scripts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(scripts.parent))
    answer = call(scripts / "kube", "--check")
    assert (answer.returncode, answer.stdout) == (1, "")
    place = Path(subprocess.run([scripts / "kube", "--where"], text=True, capture_output=True).stdout.strip())
    assert place.parent == scripts.parent / "hitchpost"
    place.with_name(f"{place.name}.building").mkdir(parents=True)  # what an interrupted build leaves
    assert call(scripts / "kube", "--check").returncode == 1
    place.mkdir()
    for words in ((), ("--check",)):
        answer = call(scripts / "kube", *words)
        assert (answer.returncode, answer.stdout, answer.stderr) == (0, f"{place}\n", "")


def test_who_calls_while_another_builds_kubernetes_waits_for_it(scripts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if subprocess.run(["sh", "-c", "dpkg --print-architecture"], capture_output=True).stdout != b"amd64\n":
        pytest.skip("Kubernetes is built on Debian for amd64 only")
    monkeypatch.setenv("XDG_CACHE_HOME", str(scripts.parent))
    place = Path(call(scripts / "kube", "--where").stdout.strip())
    place.parent.mkdir()
    with open(f"{place}.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with subprocess.Popen([scripts / "kube"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as waits:
            assert waits.stdout is not None
            assert waits.stderr is not None
            assert "waiting" in waits.stderr.readline()
            place.mkdir()
            fcntl.flock(held, fcntl.LOCK_UN)
            assert (waits.wait(60), waits.stdout.read()) == (0, f"{place}\n")


def test_what_up_says_to_type_next_works(ground: Ground, scripts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for done in ("setup", "ui"):
        (scripts / done).write_text("#!/bin/sh\n")
    (scripts.parent / ".venv").symlink_to(SCRIPTS.parent / ".venv")
    monkeypatch.setenv("HOME", str(ground.place))
    ground.configure("port = 0")
    try:
        answer = call(scripts / "up")
        assert answer.returncode == 0, answer.stderr
        said = answer.stdout.partition("Next:")[2]
        (link,) = [line.partition(":")[2] for line in said.splitlines() if line.startswith("To type just hitch:")]
        subprocess.run(["sh", "-ec", link], check=True, timeout=60)
        subprocess.run([ground.place / ".local/bin/hitch", "--version"], check=True, timeout=60)
        assert said.split("  ")[1:3] == [".venv/bin/hitch", ""]  # alone: hitch top
        assert ".venv/bin/hitch up --open " in said
    finally:
        ground.hitch("down")
        ground.hitch("stop", "--now", "demo")
