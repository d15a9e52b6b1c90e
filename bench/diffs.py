"""``hitch diff`` of a large worktree, against git's own in the same worktree."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

from bench.stage import median
from bench.table import Row, at_most_times
from hitchpost.values import replace
from hitchpost.workspaces.diff import difference
from hitchpost.workspaces.tree import Tree, discover, keep_index

FILES, IN_ONE_FOLDER = 10_000, 50
TIMES_PLAIN = 1.5
NEW_FILES = ("ls-files", "--others", "--exclude-standard")
"""What a person would type to see them: ``git diff`` says nothing of them."""


def measure(*, quick: bool) -> list[Row]:
    files, times = (500, 3) if quick else (FILES, 21)
    rows = []
    with tempfile.TemporaryDirectory(prefix="hitchpost-bench-") as top:
        base, tree = _worktree(Path(top), files)
        names = sorted(path for path in Path(tree.top).rglob("*.py"))
        for path in names[:: max(files // 100, 1)]:
            path.write_text(path.read_text() + "changed\n")
        rows.append(_compared(f"diff, {files:,} files, 100 changed", tree, times, ("diff", base)))
        for number in range(10):
            (Path(tree.top) / f"new-{number}.py").write_text("new\n")
        rows.append(_compared(f"diff, {files:,} files, 100 changed, 10 new", tree, times, ("diff", base), NEW_FILES))
    return rows


def _worktree(top: Path, files: int) -> tuple[str, Tree]:
    place, keep = top / "shop", top / "keep"
    keep.mkdir()
    for number in range(files):
        folder = place / f"folder-{number // IN_ONE_FOLDER}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file-{number}.py").write_text(f"line of {number}\n" * 40)
    # so many new objects would be packed in the background, beside what is measured
    who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0")
    for words in (("init", "-q"), ("add", "-A"), (*who, "commit", "-q", "-m", "all"), ("status",)):
        subprocess.run(["git", *words], cwd=place, check=True, stdout=subprocess.DEVNULL)
    found = discover(str(place))
    assert found is not None
    tree = replace(found, keep=str(keep))
    keep_index(tree, tree.index)
    base = tree.head().commit
    assert base is not None
    return base, tree


def _compared(what: str, tree: Tree, times: int, *commands: tuple[str, ...]) -> Row:
    """``commands`` are git's own, one after the other; the first one's last word is what is compared with."""
    ours_s, plain_s = [], []
    for _ in range(times + 1):
        began = time.perf_counter()
        difference(tree, commands[0][-1])
        between = time.perf_counter()
        for words in commands:
            subprocess.run(["git", *words], cwd=tree.top, stdout=subprocess.PIPE, check=True, env=os.environ)
        ours_s.append(between - began)
        plain_s.append(time.perf_counter() - between)
    return Row(
        what,
        f"median of {times}",
        median(ours_s[1:]) * 1000,
        "ms",
        median(plain_s[1:]) * 1000,
        " + ".join(f"git {words[0]}" for words in commands),
        at_most_times(TIMES_PLAIN),
    )
