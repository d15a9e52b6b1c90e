"""``/api/catalog``: what a session can be made of on the hub's machine."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from hitchpost import settings as config
from hitchpost.hub.http.depends import TheHub
from hitchpost.hub.http.schemas import Catalog
from hitchpost.ops.views import catalog

router = APIRouter()


@router.get("/api/catalog", response_model=Catalog)
async def get_catalog(hub: TheHub) -> dict[str, Any]:
    return await hub.do(_catalog)


def _catalog() -> dict[str, Any]:
    agents = catalog.agents(os.environ, config.load())
    return {
        "agents": [asdict(agent) for agent in agents],
        "runtimes": [asdict(runtime) for runtime in catalog.runtimes()],
    }
