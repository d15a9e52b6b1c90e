"""``/api/sessions/{session}``: what can be done with a session."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Response

from hitchpost.hub.http import schemas
from hitchpost.hub.http.depends import Actor, PathSession, TheHub
from hitchpost.hub.http.needs import SESSION
from hitchpost.hub.session import HubSession
from hitchpost.ops.sessions.edit import edit
from hitchpost.text import readable

router = APIRouter()


@router.patch(SESSION, response_model=schemas.Session)
async def edit_session(hub: TheHub, session: PathSession, body: schemas.Changes, actor: Actor) -> dict[str, Any]:
    await hub.do(edit, hub.home, session.id, actor=actor, **body.model_dump())
    return (await hub.after(session.id)).shape


@router.delete(SESSION, status_code=204)
async def remove_session(hub: TheHub, session: PathSession, actor: Actor, force: bool = False) -> Response:
    await hub.remove(session.id, actor=actor, force=force)
    return Response(status_code=204)


@router.post(f"{SESSION}/prompt", response_model=schemas.PromptAnswer)
async def prompt_session(hub: TheHub, session: PathSession, body: schemas.Prompt, actor: Actor) -> dict[str, Any]:
    after, receipt = await hub.prompt(session.id, body.text, actor=actor, enter=body.enter, force=body.force)
    return {**receipt, "session": after.shape}


@router.post(f"{SESSION}/stop", response_model=schemas.Session)
async def stop_session(
    hub: TheHub, session: PathSession, actor: Actor, body: Annotated[schemas.StopWish | None, Body()] = None
) -> dict[str, Any]:
    return (await hub.stop(session.id, actor=actor, reason=body.reason if body else "")).shape


@router.post(f"{SESSION}/restart", response_model=schemas.SessionWithNotes)
async def restart_session(hub: TheHub, session: PathSession, actor: Actor) -> dict[str, Any]:
    after, notes = await hub.restart(session.id, actor=actor)
    return {"session": after.shape, "notes": readable(notes)}


@router.post(f"{SESSION}/resume", response_model=schemas.RecordAnswer)
async def resume_session(hub: TheHub, session: PathSession, actor: Actor) -> dict[str, Any]:
    after, notes = await hub.resume(session.id, actor=actor)
    return record_answer(after, notes)


@router.post(f"{SESSION}/cancel", response_model=schemas.RecordAnswer)
async def cancel_session(hub: TheHub, session: PathSession, actor: Actor) -> dict[str, Any]:
    after = await hub.cancel(session.id, actor=actor)
    return {**record_answer(after, []), "cancelled": True}


@router.post(f"{SESSION}/archive", response_model=schemas.Session)
async def archive_session(hub: TheHub, session: PathSession, actor: Actor) -> dict[str, Any]:
    return (await hub.archive(session.id, actor=actor)).shape


def record_answer(session: HubSession, notes: list[str]) -> dict[str, Any]:
    shape = session.shape
    return {"sessionId": session.id, "status": shape["record"], "notes": readable(notes), "session": shape}
