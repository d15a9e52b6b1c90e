"""``/api/folders``: what a path may become while it is typed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from hitchpost.hub.http import schemas
from hitchpost.hub.http.depends import TheHub
from hitchpost.ops.views import folders
from hitchpost.text import readable

Typed = Annotated[schemas.Path, Query(description="What is typed; ``~`` is the home folder of the hub's user.")]
Branch = Annotated[schemas.Name, Query(description="A name for a new branch in the repository there.")]
router = APIRouter()


@router.get("/api/folders", response_model=schemas.Folders)
async def get_folders(hub: TheHub, path: Typed = "~/", branch: Branch = "") -> dict[str, Any]:
    found: folders.Folders = await hub.look_at_files(folders.look, hub.home, path, branch)
    return readable(asdict(found))
