"""The story of a session: every change with its time, actor, reason and evidence, one JSON line each."""

from __future__ import annotations

import os

from hitchpost import lightjson
from hitchpost.errors import NOT_READ
from hitchpost.model import run as runs
from hitchpost.store import files, statefile

FIRST_BYTES = 16 << 10
HEAD_BYTES, TAIL_BYTES = 1 << 20, 3 << 20
"""How much of a story is read: the record is told at its beginning, the state at its end."""


def read(folder: str) -> list[dict[str, object]]:
    """Every whole line that was carried out, oldest first. A line that a crash tore is left out.

    A missing story is an empty one. So is what is no file, and the middle of one that is far too large.
    """
    try:
        text = files.read_ends(os.path.join(folder, files.STORY), HEAD_BYTES, TAIL_BYTES)
    except files.NoFile:
        return []
    lines = []
    for line in text.splitlines():
        try:
            value = lightjson.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("at"), str) and isinstance(value.get("event"), str):
            lines.append(value)
    return _carried_out(lines)


def begun_by(folder: str) -> str:
    """The actor of its first line: who has made the session. Empty when that cannot be known."""
    try:
        text = files.read_ends(os.path.join(folder, files.STORY), FIRST_BYTES, 0)
        line = lightjson.loads(text.split(b"\n", 1)[0])
    except NOT_READ:
        return ""
    return str(line.get("actor") or "") if isinstance(line, dict) else ""


def _carried_out(lines: list[dict[str, object]]) -> list[dict[str, object]]:
    """Without what was told and then not done, because of a crash between the two: it is told once more when it is.

    A run leaves no state twice and begins once; a record leaves a state only after it has come there.
    """
    kept: list[dict[str, object]] = []
    later: set[tuple[str, str]] = set()
    record_left: object = None
    for line in reversed(lines):
        undone = False
        if line["event"] == "record":
            undone, record_left = line.get("from") == record_left, line.get("from")
        elif line["event"] in ("state", "run"):
            left = (str(line.get("run")), str(line.get("from")))
            undone = left in later
            later.add(left)
        if not undone:
            kept.append(line)
    return kept[::-1]


def rebuilt_state(folder: str, session: str, workspace: str) -> dict[str, object] | None:
    """The state file as the story has it; None when the story tells of no state."""
    value: dict[str, object] | None = None
    for line in read(folder):
        run, at, new = line.get("run"), str(line["at"]), line.get("to")
        if line["event"] in ("created", "run") and isinstance(run, int):
            value = statefile.new_state(session, workspace, run, at)
        elif line["event"] == "state" and value is not None and value["run"] == run and new in tuple(runs.TRANSITIONS):
            value["state"], value["state_changed_at"] = new, since(line)
    return value


def since(line: dict[str, object]) -> str:
    """When what a line tells came about: earlier than it was told, where somebody found out late."""
    return str(line.get("since") or line["at"])


def as_text(lines: list[dict[str, object]], most: int = 12) -> str:
    """The end of the story, one line each, for error messages."""
    shown = []
    for line in lines[-most:]:
        what = f"{line.get('from')} → {line.get('to')}" if "to" in line else str(line["event"])
        why = line.get("reason")
        if line["event"] == "attention":
            what, why = f"{line.get('state')}", line.get("message")
        reason = f": {why}" if why else ""
        shown.append(f"  {line['at']} run {line.get('run')} {what} by {line.get('actor')}{reason}")
    return "\n".join(shown)
