"""Who gets which tests: whole files, those that want the cluster alone together, and the cluster ends early."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import pytest

from tests import runs, schedule
from tests.schedule import ALONE, ALONE_TOGETHER, MOST_SHARING, ByFile, place
from tests.support import BEFORE, Process, eventually

TESTS = Path(__file__).parent


def scheduler(*nodeids: str) -> ByFile:
    made = ByFile.__new__(ByFile)
    made.workqueue, made.assigned_work, made.registered_collections = OrderedDict(), {}, {"worker": list(nodeids)}
    made.assigned_work["worker"] = {}
    for nodeid in nodeids:
        made.assigned_work["worker"].setdefault(made._split_scope(nodeid), {})[nodeid] = False
    made._reschedule = lambda node: None
    return made


def test_files_that_want_the_cluster_for_themselves_are_one_work() -> None:
    made = scheduler()
    assert {made._split_scope(f"tests/{file}::test_one") for file in ALONE} == {ALONE_TOGETHER}
    assert made._split_scope("tests/fleet/test_hubs.py::test_one[a::b]") == "fleet/test_hubs.py"


def test_every_file_of_the_order_is_there_and_the_whole_cluster_is_used_in_no_other() -> None:
    for start in schedule.ORDER:
        assert (TESTS / start).exists(), start
    users = {
        path.relative_to(TESTS).as_posix() for path in TESTS.glob("*/test_*.py") if "whole_cluster" in path.read_text()
    }
    assert users == set(ALONE)
    assert place("nowhere/test_it.py") > place("ops/test_send.py") > place("agents/test_claude.py") > place(ALONE[0])


def test_the_cluster_ends_with_the_last_test_that_may_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    monkeypatch.setattr(runs, "end", ended.append)
    made = scheduler(f"tests/{ALONE[0]}::test_a", "tests/ops/test_x.py::test_b", "tests/deploy/test_y.py::test_c")
    made.mark_test_complete("worker", 0)
    made.mark_test_complete("worker", 1)
    assert not ended
    made.mark_test_complete("worker", 2)
    assert ended == ["tests.kube"]


def test_who_shares_the_cluster_comes_when_nobody_wants_it_alone_and_on_some_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runs, "end", lambda _: None)
    alone, shared, others = (
        f"tests/{ALONE[0]}::test_a",
        "tests/deploy/test_{}.py::test_b",
        "tests/ops/test_{}.py::test_c",
    )
    nodeids = [alone, *(shared.format(n) for n in range(MOST_SHARING + 1)), *(others.format(n) for n in range(3))]
    made = scheduler(alone)
    made.registered_collections["worker"] = nodeids
    for nodeid in nodeids[1:]:
        made.workqueue[made._split_scope(nodeid)] = {nodeid: False}

    def assigned() -> str:
        worker = Worker()
        made.registered_collections[worker] = nodeids
        made._assign_work_unit(worker)
        (scope,) = made.assigned_work[worker]
        return scope

    assert assigned() == "ops/test_0.py"
    made.mark_test_complete("worker", 0)
    assert [assigned() for _ in range(MOST_SHARING)] == [f"deploy/test_{n}.py" for n in range(MOST_SHARING)]
    assert [assigned(), assigned()] == ["ops/test_1.py", "ops/test_2.py"]
    assert assigned() == f"deploy/test_{MOST_SHARING}.py"  # nothing else is left


class Worker:
    def send_runtest_some(self, indices: list[int]) -> None:
        pass


KEEPS = """
import sys
from pathlib import Path
from tests import runs
folder = Path(sys.argv[2])
with runs.kept(folder):
    runs.tell(folder, {"reached": "here"})
    runs.until_the_end(folder)
"""


def test_what_is_shared_can_be_ended_and_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = f"kept_{tmp_path.name}"
    (tmp_path / f"{module}.py").write_text(KEEPS)
    began = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    monkeypatch.setitem(BEFORE, runs.RUN, runs._name(began.pid))
    monkeypatch.setitem(BEFORE, "PYTHONPATH", f"{TESTS.parent}:{tmp_path}")
    folder = runs._folder(module)
    seen: list[Process] = []
    for _ in range(2):
        assert runs.shared(module) == runs.shared(module) == {"reached": "here"}
        keeper = runs._keeper(folder)
        assert keeper is not None
        assert keeper not in seen
        seen.append(keeper)
        runs.end(module)  # the next round begins while this one may still be ending
    eventually(lambda: not folder.exists())
    runs.end(module)  # nothing to end, which is fine
    began.communicate()
