"""Finding sessions: by id, then name, then index, then the unique beginning of an id."""

from __future__ import annotations

import os
from typing import Any

from hitchpost import wire
from hitchpost.errors import AmbiguousSession, NoSuchRun, NoSuchSession
from hitchpost.model.record import ARCHIVED
from hitchpost.ops.views.observe import Observation, observe
from hitchpost.store import index
from hitchpost.store.home import run_folder


def resolve(home: str, word: str) -> str:
    """The id of the session that ``word`` means. Raises ``NoSuchSession`` or ``AmbiguousSession``."""
    return resolve_in(index.rows(home), word)


def resolve_in(rows: dict[str, dict[str, Any]], word: str) -> str:
    """``resolve`` among sessions that are known already: id, name, index and record of each."""
    if word in rows:
        return word
    named = [row for row in rows.values() if row["name"] == word]
    if not named and word.isascii() and word.isdigit() and len(word) < 10:
        named = [row for row in rows.values() if row["index"] == int(word)]
    if named:
        return str(min(named, key=lambda row: row["record"] == ARCHIVED)["id"])
    fitting = [session for session in rows if word and session.startswith(word)]
    if len(fitting) > 1:
        raise AmbiguousSession(word, sorted(fitting))
    if not fitting:
        raise NoSuchSession(word)
    return fitting[0]


def find(home: str, word: str) -> Observation:
    """Look at the session that ``word`` means."""
    session = resolve(home, word)
    try:
        return observe(home, session)
    except NoSuchSession:
        raise NoSuchSession(word) from None


def again(home: str, seen: Observation) -> Observation:
    """Look once more. Raises ``NoSuchSession`` when it was removed meanwhile."""
    try:
        return observe(home, seen.record.id)
    except NoSuchSession:
        raise NoSuchSession(seen.record.name) from None


def chosen_run(seen: Observation, run: int | None) -> int:
    """The number of the run that is meant: ``run``, else the newest. Raises ``NoSuchRun``."""
    if run is None:
        return seen.facts.run
    if not 1 <= run <= seen.facts.run or not os.path.isdir(run_folder(seen.folder, run)):
        raise NoSuchRun(seen.record.name, run, seen.facts.run)
    return run


def output_of(seen: Observation, run: int | None) -> tuple[int, str]:
    """The number of the run that is meant, and the folder of its output. Raises ``NoSuchRun``."""
    number = chosen_run(seen, run)
    return number, os.path.join(run_folder(seen.folder, number), wire.OUTPUT)
