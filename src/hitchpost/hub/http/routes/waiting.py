"""``/api/wait`` and ``/api/sessions/{session}/outcome``: waiting for what becomes of sessions, seconds at a time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, Field

from hitchpost.hub.http import schemas
from hitchpost.hub.http.depends import CallersGrant, PathSession, TheHub
from hitchpost.hub.http.permissions import SESSION, resolve
from hitchpost.ops.sessions.create import LONGEST_NAME
from hitchpost.ops.views.find import chosen_run
from hitchpost.ops.views.observe import Observation
from hitchpost.ops.views.outcome import wait_for_outcome
from hitchpost.ops.views.session_json import to_json
from hitchpost.ops.views.wait import TimedOut, has_ended, wait_for_any
from hitchpost.text import readable
from hitchpost.values import asdict, replace

LONGEST_S = 10.0
MOST_SESSIONS = 100
router = APIRouter()
Within = Annotated[float, Query(ge=0, le=LONGEST_S, allow_inf_nan=False, description="Give up after so many seconds.")]
RunNumber = Annotated[int, Field(ge=0, le=1 << 31)]
Name = Annotated[str, Field(max_length=LONGEST_NAME)]


class Waited(BaseModel):
    """``session`` is the one that became what was waited for, or whose run has ended. It is null when time was up, and
    ``not_yet`` then says of what was waited for that it is not so, such as ``had not ended``."""

    session: schemas.Session | None = Field(examples=[None])
    has_ended: bool = Field(examples=[False])
    not_yet: str = Field(examples=["had not ended"])


class TokensUsed(BaseModel):
    input: int
    cached: int
    cache_write: int
    output: int
    cost_usd: float | None
    total: int


class OutcomeView(BaseModel):
    """``outcome`` is finished, asked, limit or failed; null when time was up, as in ``/api/wait``."""

    outcome: str | None = Field(examples=[None])
    exit_code: int | None = Field(examples=[None])
    answer: str | None = Field(examples=[None])
    usage: TokensUsed | None = Field(examples=[None])
    has_ended: bool = Field(examples=[False])
    not_yet: str = Field(examples=["had not ended"])
    session: schemas.Session | None = Field(examples=[None])


@router.get("/api/wait", response_model=Waited)
async def wait(
    hub: TheHub,
    grant: CallersGrant,
    session: Annotated[list[Name], Query(min_length=1, max_length=MOST_SESSIONS)],
    run: Annotated[list[RunNumber], Query(max_length=MOST_SESSIONS, description="Of each session, in order.")] = [],  # noqa: B006
    until: Literal["idle", "waiting", "blocked", "your-turn", "exit"] = "exit",
    since: Annotated[AwareDatetime | None, Query(description="What was reported before does not count.")] = None,
    within_s: Within = LONGEST_S,
) -> dict[str, Any]:
    """Until the first of the sessions is ``until``, or its run has ended: one that begins meanwhile is another one."""
    await hub.registry.refresh()
    found = [hub.registry.find(await resolve(hub, grant, name)).observation for name in session]
    numbers = [*run, *[0] * len(found)]
    followed = [_of_run(seen, number) for seen, number in zip(found, numbers, strict=False)]
    return await hub.wait(_waited, hub.home, followed, until, since, within_s)


@router.get(f"{SESSION}/outcome", response_model=OutcomeView)
async def outcome(
    hub: TheHub,
    session: PathSession,
    since: Annotated[AwareDatetime, Query(description="When the agent was told something.")],
    run: Annotated[RunNumber, Query()] = 0,
    within_s: Within = LONGEST_S,
) -> dict[str, Any]:
    """Until the agent has dealt with what it was told, or a program has ended: what became of it."""
    await hub.registry.refresh()
    seen = session.observation
    return await hub.wait(_outcome, hub.home, _of_run(seen, run), since, within_s)


def _of_run(seen: Observation, run: int) -> Observation:
    """As if that run, or with 0 the newest, were the session's: whoever waits finds how it ended if another has begun.

    Raises ``NoSuchRun``.
    """
    number = chosen_run(seen, run or None)
    return seen if seen.facts.run == number else replace(seen, facts=replace(seen.facts, run=number))


def _waited(
    home: str, followed: list[Observation], until: str, since: datetime | None, within_s: float
) -> dict[str, Any]:
    try:
        seen = wait_for_any(home, followed, until, timeout_s=within_s, since=since)
    except TimedOut as late:
        return {"session": None, "has_ended": False, "not_yet": late.what}
    return {"session": _shape(seen), "has_ended": has_ended(seen), "not_yet": ""}


def _outcome(home: str, seen: Observation, since: datetime, within_s: float) -> dict[str, Any]:
    try:
        found = wait_for_outcome(home, seen, since, timeout_s=within_s, hub_is_up=lambda: True)
    except TimedOut as late:
        nothing = dict.fromkeys(("outcome", "exit_code", "answer", "usage", "session"))
        return {**nothing, "has_ended": False, "not_yet": late.what}
    return {
        "outcome": found.word,
        "exit_code": found.exit_code,
        "answer": readable(found.answer),
        "usage": None if found.used is None else {**asdict(found.used), "total": found.used.total},
        "has_ended": has_ended(found.seen),
        "not_yet": "",
        "session": _shape(found.seen),
    }


def _shape(seen: Observation) -> dict[str, Any]:
    return dict(to_json(seen, datetime.now(UTC)))
