"""``/api/workspaces``: list, make and remove the folders that agents work in."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from hitchpost.hub.http.depends import CallersGrant, TheHub
from hitchpost.hub.http.permissions import WORKSPACES, visible_to
from hitchpost.hub.http.schemas import Name, Place, Strict
from hitchpost.ops.views.folders import full_path
from hitchpost.ops.workspaces import make
from hitchpost.text import readable
from hitchpost.workspaces import store
from hitchpost.workspaces.overview import overview, overviews
from hitchpost.workspaces.removal import remove

router = APIRouter()


class NewWorkspace(Strict):
    """A worktree on a branch, new or there already, of the repository that ``folder`` is in."""

    folder: Place
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
    ids = covered = None
    if not grant.sees_all:
        sessions = visible_to(grant, hub.registry.listed())
        ids = frozenset(session.shape["workspace"]["id"] for session in sessions)
        covered = frozenset(session.id for session in sessions)
    return await hub.look_at_files(_listed, hub.home, covered, ids)


@router.post(WORKSPACES, response_model=Made, status_code=201)
async def create_workspace(hub: TheHub, body: NewWorkspace) -> dict[str, Any]:
    return await hub.look_at_files(_create, hub.home, body)


@router.delete(f"{WORKSPACES}/{{workspace}}", response_model=Removed)
async def remove_workspace(hub: TheHub, workspace: Name, force: bool = False) -> dict[str, Any]:
    """Refused while in use or with uncommitted work; ``force`` keeps that work in a snapshot first."""
    return await hub.look_at_files(_remove, hub.home, workspace, force)


def _listed(home: str, sessions: frozenset[str] | None, ids: frozenset[str | None] | None) -> list[dict[str, Any]]:
    """The workspaces with these ids, all when None, with those of their users that are among ``sessions``."""
    workspaces = [workspace for workspace in store.listed(home) if ids is None or workspace.id in ids]
    views = overviews(home, workspaces)
    for view in views:
        view["users"] = [user for user in view["users"] if sessions is None or user["session"] in sessions]
    return readable(views)


def _create(home: str, new: NewWorkspace) -> dict[str, Any]:
    workspace, notes = make(home, full_path(new.folder), new.branch)
    return readable({"workspace": overview(home, workspace), "notes": notes})


def _remove(home: str, name: str, force: bool) -> dict[str, Any]:
    workspace = store.find(home, name)
    return {"id": workspace.id, "snapshot": remove(home, workspace, force=force).snapshot}
