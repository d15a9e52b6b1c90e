"""The measurements run and print their table. How fast anything is, is not for tests to say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.stage import percentile
from bench.table import Row, at_least_share, at_most, at_most_more, at_most_times, exactly, rendered

ROOT = Path(__file__).parents[2]


def bench(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--quick", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    # 1 says that a figure is over its limit, which a busy machine is allowed to be
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_the_cheap_measurements_print_one_table() -> None:
    header, rule, *lines = bench("--only", "flood", "idle").splitlines()
    assert [cell.strip() for cell in header.split("|")] == ["what", "ours", "anchor", "ratio", "wanted", "ok"]
    assert set(rule) == {"-", "|"}
    whats = [line.split("[")[0].strip() for line in lines if "|" in line]
    assert whats.count("flood → log") == 2
    assert "CPU of all idle keepers together" in whats
    assert "load average" in lines[-1]


def test_json_has_every_figure_with_its_sample() -> None:
    answer = json.loads(bench("--json", "--only", "truth"))
    (row,) = answer["rows"]
    assert (row["what"], row["sample"]) == ("exits told as they were", "20 exits, 10 at once")
    assert (row["ours"], row["wanted"], row["ok"]) == (20, "20", True)


@pytest.mark.parametrize(
    ("wanted", "ours", "anchor", "ok"),
    [
        (at_most(20, "ms"), 20, None, True),
        (at_most(20, "ms"), 20.1, None, False),
        (exactly(1000), 1000, None, True),
        (exactly(1000), 999, None, False),
        (at_most_times(10), 100, 10, True),
        (at_most_times(10), 101, 10, False),
        (at_least_share(0.7), 71, 100, True),
        (at_least_share(0.7), 69, 100, False),
        (at_most_more(2.5, "MB"), 5.5, 3, True),
        (at_most_more(2.5, "MB"), 5.6, 3, False),
    ],
)
def test_a_limit_says_whether_a_figure_keeps_it(wanted, ours: float, anchor: float | None, ok: bool) -> None:
    row = Row("what", "1 time", ours, "", anchor, "anchor", wanted)
    assert row.ok is ok
    assert rendered([row]).splitlines()[-1].endswith("| ok" if ok else "| over")


def test_a_figure_of_which_nothing_is_wanted_is_neither_ok_nor_over() -> None:
    row = Row("what", "1 time", 3.0, "ms", 1.5, "anchor")
    assert row.ok is None
    assert rendered([row]).splitlines()[-1].split("|")[3].strip() == "2.00"


def test_percentiles_are_values_of_the_sample() -> None:
    values = [float(number) for number in range(1, 201)]
    assert (percentile(values, 0.5), percentile(values, 0.99)) == (100.0, 198.0)
    assert percentile([7.0], 0.99) == 7.0
