"""A test that fails is run once more, alone, at the end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Other plugins take seconds to import.
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist.plugin"}
ACCIDENT = """
from pathlib import Path
def test_accident():
    first = Path(__file__).with_suffix(".ran")
    if not first.exists():
        first.touch()
        raise ValueError("the first time")
"""
BROKEN = "def test_broken():\n    assert 1 == 2, 'for good'\n"
WHOLE = "def test_whole():\n    pass\n"
UNTIDY = """
import pytest
from pathlib import Path
@pytest.fixture
def place():
    yield
    first = Path(__file__).with_suffix(".ran")
    if not first.exists():
        first.touch()
        pytest.fail("left something behind")
def test_untidy(place):
    pass
"""
SKIPPED_LATER = """
import pytest
from pathlib import Path
def test_skipped_later():
    first = Path(__file__).with_suffix(".ran")
    if first.exists():
        pytest.skip("not now")
    first.touch()
    assert False
"""


def run(folder: Path, *options: str, **files: str) -> tuple[int, str]:
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -ra\n")
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.rerun", "--rootdir", str(folder), *options, str(folder)],
        cwd=folder,
        env={**os.environ, **ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return done.returncode, done.stdout + done.stderr


def closing(output: str) -> str:
    """The last line, without the time and the frame."""
    return re.sub(r" in [\d.]+s.*", "", output.rstrip().rpartition("\n")[2]).strip("= ")


@pytest.mark.parametrize("options", [(), ("-n", "2", "--dist", "worksteal")], ids=["one process", "workers"])
def test_a_test_that_passes_alone_is_flaky_and_the_run_passes(tmp_path: Path, options: tuple[str, ...]):
    code, output = run(tmp_path, *options, accident=ACCIDENT, whole=WHOLE)
    assert (code, closing(output)) == (0, "1 passed, 1 flaky")
    assert output.index("ValueError: the first time") < output.index("FLAKY test_accident.py::test_accident")
    log = (tmp_path / "flaky.log").read_text()
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00 test_accident.py::test_accident\n", log)
    assert "ValueError: the first time" in log


def test_a_test_that_fails_again_fails_the_run(tmp_path: Path):
    code, output = run(tmp_path, accident=ACCIDENT, broken=BROKEN)
    assert (code, closing(output)) == (1, "1 failed, 1 flaky")
    assert "FAILED test_broken.py::test_broken - AssertionError: for good" in output
    assert "test_broken" not in (tmp_path / "flaky.log").read_text()


def test_what_a_test_left_behind_counts_too_and_the_test_counts_once(tmp_path: Path):
    assert run(tmp_path, untidy=UNTIDY)[0] == 0
    assert "left something behind" in (tmp_path / "flaky.log").read_text()
    (tmp_path / "test_untidy.ran").unlink()
    assert closing(run(tmp_path)[1]) == "1 flaky"


def test_a_test_that_is_skipped_the_second_time_has_failed(tmp_path: Path):
    assert run(tmp_path, later=SKIPPED_LATER)[0] == 1


def test_many_failures_are_not_run_again(tmp_path: Path):
    text = "\n".join(ACCIDENT.replace("accident", f"accident_{number}") for number in range(11))
    text = text.replace('".ran"', "f'.{__import__(\"inspect\").stack()[0].function}'")
    code, output = run(tmp_path, accidents=text)
    assert (code, closing(output)) == (1, "11 failed")
    assert not (tmp_path / "flaky.log").exists()


def test_a_run_that_stopped_early_or_cannot_be_read_fails(tmp_path: Path):
    assert run(tmp_path, "--maxfail", "1", accident=ACCIDENT)[0] == 1
    assert run(tmp_path, unreadable="import nothing_like_this")[0] == 2
