"""``answer.json`` of a run: the last answer that its agent gave, whole, as the agent itself tells it."""

from __future__ import annotations

import os

from hitchpost.store import files
from hitchpost.values import value

ANSWER = "answer.json"
MOST_LETTERS = 1 << 20


@value
class Answer:
    text: str
    at: str


def write_answer(run_folder: str, text: str) -> None:
    """Not synced: a machine that loses its power may lose the last one."""
    said: dict[str, object] = {"schema": files.SCHEMA, "at": files.stamp(), "text": text[:MOST_LETTERS]}
    files.write_object(os.path.join(run_folder, ANSWER), said, durable=False)


def read_answer(run_folder: str) -> Answer | None:
    """None when the agent has given none, or none that is told."""
    try:
        said = files.read_object(os.path.join(run_folder, ANSWER))
    except (files.NoFile, files.Unreadable):
        return None
    text, at = said.get("text"), said.get("at")
    return Answer(text, at) if isinstance(text, str) and isinstance(at, str) else None
