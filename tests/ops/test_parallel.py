from __future__ import annotations

import os
import sys
import threading

import pytest

from hitchpost.ops import parallel
from tests.support import Hitch

TODO = [str(number) for number in range(3 * parallel.WORTH_SHARING)]
SEVERAL = """
import os
from hitchpost.ops import parallel
os.sched_getaffinity = lambda pid: {0, 1, 2}
first = os.getpid()
def work(item):
    if item == "7" and os.getpid() != first:
        os.kill(os.getpid(), 9)
    return () if item == "5" else (item, str(os.getpid() == first))
found = parallel.done([str(number) for number in range(%d)], work)
print(sorted(int(texts[0]) for texts in found if texts) == [n for n in range(%d) if n != 5])
print(sum(texts[1:] == ("False",) for texts in found) > 0, () in found)
"""


def test_every_item_is_worked_on_once_also_when_a_helper_is_killed() -> None:
    """In a process of its own: this one has threads, and so must not fork."""
    hitch = Hitch((sys.executable, "-c", SEVERAL % (len(TODO), len(TODO))))
    assert hitch().out == "True\nTrue True\n"


def test_a_process_with_threads_does_it_all_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("it has forked"))
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert parallel.done(TODO, lambda item: (item,)) == [(item,) for item in TODO]
    finally:
        end.set()
        thread.join()
