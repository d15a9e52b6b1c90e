"""``/api/sessions``: listing sessions, and creating them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from hitchpost.errors import UsageError
from hitchpost.hub.http import schemas
from hitchpost.hub.http.depends import Actor, CallersGrant, TheHub, ThePeople
from hitchpost.hub.http.errors import status_and_body
from hitchpost.hub.http.permissions import resolve, visible_to
from hitchpost.hub.session import HubSession
from hitchpost.model.record import chosen
from hitchpost.ops.sessions.create import LONGEST_NAME
from hitchpost.ops.sessions.sandbox import not_brought
from hitchpost.ops.sessions.spec import SandboxOptions, SessionSpec
from hitchpost.ops.views.advice import way_on
from hitchpost.ops.views.folders import full_path
from hitchpost.ops.views.listing import as_json
from hitchpost.ops.views.observe import Observation
from hitchpost.ops.views.session_json import exported
from hitchpost.ops.views.table import as_table
from hitchpost.store import files
from hitchpost.text import readable

Everything = Annotated[bool, Query(alias="all", description="Archived and error records too.")]
Records = Annotated[
    Sequence[schemas.RecordNames], Query(description="Only sessions with such records; more than one with commas.")
]
MOST_COLUMNS = 10_000
router = APIRouter()


class Lines(StreamingResponse):
    media_type = "application/x-ndjson"


@router.get("/api/sessions", response_model=list[schemas.Session])
async def list_sessions(
    hub: TheHub, grant: CallersGrant, everything: Everything = False, record: Records = ()
) -> Response:
    """As text that is ready: thousands of sessions are not taken apart and put together again."""
    records = chosen(record, everything=everything)
    await hub.registry.refresh()
    texts = [row.text for row in visible_to(grant, hub.registry.rows(records=records))]
    return Response(as_json(texts), media_type="application/json")


@router.post("/api/sessions", response_model=schemas.SessionWithNotes, status_code=201)
async def create_session(
    request: Request, hub: TheHub, body: schemas.NewSession, grant: CallersGrant, actor: Actor, people: ThePeople
) -> Any:
    """To who accepts ``application/x-ndjson``, the answer comes in two lines: the session when its run has begun, then
    the same when its agent is ready, or the error that it came to."""
    people.check_runtime(grant, body.runtime)
    fields = {**body.model_dump(), "owner": grant.user}
    if body.folder is None and body.repo is None:
        raise UsageError(
            "say where it works: a folder of the hub's machine, or a repository to clone", field="folder",
            cli_hint="--folder DIR or --repo URL",
        )  # fmt: skip
    fields["repository"] = fields.pop("repo") or ""
    fields["folder"] = "" if body.folder is None else full_path(body.folder)
    size, until_ready = (fields.pop("cols"), fields.pop("rows")), fields.pop("until_ready")
    fields["command"] = tuple(fields["command"])
    sandbox = fields.pop("sandbox") or {}
    fields["sandbox"] = SandboxOptions(**{**sandbox, "mounts": tuple(sandbox.get("mounts", ()))})
    spec = SessionSpec(**fields, size=size)
    if Lines.media_type not in request.headers.get("accept", ""):
        return _made(*await hub.create(spec, actor=actor, until_ready=until_ready))
    session, work = await hub.create_in_steps(spec, actor=actor)

    async def lines() -> AsyncIterator[str]:
        yield json.dumps(_made(session, [])) + "\n"
        done = await asyncio.shield(work)
        yield json.dumps(status_and_body(done, grant)[1] if isinstance(done, Exception) else _made(*done)) + "\n"

    return Lines(lines(), status_code=201)


def _made(session: HubSession, notes: list[str]) -> dict[str, Any]:
    return {"session": session.shape, "notes": readable(notes)}


@router.get("/api/sessions/export", response_model=schemas.Export)
async def export_sessions(hub: TheHub, grant: CallersGrant) -> dict[str, Any]:
    """A sessions file: every session that can be read, archived ones too."""
    await hub.registry.refresh()
    sessions = visible_to(grant, hub.registry.listed())
    for session in sessions:
        await hub.registry.load(session.id)
    now = datetime.now(UTC)
    return {
        "version": 1,
        "exported_at": files.stamp(),
        "sessions": [exported(session.latest, now) for session in sessions if session.latest is not None],
    }


@router.get("/api/sessions/table", response_class=PlainTextResponse)
async def sessions_table(
    hub: TheHub,
    grant: CallersGrant,
    everything: Everything = False,
    record: Records = (),
    colour: bool = False,
    width: Annotated[int, Query(ge=0, le=MOST_COLUMNS)] = 0,
) -> Response:
    """What ``hitch ps`` prints. It is made in a thread: thousands of lines would hold up the event loop."""
    records = chosen(record, everything=everything)
    await hub.registry.refresh()
    lines = [row.line for row in visible_to(grant, hub.registry.rows(records=records))]
    return PlainTextResponse(await hub.do(as_table, lines, colour=colour, now_s=time.time(), width=width))


@router.get("/api/find", response_model=schemas.Found)
async def find_session(
    hub: TheHub,
    grant: CallersGrant,
    session: Annotated[str, Query(max_length=LONGEST_NAME, description="As in a path; it may hold any letter.")],
) -> dict[str, Any]:
    """The session that a word means, and what the command line says about it."""
    await hub.registry.refresh()
    found = hub.registry.find(await resolve(hub, grant, session))
    return {"session": found.shape, **await hub.do(_told_of, hub.home, found.observation)}


def _told_of(home: str, seen: Observation) -> dict[str, Any]:
    words = {"word": seen.record.word, "way_on": way_on(seen), "notes": not_brought(home, seen.record)}
    return readable(words)
