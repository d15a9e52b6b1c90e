"""``/api/sessions/{session}``: what can be read about a session."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime

from hitchpost import wire
from hitchpost.acp import chat
from hitchpost.hub.http import schemas
from hitchpost.hub.http.depends import PathSession, TheHub
from hitchpost.hub.http.permissions import SESSION
from hitchpost.model.headline import told
from hitchpost.ops.sessions.count import note
from hitchpost.ops.views.diff import changed, diff_shape
from hitchpost.ops.views.explain import explain
from hitchpost.ops.views.moments import rfc3339
from hitchpost.ops.views.session_types import Session as SessionJson
from hitchpost.store import files, images, runfiles
from hitchpost.store import story as stories
from hitchpost.store.home import run_folder
from hitchpost.terminal import output
from hitchpost.terminal.recording import asciicast
from hitchpost.text import readable
from hitchpost.workspaces.diff import Difference

PART_CHARS = 256 * 1024
router = APIRouter()


class Octets(Response):
    media_type = "application/octet-stream"


class Asciicast(StreamingResponse):
    media_type = "application/x-asciicast"


@router.get(SESSION, response_model=schemas.Session)
async def get_session(session: PathSession) -> SessionJson:
    return session.shape


@router.get(f"{SESSION}/story", response_model=list[schemas.StoryLine])
async def get_story(hub: TheHub, session: PathSession) -> list[dict[str, Any]]:
    """Lines that tell what the session became have a ``headline`` and its ``colour``, as the session has them."""
    lines = await hub.do(stories.read, session.observation.folder)
    return readable([{**line, **_look(line)} for line in lines])


def _look(line: dict[str, object]) -> dict[str, str]:
    found = told(line)
    return {} if found is None else {"headline": found[0], "colour": found[1]}


@router.get(f"{SESSION}/runs", response_model=list[schemas.Run])
async def get_runs(hub: TheHub, session: PathSession) -> list[dict[str, Any]]:
    seen = session.observation
    return readable(await hub.do(_runs, seen.folder, seen.facts.run, session.shape["state"]))


@router.get(f"{SESSION}/screen", response_model=schemas.Screen)
async def get_screen(hub: TheHub, session: PathSession) -> dict[str, Any]:
    await hub.bring_output(session)
    folder = os.path.join(session.observation.run_folder, wire.OUTPUT)
    end = (await hub.do(output.bounds, folder))[1]
    return {"text": await hub.screens.text(folder, end), "offset": end}


@router.get(f"{SESSION}/chat", response_model=schemas.Chat, response_model_exclude_unset=True)
async def get_chat(hub: TheHub, session: PathSession, start: Annotated[int, Query(ge=0)] = 0) -> dict[str, Any]:
    """A part of what was said over ACP, from the byte ``start`` on; ``next`` is where the next part begins."""
    lines, end = await hub.do(chat.read, session.observation.folder, start)
    return {"lines": readable(lines), "next": end}


@router.get(f"{SESSION}/images/{{image}}", response_class=Response)
async def get_image(hub: TheHub, session: PathSession, image: Annotated[str, Path(max_length=64)]) -> Response:
    """An image that went with a prompt, by its name in the chat."""
    try:
        data, kind = await hub.do(images.read, session.observation.folder, image)
    except files.Missing:
        raise HTTPException(404, "there is no such image") from None
    return Response(data, media_type=kind)


@router.get(f"{SESSION}/recording", response_class=Asciicast)
async def get_recording(hub: TheHub, session: PathSession, run: int | None = None) -> Response:
    _, folder = await hub.output_of(session, run)
    lines = asciicast(folder, session.shape["name"])

    async def parts() -> AsyncIterator[str]:
        while part := await hub.do(_next_part, lines):
            yield part

    return Asciicast(parts())


@router.get(f"{SESSION}/diff", response_model=schemas.Difference)
async def get_diff(hub: TheHub, session: PathSession) -> dict[str, Any]:
    record = session.observation.record

    def look() -> dict[str, Any]:
        found = changed(hub.home, record)
        with suppress(OSError):
            note(hub.home, record, found)
        return diff_shape(found)

    return await hub.look_at_files_of(record.id, look)


@router.get(f"{SESSION}/diff/text", response_class=Octets)
async def get_diff_text(hub: TheHub, session: PathSession, stat: bool = False) -> Response:
    """The difference as git prints it, byte for byte; with ``stat``, only its counts. The header ``Hitchpost-Base`` is
    the commit that it starts from, empty when that is not known; ``Hitchpost-Cut`` says that it is longer."""
    record = session.observation.record

    def look() -> Difference:
        found = changed(hub.home, record, stat=stat)
        with suppress(OSError):
            note(hub.home, record, found)
        return found

    found = await hub.look_at_files_of(record.id, look)
    headers = {"Hitchpost-Base": found.base or "", "Hitchpost-Cut": str(found.cut).lower()}
    return Octets(found.stat if stat else found.patch, headers=headers)


@router.get(f"{SESSION}/explain", response_model=schemas.Explanation, response_model_exclude_unset=True)
async def explain_session(
    hub: TheHub,
    session: PathSession,
    at: Annotated[AwareDatetime | None, Query(description="An earlier moment.")] = None,
    story: Annotated[bool, Query(description="With what had been told by then, oldest first.")] = False,
) -> dict[str, Any]:
    """Why the session has its status, or had it then, as ``hitch explain --json`` prints it."""
    now = datetime.now(UTC)
    explanation = await hub.do(explain, session.observation, now, None if at is None else at.astimezone(UTC))
    facts = [
        {"fact": fact.fact, "value": fact.value, "source": fact.source, "at": rfc3339(fact.at)}
        for fact in explanation.facts
    ]
    return {
        "session": explanation.session,
        "at": rfc3339(explanation.at),
        "in_status_s": explanation.words.in_status_s,
        "rule": explanation.rule,
        "facts": readable(facts),
        **({"story": readable(list(explanation.story))} if story else {}),
    }


def _next_part(lines: Iterator[str]) -> str:
    """The next lines together: as much as is worth the way to a thread and back."""
    part: list[str] = []
    size = 0
    for line in lines:
        part.append(line)
        size += len(line)
        if size >= PART_CHARS:
            break
    return "".join(part)


def _runs(folder: str, current_run: int, current_state: str) -> list[dict[str, Any]]:
    """Every run of a session, the first one first, with its exit."""
    entries = []
    for number in range(1, current_run + 1):
        where = run_folder(folder, number)
        entry: dict[str, Any] = {"run": number, "state": current_state if number == current_run else "unknown"}
        for name, path in (("run_file", wire.RUN), ("exit", wire.EXIT), ("state_file", files.STATE)):
            entry[name] = runfiles.read(where, path) or None
        if entry["exit"] is not None and isinstance(lost := entry["exit"].get("lost_output_bytes"), int):
            entry["exit"]["lost_output_bytes"] = output.counted(lost)  # older files have a number for what nobody knows
        if entry["state_file"] is not None:
            entry["state"] = entry["state_file"]["state"]
        entries.append(entry)
    return entries
