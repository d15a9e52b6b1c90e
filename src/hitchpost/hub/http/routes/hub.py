"""``/api/health``, ``/api/status``, ``/metrics`` and ``/api/openapi.json``: the hub about itself."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

import hitchpost
from hitchpost.hub.core import Hub
from hitchpost.hub.http import schemas
from hitchpost.hub.http.agent_view import Views
from hitchpost.hub.http.depends import CallersGrant, TheHub
from hitchpost.hub.http.grants import Grant
from hitchpost.hub.http.metrics import Metrics
from hitchpost.hub.http.permissions import listed_for, visible_to
from hitchpost.hub.session import HubSession
from hitchpost.ops.views.services import containers, counts

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
router = APIRouter()


async def metrics_of(request: Request) -> Metrics:
    metrics: Metrics = request.app.state.metrics
    return metrics


@router.get("/api/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """In a thread: working it out takes a tenth of a second."""
    return JSONResponse(await asyncio.to_thread(request.app.openapi))


@router.get("/api/health", response_model=schemas.Health, responses={500: {"model": schemas.ErrorBody}})
async def health(hub: TheHub, grant: CallersGrant) -> dict[str, Any]:
    return health_of(hub, grant)


@router.get("/api/status", response_model=schemas.Status)
async def status(hub: TheHub, grant: CallersGrant, views: Views) -> dict[str, Any]:
    rows = await listed_for(grant, hub)
    observations = (row.latest for row in rows if isinstance(row, HubSession) and row.latest)
    return {
        "hub": health_of(hub, grant),
        "counts": counts(row.line for row in rows),
        "containers": containers(observations, is_up=True),
        "agents": await views.of_all(rows),
        "sessions": [row.shape for row in rows],
    }


@router.get("/metrics", response_class=PlainTextResponse)
async def scrape(hub: TheHub, grant: CallersGrant, metrics: Annotated[Metrics, Depends(metrics_of)]) -> Response:
    await hub.registry.refresh()
    return Response(await metrics.text(grant), media_type=PROMETHEUS)


def health_of(hub: Hub, grant: Grant) -> dict[str, Any]:
    """Problems are for who sees all sessions: they may name any of them."""
    sessions = visible_to(grant, hub.registry.by_id.values())
    return {
        "ok": True,
        "version": hitchpost.__version__,
        "pid": os.getpid(),
        "uptime_s": round(time.monotonic() - hub.began, 3),
        "sessions": len(sessions),
        "live": sum(session.watch is not None for session in sessions),
        "problems": hub.problems if grant.sees_all else [],
    }
