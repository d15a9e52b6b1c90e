"""``/api/workspaces``: list, make and remove the folders that agents work in."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from hitchpost.hub.http.depends import CallersGrant, TheHub
from hitchpost.hub.http.grants import Grant
from hitchpost.hub.http.permissions import WORKSPACES, visible_to
from hitchpost.hub.http.schemas import Folder, Name, Strict
from hitchpost.ops.workspaces import make
from hitchpost.text import readable
from hitchpost.workspaces import store
from hitchpost.workspaces.overview import overview, overviews
from hitchpost.workspaces.removal import remove

router = APIRouter()


class NewWorkspace(Strict):
    """A worktree on a branch, new or there already, of the repository that ``folder`` is in."""

    folder: Folder
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


@router.get(WORKSPACES, response_model=list[WorkspaceView])
async def list_workspaces(hub: TheHub, grant: CallersGrant) -> list[dict[str, Any]]:
    """Of those that the caller may see: the workspaces of its sessions."""
    ids = None
    if grant.sessions is not None:
        sessions = visible_to(grant, hub.registry.listed())
        ids = frozenset(session.shape["workspace"]["id"] for session in sessions)
    return await hub.look_at_files(_listed, hub.home, grant, ids)


@router.post(WORKSPACES, response_model=Made, status_code=201)
async def create_workspace(hub: TheHub, body: NewWorkspace) -> dict[str, Any]:
    return await hub.look_at_files(_create, hub.home, body)


@router.delete(f"{WORKSPACES}/{{workspace}}", response_model=Removed)
async def remove_workspace(hub: TheHub, workspace: Name, force: bool = False) -> dict[str, Any]:
    """Refused while in use or with uncommitted work; ``force`` keeps that work in a snapshot first."""
    return await hub.look_at_files(_remove, hub.home, workspace, force)


def _listed(home: str, grant: Grant, ids: frozenset[str] | None) -> list[dict[str, Any]]:
    """The workspaces with these ids, all when None, with the users that the grant covers."""
    workspaces = [workspace for workspace in store.listed(home) if ids is None or workspace.id in ids]
    views = overviews(home, workspaces)
    for view in views:
        view["users"] = [user for user in view["users"] if grant.sees(user["session"])]
    return readable(views)


def _create(home: str, new: NewWorkspace) -> dict[str, Any]:
    workspace, notes = make(home, new.folder, new.branch)
    return readable({"workspace": overview(home, workspace), "notes": notes})


def _remove(home: str, name: str, force: bool) -> dict[str, Any]:
    workspace = store.find(home, name)
    return {"id": workspace.id, "snapshot": remove(home, workspace, force=force).snapshot}
