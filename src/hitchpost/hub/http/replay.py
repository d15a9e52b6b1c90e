"""``/api/sessions/{session}/replay``: a run's recording for a player, as much of it as is looked at."""

from __future__ import annotations

import os
from base64 import b64encode
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query
from pydantic import BaseModel, Field

from hitchpost import wire
from hitchpost.hub.core import Hub
from hitchpost.ops.sessions.create import LONGEST_NAME
from hitchpost.ops.views.find import chosen_run
from hitchpost.ops.views.session_json import rfc3339
from hitchpost.store.home import run_folder
from hitchpost.terminal import output, playback

SessionId = Annotated[str, Path(max_length=LONGEST_NAME, description="An id, a name, an index, or how an id begins.")]
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


def serve_replays(app: FastAPI, hub: Hub) -> None:
    def find(session: str, run: int | None) -> tuple[int, str]:
        seen = hub.registry.find(session).seen
        assert seen is not None
        number = chosen_run(seen, run)
        return number, os.path.join(run_folder(seen.folder, number), wire.OUTPUT)

    @app.get("/api/sessions/{session}/replay", response_model=ReplayOutline)
    async def outline(session: SessionId, run: Run = None) -> dict[str, Any]:
        """How long the recording is, and where it stands still."""
        number, folder = find(session, run)
        found = await hub.do(playback.outline, folder)
        began = None if found.began is None else rfc3339(datetime.fromtimestamp(found.began, UTC))
        idle = [{"from_s": start, "to_s": end} for start, end in found.idle]
        return {"run": number, "began_at": began, "length_s": found.length_s, "idle": idle}

    @app.get("/api/sessions/{session}/replay/part", response_model=ReplayPart)
    async def part(session: SessionId, run: Run = None, at: Seconds = 0.0, start: Offset = None) -> dict[str, Any]:
        """The screen at a moment and what followed it; or what follows the last part."""
        number, folder = find(session, run)
        screen = None
        if start is None:
            offset = await hub.do(playback.offset_at, folder, at)
            shown = await hub.replays.shown(folder, offset, history=False)
            start = shown.offset
            screen = {"cols": shown.cols, "rows": shown.rows, "data": b64encode(shown.data).decode()}
        found = await hub.do(playback.part, folder, start)
        return {
            "run": number,
            "offset": found.offset,
            "next": found.next,
            "screen": screen,
            "events": [_event(one) for one in found.events],
        }


def _event(event: playback.Size | playback.Written) -> dict[str, Any]:
    if isinstance(event, playback.Size):
        return {"at_s": event.at_s, "cols": event.cols, "rows": event.rows}
    return {"at_s": event.at_s, "data": b64encode(event.data).decode(), "lost": output.counted(event.lost)}
