"""``/api/usage``: what agents have used."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from hitchpost.hub.http.depends import CallersGrant, TheHub
from hitchpost.hub.http.permissions import covered_by, resolve, visible_to
from hitchpost.hub.http.schemas import Usage
from hitchpost.ops.sessions.create import LONGEST_NAME
from hitchpost.ops.views.usage import USUAL_DAYS, days_ago, limits, shape, total, used

LONGEST_DAYS = 3660
router = APIRouter()


@router.get("/api/usage", response_model=Usage)
async def get_usage(
    hub: TheHub,
    grant: CallersGrant,
    by: Literal["day", "agent", "model", "project", "session"] = "day",
    days: int = Query(USUAL_DAYS, ge=0, le=LONGEST_DAYS),
    session: str | None = Query(None, max_length=LONGEST_NAME),
    since: Annotated[AwareDatetime | None, Query(description="From this moment on, whatever days says.")] = None,
) -> dict[str, Any]:
    """Today and so many days before it, of all sessions or of one. Who may see some only gets the sums of those."""
    begin, sessions = days_ago(days) if since is None else since, covered_by(grant, hub)
    if session is not None:
        sessions = frozenset((hub.registry.find(await resolve(hub, grant, session)).id,))
    found = await hub.do(lambda: used(hub.home, by, since=begin, sessions=sessions))
    await hub.registry.refresh()
    rows = [row for row in visible_to(grant, hub.registry.listed()) if sessions is None or row.id in sessions]
    reached = limits(row.shape for row in rows if row.lives)
    sums = [shape(one) for one in found]
    return {"by": by, "since": begin.isoformat(), "sums": sums, "total": shape(total(found)), "limits": reached}
