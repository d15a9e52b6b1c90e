"""``script/bench --against REVISION``: another version and this one in turns, so that both have the same machine.

The other version is set up once, in the user's cache, and measures with its own ``script/bench``. Figures are compared
by their names; what only one version measures is left out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.table import aligned, figure

ROOT = Path(__file__).parents[1]
SLOWER = 1.05
"""What is more than this many times as slow, or as large, is said to be over."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One figure of both versions, a value for each round."""

    what: str
    unit: str
    before: tuple[float, ...]
    now: tuple[float, ...]

    @property
    def more_is_better(self) -> bool:
        return "/s" in self.unit or "per second" in self.what

    @property
    def ratio(self) -> float | None:
        """Of the medians; above 1 is worse. None where a figure is 0."""
        before, now = median(self.before), median(self.now)
        worse, better = (before, now) if self.more_is_better else (now, before)
        return worse / better if better else None

    @property
    def ok(self) -> bool:
        return self.ratio is None or self.ratio <= SLOWER

    def as_json(self) -> dict[str, object]:
        return {
            "what": self.what,
            "unit": self.unit,
            "before": self.before,
            "now": self.now,
            "ratio": self.ratio,
            "ok": self.ok,
        }


def in_turns(revision: str, names: Sequence[str], *, rounds: int, quick: bool) -> list[Pair]:
    """Measure ``names`` with both versions, ``rounds`` times, the one that begins changing from round to round."""
    other = checkout(revision)
    found: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for name in names:
        for number in range(rounds):
            versions = ((other, found[0]), (ROOT, found[1]))
            for place, rows in versions if number % 2 == 0 else versions[::-1]:
                began = time.monotonic()
                for row in measured(place, name, quick=quick):
                    rows.setdefault(row["what"], []).append(row)
                which = "before" if place == other else "now"
                took_s = time.monotonic() - began
                print(f"bench: {name}, round {number + 1}, {which}: {took_s:.0f} s", file=sys.stderr, flush=True)
    return paired(*found)


def paired(before: dict[str, Any], now: dict[str, Any]) -> list[Pair]:
    return [
        Pair(what, rows[0]["unit"], *(tuple(row["ours"] for row in side) for side in (before[what], rows)))
        for what, rows in now.items()
        if what in before
    ]


def checkout(revision: str) -> Path:
    """A folder with that version, ready to measure. It stays, for the next time."""
    commit = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    if not commit:
        raise SystemExit(f"script/bench: --against: expected a commit of this repository, got '{revision}'")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hitchpost"
    place = cache / f"bench-{commit[:12]}"
    if not place.exists():
        print(f"bench: setting up {commit[:12]} …", file=sys.stderr, flush=True)
        making = place.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x"], cwd=making, input=packed, check=True)
        making.rename(place)
    # what is up to date takes no time, and an environment knows its place, so it is made where it stays
    for script in (["script/setup", "dev"], ["script/ui"]):
        subprocess.run(script, cwd=place, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=True)
    return place


def measured(place: Path, name: str, *, quick: bool) -> list[dict[str, Any]]:
    """What that version's ``script/bench`` says; nothing, if it does not know the measurement."""
    argv = ["script/bench", "--json", *(["--quick"] if quick else []), "--only", name]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(argv, cwd=place, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    try:
        rows = json.loads(done.stdout)["rows"]
    except ValueError:
        print(done.stderr.decode(errors="replace"), file=sys.stderr, flush=True)
        return []
    assert isinstance(rows, list)
    return rows


def rendered(pairs: Sequence[Pair]) -> str:
    lines = [["what", "before", "now", "ratio, above 1 is worse", "each round", ""]]
    for pair in pairs:
        lines.append(
            [
                pair.what,
                figure(median(pair.before), pair.unit),
                figure(median(pair.now), pair.unit),
                "" if pair.ratio is None else f"{pair.ratio:.2f}",
                " ".join(f"{now / before:.2f}" if before else "-" for before, now in zip(pair.before, pair.now)),  # noqa: B905
                "" if pair.ok else "over",
            ]
        )
    return aligned(lines)
