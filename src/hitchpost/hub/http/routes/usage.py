"""``/api/usage``: what agents have used."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Query

from hitchpost.hub.http.depends import CallersGrant, TheHub
from hitchpost.hub.http.permissions import visible_to
from hitchpost.hub.http.schemas import Usage
from hitchpost.ops.views.usage import USUAL_DAYS, days_ago, limits, shape, total, used

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
    await hub.registry.refresh()
    reached = limits(row.shape for row in visible_to(grant, hub.registry.listed()) if row.lives)
    sums = [shape(one) for one in found]
    return {"by": by, "since": since.isoformat(), "sums": sums, "total": shape(total(found)), "limits": reached}
