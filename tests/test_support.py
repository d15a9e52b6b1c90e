from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support import KEEPER, Census, Hitch, LeakWatch, Process, end, end_home, eventually

PAUSE = "import signal; signal.pause()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); signal.pause()"


def start_detached(command: str, env: dict[str, str] | None = None, cwd: str = "/") -> Process:
    """Start a shell command that outlives its starter and is nobody's child here; ``command`` must print nothing."""
    done = subprocess.run(
        ["setsid", "sh", "-c", f"{command} >/dev/null 2>&1 & echo $!"],
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    process = Process.read(int(done.stdout))
    assert process
    return process


@pytest.fixture
def watch(leak_watch: LeakWatch, tmp_path: Path) -> LeakWatch:
    """A second watch inside the test's own, so that what it finds does not fail the test."""
    return LeakWatch(tmp_path)


def test_eventually_returns_the_first_true_value():
    values = iter([None, 0, "", "here"])
    assert eventually(lambda: next(values)) == "here"


def test_eventually_takes_a_failed_assertion_for_not_yet():
    values = iter([1, 2, 3])

    def three() -> bool:
        assert next(values) == 3
        return True

    assert eventually(three)


def test_eventually_says_what_it_waited_for_and_what_it_saw_last():
    with pytest.raises(AssertionError, match=r"waited 0.01 s in vain for the moon; last value: 0"):
        eventually(lambda: 0, timeout_s=0.01, what="the moon")


def test_eventually_lets_other_errors_through():
    with pytest.raises(ZeroDivisionError):
        eventually(lambda: 1 // 0)


def test_a_tidy_test_leaves_nothing(watch: LeakWatch):
    subprocess.run(["true"], check=True)
    with tempfile.TemporaryFile():
        pass
    assert watch.close() == []


def test_a_child_that_still_runs_is_found_and_ended(watch: LeakWatch):
    with subprocess.Popen([sys.executable, "-c", PAUSE]) as child:
        [line] = watch.close(patience_s=0)
        assert line.startswith(f"process {child.pid} ")
    assert Process.read(child.pid) is None


def test_a_child_that_nobody_waited_for_is_found(watch: LeakWatch):
    child = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert watch.close(patience_s=0) == [f"process {child} (Z): true"]
    assert Process.read(child) is None


def test_a_detached_process_is_found_by_its_environment(watch: LeakWatch):
    env = {"PATH": os.environ["PATH"], "HITCHPOST_HOME": f"{watch.scratch}/home"}
    process = start_detached("exec sleep 1000", env=env)
    assert watch.processes() == [process]
    assert len(watch.close(patience_s=0)) == 1
    assert watch.processes() == []


def test_a_detached_process_is_found_by_its_working_folder(watch: LeakWatch):
    process = start_detached("exec sleep 1000", env={"PATH": os.environ["PATH"]}, cwd=str(watch.scratch))
    assert watch.processes() == [process]
    end([process])
    assert watch.processes() == []


def test_a_process_that_is_about_to_go_is_no_leak(watch: LeakWatch):
    env = {"PATH": os.environ["PATH"], "HITCHPOST_HOME": f"{watch.scratch}/home"}
    start_detached("exec sleep 0.2", env=env)
    assert watch.close() == []


def test_what_began_later_is_told_from_what_was_there():
    with subprocess.Popen([sys.executable, "-c", PAUSE]) as older:
        census = Census()
        census._last = older.pid - 1  # the circle of numbers has passed the older one, too
        with subprocess.Popen([sys.executable, "-c", PAUSE]) as younger:
            children = [process.pid for process in census.later() if process.parent == os.getpid()]
            assert children == [younger.pid]
            younger.kill()
        older.kill()


def test_who_has_the_number_of_somebody_before_is_told_from_them():
    census = Census()
    eventually(lambda: Census()._ticks > census._ticks + 1)
    with subprocess.Popen([sys.executable, "-c", PAUSE]) as child:
        census._pids.add(child.pid)
        assert child.pid in [process.pid for process in census.later()]
        child.kill()


def test_an_open_descriptor_is_found(watch: LeakWatch):
    descriptor = os.open("/dev/null", os.O_RDONLY)
    try:
        assert watch.close() == [f"descriptor {descriptor}: /dev/null"]
    finally:
        os.close(descriptor)


def test_a_temp_file_with_our_prefix_is_found(watch: LeakWatch):
    (watch.scratch / "hitchpost-1").touch()
    (watch.scratch / "other").touch()
    assert watch.close(patience_s=0) == [f"temp file {watch.scratch}/hitchpost-1"]


def test_end_kills_what_ignores_the_polite_signal():
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        process = Process.read(child.pid)
        assert process
        os.kill(child.pid, signal.SIGSTOP)
        end([process], grace_s=0.1)
    assert Process.read(child.pid) is None


def test_end_leaves_a_process_alone_that_has_the_pid_of_another():
    with subprocess.Popen(["sleep", "1000"]) as child:
        process = Process.read(child.pid)
        assert process
        earlier = Process(child.pid, process.start_ticks - 1, process.parent, process.state, process.argv)
        end([earlier], grace_s=0)
        assert child.poll() is None
        child.kill()


def test_the_keepers_of_a_home_are_ended_and_no_others(home: Path, tmp_path: Path):
    def keeper(of: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", PAUSE, f"/somewhere/{KEEPER}", f"{of}/sessions/a/runs/1", "3"])

    with keeper(home) as ours, keeper(tmp_path) as theirs:
        for child in (ours, theirs):
            eventually(lambda child=child: (p := Process.read(child.pid)) and p.is_keeper)  # type: ignore[misc]
        end_home(home)
        assert Process.read(ours.pid) is None
        assert theirs.poll() is None
        theirs.kill()


def test_a_home_is_empty_private_and_short(home: Path):
    assert list(home.iterdir()) == []
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert os.environ["HITCHPOST_HOME"] == str(home)
    assert list(Path(os.environ["XDG_CONFIG_HOME"]).iterdir()) == []
    assert len(os.fsencode(home)) < 50


def test_a_call_gives_its_exit_code_and_what_it_printed():
    python = Hitch((sys.executable, "-c"))
    answer = python("print('[1]'); import sys; sys.exit('no')", check=False)
    assert (answer.code, answer.json(), answer.err) == (1, [1], "no\n")


def test_a_call_with_another_exit_code_than_expected_fails():
    python = Hitch((sys.executable, "-c"))
    python("raise SystemExit(3)", check=3)
    with pytest.raises(AssertionError, match="expected exit code 0 from hitch raise"):
        python("raise SystemExit(3)")


def test_a_call_sees_the_home_of_the_test_and_nothing_of_pytest(home: Path):
    python = Hitch((sys.executable, "-c"))
    env = python("import json, os; print(json.dumps(dict(os.environ)))", env={"EXTRA": "1"}).json()
    assert (env["HITCHPOST_HOME"], env["EXTRA"]) == (str(home), "1")
    assert [name for name in env if name.startswith("PYTEST_")] == []


def test_a_call_that_does_not_end_says_what_it_had_printed():
    python = Hitch((sys.executable, "-c"))
    with pytest.raises(AssertionError, match=r"did not end in 0.5 s\n--- out\nhello"):
        python("print('hello', flush=True); import signal; signal.pause()", timeout_s=0.5)
