"""All sessions as services: how many agents are in which state, and the containers that are there.

The hub answers with it; where there is none, ``hitch status`` and ``hitch services`` work it out themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from math import inf
from typing import Any

from hitchpost.errors import FAILURES
from hitchpost.model import run as runs
from hitchpost.model.compat import agent_state, container_name
from hitchpost.model.facts import has_sandbox
from hitchpost.model.status import rests, session_alive, status
from hitchpost.ops.views.listing import listing
from hitchpost.ops.views.observe import Observation, observe
from hitchpost.store.index import agent_state_of
from hitchpost.text import readable
from hitchpost.values import replace

NOBODY_KNOWS = "session state unknown (Hub down)"
RESTS_NOTE = "(container running, session ended because it was idle)"

LEFT_NOTE = "(container running, session ended because somebody asked)"


def overview(home: str) -> dict[str, Any]:
    """Without a hub: ``counts``, ``containers`` and ``sessions``, as ``/api/status`` has them."""
    rows = listing(home, shapes=True)
    boxed = [row.id for row in rows if row.shape["runtime"] and has_sandbox(row.shape["runtime"])]
    return {
        "counts": counts(row.line for row in rows),
        "containers": containers(_present(home, boxed), is_up=False),
        "sessions": [row.shape for row in rows],
    }


def _present(home: str, sessions: Iterable[str]) -> Iterator[Observation]:
    """Those that nobody has removed since they were listed."""
    for session in sessions:
        try:
            yield observe(home, session)
        except FAILURES:
            continue


def counts(lines: Iterable[str]) -> dict[str, int]:
    """How many agents are in which state. Each session is given by its line, as in the index."""
    return dict(Counter(map(agent_state_of, lines)))


def containers(sessions: Iterable[Observation], *, is_up: bool) -> list[dict[str, Any]]:
    """The containers that are there, each under the name that people know it by."""
    return [_container(seen, is_up=is_up) for seen in sessions if seen.facts.sandbox_alive is True]


def _container(seen: Observation, *, is_up: bool) -> dict[str, Any]:
    """``state`` is the word of ``/api/agents``, ``status`` that of ``ps``, ``note`` what ``ps`` says behind it."""
    words = status(replace(seen.facts, idle_after_s=inf), datetime.now(UTC))
    state, word, note = agent_state(seen.facts), words.word, words.label.removeprefix(words.word).lstrip(": ")
    if not is_up and seen.facts.state in runs.LIVE and session_alive(seen.facts) is None:
        state = word = runs.RUNNING
        note = NOBODY_KNOWS
    elif word == runs.STOPPED:
        note = RESTS_NOTE if rests(seen.facts) else LEFT_NOTE
    return {
        "name": readable(f"agent-{seen.record.name}"),
        "container": container_name(seen.record.id),
        "session": seen.record.id,
        "state": state,
        "status": word,
        "note": note,
    }
