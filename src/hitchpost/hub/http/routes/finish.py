"""``/api/sessions/{session}/finish``: what finishing a session's work would do, and doing it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field, StringConstraints

from hitchpost.hub.http.depends import Actor, PathSession, TheHub
from hitchpost.hub.http.permissions import SESSION
from hitchpost.hub.http.schemas import Name, Session, Strict
from hitchpost.ops.sessions.finish import Steps, finish, finish_plan

router = APIRouter()
Message = Annotated[str, StringConstraints(max_length=10_000, pattern=r"^[^\x00]*$")]
Into = Annotated[Name | None, Query(description="The branch to merge into; your main worktree's when it is missing.")]


class CommitPlan(BaseModel):
    """Files that would be committed; ``refusal`` says why they cannot be, and is empty when they can."""

    changed: list[str]
    new: list[str]
    refusal: str


class MergePlan(BaseModel):
    """``folder`` is your own worktree whose files follow the branch, if one does."""

    into: str
    kind: Literal["up-to-date", "fast-forward", "merge", "conflicts"]
    commits: int
    conflicts: list[str]
    folder: str | None
    refusal: str


class PushPlan(BaseModel):
    remote: str
    url: str


class FinishPlan(BaseModel):
    """``working``: the agent works, so nothing is done without ``force``. ``message`` is what a commit says if nobody
    says anything else. ``pull_request`` is a command, where there is one."""

    working: bool
    live: bool
    branch: str
    folder: str
    message: str
    commit: CommitPlan
    merge: MergePlan | None
    push: PushPlan | None
    pull_request: list[str] | None


class FinishWish(Strict):
    """The steps to do, in this order."""

    commit: bool = False
    merge: bool = False
    push: bool = False
    remove: bool = False
    message: Message = ""
    into: Name | None = None
    force: bool = False


class Pushed(PushPlan):
    branch: str


class Finished(BaseModel):
    """What was done: the commits, the ref that keeps what was not committed before, the folder that was removed."""

    snapshot: str | None
    commit: str | None
    merge: str | None
    push: Pushed | None
    removed: str | None
    pull_request: list[str] | None
    notes: list[str] = Field(default_factory=list)
    session: Session


@router.get(f"{SESSION}/finish", response_model=FinishPlan)
async def plan_finish(hub: TheHub, session: PathSession, into: Into = None) -> dict[str, Any]:
    """What would be committed, how it would be merged, and where it would be pushed. Nothing is changed."""
    return await hub.look_at_files_of(session.id, finish_plan, hub.home, session.id, into)


@router.post(f"{SESSION}/finish", response_model=Finished)
async def finish_session(hub: TheHub, session: PathSession, body: FinishWish, actor: Actor) -> dict[str, Any]:
    """A step that is refused ends it; a merge that conflicts changes nothing. No hook or filter is run."""
    steps = Steps(**body.model_dump())
    done = await hub.change_files_of(session.id, finish, hub.home, session.id, steps, actor=actor)
    return {**done, "session": (await hub.after(session.id)).shape}
