"""A test that takes too long fails, and nothing else does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
SAYS_WHETHER_AN_ALARM_IS_SET = """
import pytest, signal
def say(what):
    print(what, signal.getitimer(signal.ITIMER_REAL)[0] > 0)
def pytest_runtest_logreport(report):
    say(f"report of {report.when}")
"""
TEST = """
import pytest
from conftest import say
@pytest.fixture
def place():
    say("setup")
    yield
    say("teardown")
def test(place):
    say("call")
"""
HANGS = """
import pytest, signal
@pytest.fixture
def never():
    signal.pause()
@pytest.fixture
def never_again():
    yield
    signal.pause()
def test_setup(never):
    pass
def test_call():
    signal.pause()
def test_teardown(never_again):
    pass
"""


def run(folder: Path, seconds: int, test: str) -> str:
    (folder / "pytest.ini").write_text("[pytest]\ntimeout_func_only = true\n")
    (folder / "conftest.py").write_text(SAYS_WHETHER_AN_ALARM_IS_SET)
    (folder / "test_it.py").write_text(test)
    words = [
        "-p",
        "pytest_timeout",
        "-p",
        "tests.limits",
        "--timeout",
        str(seconds),
        "-q",
        "-s",
        "--rootdir",
        str(folder),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, str(folder)],
        cwd=folder,
        env={**os.environ, **ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return done.stdout + done.stderr


def test_each_part_of_a_test_is_limited_and_what_is_between_them_is_not_interrupted(tmp_path: Path):
    said = [
        line for line in run(tmp_path, 1000, TEST).replace("\n.", "\n").splitlines() if line.endswith(("True", "False"))
    ]
    limited = ["setup True", "report of setup False", "call True", "report of call False", "teardown True"]
    assert said == [*limited, "report of teardown False"]


def test_a_part_that_takes_too_long_fails_the_test_and_the_others_go_on(tmp_path: Path):
    output = run(tmp_path, 1, HANGS)
    assert output.count(" - Failed: Timeout (>1.0s)") == 3
    assert "1 failed, 1 passed, 2 errors" in output
