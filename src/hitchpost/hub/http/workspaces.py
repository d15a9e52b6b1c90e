"""``/api/workspaces``: list, make and remove the folders that agents work in."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, FastAPI
from pydantic import BaseModel

from hitchpost.errors import WorkspaceExists
from hitchpost.hub.core import Hub
from hitchpost.hub.http.grants import Grant
from hitchpost.hub.http.needs import grant_of, seen_by
from hitchpost.hub.http.schemas import Name, Path, Strict
from hitchpost.text import readable
from hitchpost.workspaces import project, store, worktree
from hitchpost.workspaces.git import silent
from hitchpost.workspaces.overview import overview
from hitchpost.workspaces.removal import remove


class NewWorkspace(Strict):
    """A worktree on a branch, new or there already, of the repository that ``folder`` is in."""

    folder: Path
    branch: Name


class WorkspaceUser(BaseModel):
    session: str
    name: str
    run: int
    reader: bool
    since: str


class WorkspaceView(BaseModel):
    id: str
    name: str
    path: str
    repo: str | None
    branch: str | None
    base: str | None
    managed: bool
    capacity: int
    created_at: str
    removed_at: str | None
    setup_done: bool
    state: str
    text: str
    users: list[WorkspaceUser]
    snapshots: list[str]


class Made(BaseModel):
    workspace: WorkspaceView
    notes: list[str]


class Removed(BaseModel):
    id: str
    snapshot: str | None


def serve_workspaces(app: FastAPI, hub: Hub) -> None:
    home = hub.home

    def shapes(grant: Grant, wanted: frozenset[str] | None) -> list[dict[str, Any]]:
        listed = [one for one in store.listed(home) if wanted is None or one.id in wanted]
        found: list[dict[str, Any]] = [overview(home, one) for one in listed]
        for one in found:
            one["users"] = [user for user in one["users"] if grant.sees(user["session"])]
        return readable(found)

    def make(wanted: NewWorkspace) -> dict[str, Any]:
        made = worktree.make(home, wanted.folder, wanted.branch)
        if not made.is_new:
            raise WorkspaceExists(made.workspace.name, made.workspace.path)
        workspace, notes = project.set_up(home, made.workspace, silent)
        return readable({"workspace": overview(home, workspace), "notes": [*made.notes, *notes]})

    def take_away(workspace: str, force: bool) -> dict[str, Any]:
        found = store.find(home, workspace)
        return {"id": found.id, "snapshot": remove(home, found, force=force).snapshot}

    @app.get("/api/workspaces", response_model=list[WorkspaceView])
    async def listing(grant: Annotated[Grant, Depends(grant_of)]) -> list[dict[str, Any]]:
        """Of those that the caller may see: the workspaces of its sessions."""
        wanted = None
        if grant.sessions is not None:
            mine = seen_by(grant, hub.registry.listed())
            wanted = frozenset(one.shape["workspace"]["id"] for one in mine)
        return await hub.look_at_files(shapes, grant, wanted)

    @app.post("/api/workspaces", response_model=Made, status_code=201)
    async def create(body: NewWorkspace) -> dict[str, Any]:
        return await hub.look_at_files(make, body)

    @app.delete("/api/workspaces/{workspace}", response_model=Removed)
    async def delete(workspace: Name, force: bool = False) -> dict[str, Any]:
        """Refused while in use or with uncommitted work; ``force`` keeps that work in a snapshot first."""
        return await hub.look_at_files(take_away, workspace, force)
