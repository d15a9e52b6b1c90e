"""``usage/DAY.jsonl``: a line for what each turn has used. It outlives its session: what was spent stays spent."""

from __future__ import annotations

import os

from hitchpost import lightjson
from hitchpost.errors import MALFORMED
from hitchpost.model.usage import COUNTS, Tokens, Turn
from hitchpost.store import files
from hitchpost.values import asdict, fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER, ENDING = "usage", ".jsonl"
MOST_BYTES = 256 << 20
"""Of one day."""


def note(home: str, turn: Turn) -> None:
    """Write down what a turn has used."""
    folder = os.path.join(home, FOLDER)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    line = {"schema": files.SCHEMA, **asdict(turn), "tokens": asdict(turn.tokens)}
    files.append_line(os.path.join(folder, turn.at[:10] + ENDING), lightjson.dumps(line))


def read(home: str, first_day: str = "") -> Iterator[Turn]:
    """Every turn since the day ``first_day`` (``2026-11-18``, in UTC), oldest day first. What is odd is left out."""
    folder = os.path.join(home, FOLDER)
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    for name in names:
        if not name.endswith(ENDING) or name < first_day:
            continue
        try:
            text = files.read_bytes(os.path.join(folder, name), MOST_BYTES)
        except files.NoFile:
            continue
        for line in text.splitlines():
            if (turn := _turn(line)) is not None:
                yield turn


def _turn(line: bytes) -> Turn | None:
    try:
        told = lightjson.loads(line)
        assert isinstance(told, dict)
        counts = {name: _count(told["tokens"].get(name)) for name in COUNTS}
        cost = told["tokens"].get("cost_usd")
        texts = {name: told[name] for name in fields(Turn) if name not in ("tokens", "run")}
        if not all(isinstance(text, str) for text in texts.values()):
            return None
        return Turn(
            **texts, run=_count(told["run"]), tokens=Tokens(**counts, cost_usd=None if cost is None else float(cost))
        )
    except (*MALFORMED, AssertionError):
        return None


def _count(found: object) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise ValueError(found)
    return found
