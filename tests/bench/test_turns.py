"""Two versions measured in turns: figures are compared by name, and what is slower is said to be."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from bench import turns
from bench.turns import Pair, in_turns, measured, paired, rendered

BENCH = """#!/bin/sh
echo {name} "$@" >>"$LOG"
cat <<'END'
{{"rows": [{{"what": "echo", "unit": "ms", "ours": {echo_ms}}}, {{"what": "{own}", "unit": "ms", "ours": 1}}]}}
END
exit 1
"""


def version(place: Path, name: str, echo_ms: float, own: str) -> Path:
    script = place / name / "script" / "bench"
    script.parent.mkdir(parents=True)
    script.write_text(BENCH.format(name=name, echo_ms=echo_ms, own=own))
    os.chmod(script, stat.S_IRWXU)
    return place / name


def test_both_versions_measure_in_turns_and_shared_figures_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("LOG", str(log))
    monkeypatch.setattr(turns, "ROOT", version(tmp_path, "new", 3.3, "newer"))
    monkeypatch.setattr(turns, "checkout", lambda revision: version(tmp_path, revision, 3.0, "older"))
    pairs = in_turns("old", ["echo"], rounds=2, quick=True)
    assert pairs == [Pair("echo", "ms", (3.0, 3.0), (3.3, 3.3))]
    asked = "--json --quick --only echo"
    assert log.read_text().splitlines() == [f"{who} {asked}" for who in ("old", "new", "new", "old")]


@pytest.mark.parametrize(
    ("unit", "before", "now", "ratio", "ok"),
    [
        ("ms", 100.0, 105.0, 1.05, True),
        ("ms", 100.0, 106.0, 1.06, False),
        ("MB/s", 106.0, 100.0, 1.06, False),
        ("MB/s", 100.0, 106.0, 100 / 106, True),
        ("", 0.0, 3.0, None, True),
    ],
)
def test_a_figure_that_is_worse_by_a_twentieth_is_over(
    unit: str, before: float, now: float, ratio: float | None, ok: bool
) -> None:
    pair = Pair("what", unit, (before,), (now,))
    assert pair.ratio == (None if ratio is None else pytest.approx(ratio))
    assert pair.ok is ok
    assert rendered([pair]).splitlines()[-1].endswith("over") is not ok


def test_what_a_version_cannot_measure_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = version(tmp_path, "old", 1, "older")
    (place / "script" / "bench").write_text("#!/bin/sh\necho 'no such measurement' >&2\nexit 2\n")
    assert measured(place, "rail", quick=False) == []
    assert "no such measurement" in capsys.readouterr().err
    assert paired({}, {"echo": [{"unit": "ms", "ours": 1.0}]}) == []


def test_a_revision_that_is_not_there_is_said() -> None:
    with pytest.raises(SystemExit, match="expected a commit of this repository, got 'nowhere'"):
        turns.checkout("nowhere")
