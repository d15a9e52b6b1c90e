"""The files of what agents have used."""

from __future__ import annotations

from pathlib import Path

from hitchpost.model.usage import Tokens, Turn
from hitchpost.store import usage


def turn(at: str, tokens: Tokens) -> Turn:
    return Turn(at, "a" * 12, "dev", "claude", "/project", 2, "large", tokens)


def test_what_was_noted_is_read_again_the_oldest_day_first(tmp_path: Path) -> None:
    home = str(tmp_path)
    late, early = turn("2026-11-18T01:00:00Z", Tokens(1, 2, 3, 4, 0.25)), turn("2026-11-17T01:00:00Z", Tokens(5))
    for one in (late, early, late):
        usage.note(home, one)
    assert list(usage.read(home)) == [early, late, late]
    assert list(usage.read(home, "2026-11-18")) == [late, late]
    assert list(usage.read(home, "2026-11-19")) == []
    assert (tmp_path / "usage").stat().st_mode & 0o777 == 0o700


def test_lines_that_are_odd_are_left_out(tmp_path: Path) -> None:
    home, good = str(tmp_path), turn("2026-11-18T01:00:00Z", Tokens(1))
    usage.note(home, good)
    path = tmp_path / "usage/2026-11-18.jsonl"
    line = path.read_text()
    odd = [
        "{",
        "[]",
        "null",
        "{}",
        line.replace('"dev"', "7").strip(),
        line.replace('"input": 1', '"input": -1').strip(),
    ]
    odd += [line.replace('"input":1', '"input":-1').strip(), line.replace('"run":2', '"run":true').strip()]
    path.write_text("\n".join(text for text in odd if text + "\n" != line) + "\n" + line + line[:-20])
    (tmp_path / "usage/2026-11-19.jsonl").mkdir()
    (tmp_path / "usage/notes.txt").write_text(line)
    usage.note(home, good)  # closes the line that was torn
    assert list(usage.read(home)) == [good, good]


def test_where_nothing_was_used_nothing_is_read(tmp_path: Path) -> None:
    assert list(usage.read(str(tmp_path))) == []
