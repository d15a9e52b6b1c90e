"""``/api/sessions/{session}/output``: the output log of a run as it is, in parts, for who reads it elsewhere."""

from __future__ import annotations

import os
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from hitchpost import wire
from hitchpost.hub.http.depends import PathSession, TheHub
from hitchpost.hub.http.permissions import SESSION
from hitchpost.hub.http.routes.session_views import Octets
from hitchpost.ops.views.find import output_of
from hitchpost.store import files
from hitchpost.terminal import output

MOST_PART_BYTES = 1 << 20
AT = "Hitchpost-Offset"
router = APIRouter()
Run = Annotated[int | None, Query(ge=1, le=1 << 31, description="The newest one when it is missing.")]


class OutputOutline(BaseModel):
    """``first`` and ``end`` are the offsets that the log has bytes between; some in the middle may be missing.
    ``told_end`` is how far it reached, also when its last bytes were lost; 0 when that is not known."""

    run: int = Field(examples=[1])
    first: int = Field(examples=[0])
    end: int = Field(examples=[1200])
    told_end: int = Field(examples=[1200])


@router.get(f"{SESSION}/output", response_model=OutputOutline)
async def output_outline(hub: TheHub, session: PathSession, run: Run = None) -> dict[str, Any]:
    """Where the log has bytes."""
    number, folder = output_of(session.observation, run)
    return {"run": number, **await hub.do(_outline, folder)}


@router.get(f"{SESSION}/output/part", response_class=Octets)
async def output_part(
    hub: TheHub,
    session: PathSession,
    run: Run = None,
    start: Annotated[int, Query(alias="from", ge=0, le=1 << 62, description="The offset of the first byte.")] = 0,
    most: Annotated[int, Query(ge=1, le=MOST_PART_BYTES)] = MOST_PART_BYTES,
) -> Response:
    """The bytes from an offset on. The header ``Hitchpost-Offset`` is that of the first: where some are missing, it is
    beyond the one that was asked for. Nothing at the end of the log."""
    _, folder = output_of(session.observation, run)
    chunk = await hub.do(_read, folder, start, most)
    return Octets(chunk.data, headers={AT: str(chunk.offset)})


@router.get(f"{SESSION}/output/times", response_class=Octets)
async def output_times(hub: TheHub, session: PathSession, run: Run = None) -> Response:
    """When which part of it was written, and the terminal's sizes, as docs/keeper-protocol.md describes the file."""
    _, folder = output_of(session.observation, run)
    return Octets(await hub.do(_times, folder))


def _outline(folder: str) -> dict[str, int]:
    first, end = output.bounds(folder)
    return {"first": first, "end": end, "told_end": output.told_end(folder)}


def _read(folder: str, start: int, most: int) -> output.Chunk:
    with output.Reader(folder, start) as reader:
        return reader.read(most)


def _times(folder: str) -> bytes:
    try:
        return files.read_bytes(os.path.join(folder, wire.TIMES), output.MOST_TIMES_BYTES)
    except files.NoFile:
        return b""
