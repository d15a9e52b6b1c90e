"""Commands that messages propose: found in the source, and in what was said."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import hitchpost
from hitchpost.cli.group import COMMANDS

SOURCE = Path(hitchpost.__file__).parent
ADVICE = re.compile(rf"\b(?:hitch (?:{'|'.join(COMMANDS)})|kill -CONT|chmod)\b[^;,.()\]'`\"\n]*")
"""A command of ours, or a system's, and the words that follow it, up to the end of the clause."""


def in_source() -> set[tuple[str, str]]:
    """File and clause of each command in a text that the program can say; ``{}`` stands for what it fills in."""
    found = set()
    for path in sorted(SOURCE.rglob("*.py")):
        for text in texts(ast.parse(path.read_text())):
            found |= {(str(path.relative_to(SOURCE)), clause.strip()) for clause in ADVICE.findall(text)}
    return found


def texts(tree: ast.AST) -> Iterator[str]:
    """The texts of a module, but for docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr | ast.JoinedStr | ast.FormattedValue):
            continue
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Constant) and isinstance(child.value, str):
                yield child.value
            elif isinstance(child, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in child.values)


def proposed(said: str, clause: str, words: int) -> list[str]:
    """The command in what was said: the first ``words`` words of ``clause``, as they were filled in."""
    whole = re.compile(r"('[^']*'|[^\s';,]+)".join(map(re.escape, re.split(r"\{\d?\}", clause))))
    found = whole.search(said)
    assert found is not None, f"expected {clause!r} in {said!r}"
    return shlex.split(found[0])[:words]
