"""``/api/catalog``: what a session can be made of on the hub's machine."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from hitchpost import settings as config
from hitchpost.fleet.profiles import USUAL, FleetOptions, options
from hitchpost.hub.http.depends import CallersGrant, TheHub, ThePeople
from hitchpost.hub.http.grants import Forbidden
from hitchpost.hub.http.schemas import Catalog
from hitchpost.model.facts import is_elsewhere
from hitchpost.ops.views import catalog

router = APIRouter()


@router.get("/api/catalog", response_model=Catalog)
async def get_catalog(hub: TheHub, grant: CallersGrant, people: ThePeople) -> dict[str, Any]:
    """What the caller may not use is missing, with the reason."""
    found = await hub.do(_catalog)
    for runtime in found["runtimes"]:
        try:
            people.check_runtime(grant, runtime["name"])
        except Forbidden as refusal:
            runtime |= {"available": False, "missing": refusal.message}
    return found


def _catalog() -> dict[str, Any]:
    settings, runtimes = config.load(), catalog.runtimes()
    in_pods = any(is_elsewhere(runtime.name) for runtime in runtimes)
    return {
        "agents": [asdict(agent) for agent in catalog.agents(os.environ, settings)],
        "runtimes": [asdict(runtime) for runtime in runtimes],
        "profiles": _profiles(options(settings)) if in_pods else [],
        "detach_key": settings.detach_key,
    }


def _profiles(fleet: FleetOptions) -> list[dict[str, str]]:
    """The usual one first."""
    names = sorted({USUAL, *fleet.profiles}, key=lambda name: (name != fleet.profile, name))
    chosen = [(name, fleet.chosen(name)) for name in names]
    return [{"name": name, "cpu": each.cpu, "memory": each.memory, "storage": each.storage} for name, each in chosen]
