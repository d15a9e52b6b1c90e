"""``/api/usage``: what agents have used."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Query

from hitchpost.hub.http.depends import CallersGrant, TheHub
from hitchpost.hub.http.schemas import Usage
from hitchpost.ops.views.usage import USUAL_DAYS, days_ago, shape, total, used

LONGEST_DAYS = 3660
router = APIRouter()


@router.get("/api/usage", response_model=Usage)
async def get_usage(
    hub: TheHub,
    grant: CallersGrant,
    by: Literal["day", "agent", "model", "project", "session"] = "day",
    days: int = Query(USUAL_DAYS, ge=0, le=LONGEST_DAYS),
) -> dict[str, Any]:
    """Today and so many days before it. Who may see some sessions only gets the sums of those."""
    since = days_ago(days)
    found = await hub.do(lambda: used(hub.home, by, since=since, sessions=grant.sessions))
    return {"by": by, "since": since.isoformat(), "sums": [shape(one) for one in found], "total": shape(total(found))}
