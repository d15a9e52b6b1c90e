"""``/api/sessions/{session}``: what can be done with a session."""

from __future__ import annotations

from base64 import b64decode
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Response
from fastapi.responses import JSONResponse

from hitchpost.errors import UsageError
from hitchpost.hub.http import schemas
from hitchpost.hub.http.depends import Actor, CallersGrant, PathSession, TheHub, ThePeople
from hitchpost.hub.http.grants import Need
from hitchpost.hub.http.permissions import SESSION
from hitchpost.hub.session import HubSession
from hitchpost.ops.sessions.answer import answer
from hitchpost.ops.sessions.edit import edit
from hitchpost.ops.sessions.interrupt import interrupt
from hitchpost.ops.sessions.prompt import take_back
from hitchpost.ops.sessions.restore import bring_back_of
from hitchpost.ops.views.session_types import Session as SessionJson
from hitchpost.store import files
from hitchpost.text import readable

router = APIRouter()


@router.patch(SESSION, response_model=schemas.Session)
async def edit_session(hub: TheHub, session: PathSession, body: schemas.Changes, actor: Actor) -> SessionJson:
    await hub.change(session.id, edit, hub.home, session.id, actor=actor, **body.model_dump())
    return (await hub.after(session.id)).shape


@router.delete(SESSION, status_code=204, responses={200: {"model": schemas.Lost}})
async def remove_session(hub: TheHub, session: PathSession, actor: Actor, force: bool = False) -> Response:
    """204; with ``force``, 200 and what was lost, when commits of its container could not be brought out."""
    lost = await hub.remove(session.id, actor=actor, force=force)
    return JSONResponse(schemas.Lost(lost=readable(lost)).model_dump()) if lost else Response(status_code=204)


@router.post(f"{SESSION}/prompt", response_model=schemas.PromptAnswer)
async def prompt_session(hub: TheHub, session: PathSession, body: schemas.Prompt, actor: Actor) -> dict[str, Any]:
    images = await hub.do(_decoded, body.images) if body.images else ()
    since = files.stamp()
    after, receipt = await hub.prompt(
        session.id,
        body.text,
        actor=actor,
        enter=body.enter,
        force=body.force,
        resumes=body.resume,
        images=images,
    )
    return {**receipt, "since": since, "session": after.shape}


def _decoded(images: list[str]) -> tuple[bytes, ...]:
    try:
        return tuple(b64decode(text, validate=True) for text in images)
    except ValueError:
        raise UsageError("expected images in base64, but got something else", field="images") from None


@router.delete(f"{SESSION}/prompts/{{prompt}}", status_code=204)
async def take_prompt_back(hub: TheHub, session: PathSession, prompt: Annotated[str, Path(max_length=20)]) -> Response:
    """One that waits, by its name in the chat."""
    await hub.change(session.id, take_back, hub.home, session.id, prompt)
    return Response(status_code=204)


@router.post(f"{SESSION}/answer", response_model=schemas.Session)
async def answer_session(hub: TheHub, session: PathSession, body: schemas.Answer, actor: Actor) -> SessionJson:
    await hub.change(session.id, answer, hub.home, session.id, actor=actor, **body.model_dump())
    return (await hub.after(session.id)).shape


@router.post(f"{SESSION}/interrupt", response_model=schemas.Session)
async def interrupt_session(hub: TheHub, session: PathSession, actor: Actor) -> SessionJson:
    """End what an agent over ACP works on, and forget the prompts that wait. Its run goes on."""
    await hub.do(interrupt, hub.home, session.id, actor=actor)
    return (await hub.after(session.id)).shape


@router.post(f"{SESSION}/stop", response_model=schemas.Session)
async def stop_session(
    hub: TheHub, session: PathSession, actor: Actor, body: Annotated[schemas.StopWish | None, Body()] = None
) -> SessionJson:
    wish = body or schemas.StopWish()
    return (await hub.stop(session.id, actor=actor, reason=wish.reason, grace_s=wish.grace_s)).shape


@router.post(f"{SESSION}/restart", response_model=schemas.SessionWithNotes)
async def restart_session(
    hub: TheHub,
    session: PathSession,
    grant: CallersGrant,
    actor: Actor,
    body: Annotated[schemas.RestartWish | None, Body()] = None,
) -> dict[str, Any]:
    """The agent begins a new conversation. Its first prompt is sent only when that is asked for."""
    wish = body or schemas.RestartWish()
    if wish.workspace is not None:
        grant.check(Need.CHANGE_ALL)
    after, notes = await hub.restart(
        session.id, actor=actor, again=wish.again, workspace=wish.workspace, force=wish.force
    )
    return {"session": after.shape, "notes": readable(notes)}


@router.post(f"{SESSION}/resume", response_model=schemas.RecordAnswer)
async def resume_session(
    hub: TheHub, session: PathSession, actor: Actor, body: Annotated[schemas.ResumeWish | None, Body()] = None
) -> dict[str, Any]:
    """The agent goes on with its conversation, where it can; ``resumed`` says whether it does."""
    after, begun = await hub.resume(session.id, actor=actor, **(body or schemas.ResumeWish()).model_dump())
    return {**record_answer(after, list(begun.notes)), "resumed": begun.resumed}


@router.post(f"{SESSION}/fork", response_model=schemas.SessionWithNotes, status_code=201)
async def fork_session(
    hub: TheHub,
    session: PathSession,
    grant: CallersGrant,
    actor: Actor,
    people: ThePeople,
    body: Annotated[schemas.ForkWish | None, Body()] = None,
) -> dict[str, Any]:
    """A new session with the conversation, and the uncommitted work in a worktree on a new branch. It belongs to whom
    the other one does."""
    people.check_runtime(grant, session.shape["runtime"])
    after, notes = await hub.fork(session.id, name=None if body is None else body.name, actor=actor)
    return {"session": after.shape, "notes": readable(notes)}


@router.post(f"{SESSION}/cancel", response_model=schemas.RecordAnswer)
async def cancel_session(hub: TheHub, session: PathSession, actor: Actor) -> dict[str, Any]:
    after = await hub.cancel(session.id, actor=actor)
    return {**record_answer(after, []), "cancelled": True}


@router.post(f"{SESSION}/archive", response_model=schemas.Session)
async def archive_session(hub: TheHub, session: PathSession, actor: Actor) -> SessionJson:
    return (await hub.archive(session.id, actor=actor)).shape


@router.post(f"{SESSION}/unarchive", response_model=schemas.Session)
async def unarchive_session(hub: TheHub, session: PathSession, actor: Actor) -> SessionJson:
    """It is suspended then. If its name belongs to another session by now, it gets one that is free."""
    return (await hub.unarchive(session.id, actor=actor)).shape


@router.post(f"{SESSION}/restore", response_model=schemas.SessionWithNotes)
async def restore_session(hub: TheHub, session: PathSession, actor: Actor) -> dict[str, Any]:
    """The session's workspace, which was deleted, is made again from its branch and its newest snapshot."""
    notes = await hub.change_files_of(session.id, bring_back_of, hub.home, session.id, actor=actor)
    return {"session": (await hub.after(session.id)).shape, "notes": readable(notes)}


def record_answer(session: HubSession, notes: list[str]) -> dict[str, Any]:
    shape = session.shape
    return {"sessionId": session.id, "status": shape["record"], "notes": readable(notes), "session": shape}
