"""``/api/sessions/{session}/replay``: a run's recording for a player, as much of it as is looked at."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from hitchpost.hub.http.depends import PathSession, TheHub
from hitchpost.hub.http.permissions import SESSION
from hitchpost.ops.views.moments import rfc3339
from hitchpost.terminal import output, playback

router = APIRouter()
Run = Annotated[int | None, Query(ge=1, le=1 << 31, description="The newest one when it is missing.")]
Seconds = Annotated[float, Query(ge=0, le=1e10, allow_inf_nan=False, description="Since the beginning.")]
Offset = Annotated[
    int | None, Query(alias="from", ge=0, le=1 << 62, description="Go on at this byte, without a screen.")
]


class IdleStretch(BaseModel):
    """Nothing was shown between the two, in seconds since the beginning."""

    from_s: float
    to_s: float


class ReplayOutline(BaseModel):
    run: int = Field(examples=[1])
    began_at: str | None = Field(examples=["2026-05-04T12:00:01.000000Z"])
    length_s: float = Field(examples=[61.5])
    idle: list[IdleStretch] = Field(examples=[[{"from_s": 1.5, "to_s": 60.0}]])


class ReplayScreen(BaseModel):
    """``data`` (base64) shows the screen on a cleared terminal of this size."""

    cols: int
    rows: int
    data: str


class ReplayEvent(BaseModel):
    """Bytes of the terminal (base64), after ``lost`` ones that are not in the log any more (null: nobody knows how
    many); or another size."""

    at_s: float
    data: str | None = None
    lost: int | None = 0
    cols: int | None = None
    rows: int | None = None


class ReplayPart(BaseModel):
    """``next`` is where the following part begins; null at the end of what was recorded so far."""

    run: int
    offset: int
    next: int | None
    screen: ReplayScreen | None
    events: list[ReplayEvent]


@router.get(f"{SESSION}/replay", response_model=ReplayOutline)
async def replay_outline(hub: TheHub, session: PathSession, run: Run = None) -> dict[str, Any]:
    """How long the recording is, and where it stands still."""
    number, folder = await hub.output_of(session, run)
    outline = await hub.do(playback.outline, folder)
    began = None if outline.began is None else rfc3339(datetime.fromtimestamp(outline.began, UTC))
    idle = [{"from_s": start, "to_s": end} for start, end in outline.idle]
    return {"run": number, "began_at": began, "length_s": outline.length_s, "idle": idle}


@router.get(f"{SESSION}/replay/part", response_model=ReplayPart)
async def replay_part(
    hub: TheHub, session: PathSession, run: Run = None, at: Seconds = 0.0, start: Offset = None
) -> dict[str, Any]:
    """The screen at a moment and what followed it; or what follows the last part."""
    number, folder = await hub.output_of(session, run)
    screen = None
    if start is None:
        offset = await hub.do(playback.offset_at, folder, at)
        shown = await hub.replays.shown(folder, offset, history=False)
        start = shown.offset
        screen = {"cols": shown.cols, "rows": shown.rows, "data": b64encode(shown.data).decode()}
    part = await hub.do(playback.part, folder, start)
    return {
        "run": number,
        "offset": part.offset,
        "next": part.next,
        "screen": screen,
        "events": [_event(event) for event in part.events],
    }


def _event(event: playback.Size | playback.Written) -> dict[str, Any]:
    if isinstance(event, playback.Size):
        return {"at_s": event.at_s, "cols": event.cols, "rows": event.rows}
    return {"at_s": event.at_s, "data": b64encode(event.data).decode(), "lost": output.counted(event.lost)}
