"""Commands beside a hub that was started before an upgrade: its sessions have fewer fields."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.server import ServerConnection, unix_serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from hitchpost.hub.client import SOCKET
from hitchpost.hub.http.schemas import EXAMPLE
from hitchpost.model import run as runs
from hitchpost.tui import source
from tests.store.made import session
from tests.support import Hitch

OLD: dict[str, Any] = {
    name: value for name, value in EXAMPLE.items() if name not in ("section", "since", "glyph", "actions", "pinned")
}
ANSWERS: dict[str, object] = {
    "/api/health": {"ok": True, "pid": 1, "uptime_s": 1.0, "problems": []},
    "/api/status": {"sessions": [OLD], "counts": {}, "containers": []},
    "/api/sessions?all=true": [OLD],
}


@asynccontextmanager
async def older_hub(home: Path) -> AsyncIterator[None]:
    def answer(_: ServerConnection, request: Request) -> Response | None:
        if request.path not in ANSWERS:
            return None
        body = json.dumps(ANSWERS[request.path]).encode()
        return Response(200, "OK", Headers({"Content-Length": str(len(body)), "Connection": "close"}), body)

    async def wait(connection: ServerConnection) -> None:
        await connection.wait_closed()

    async with unix_serve(wait, str(home / SOCKET), process_request=answer):
        yield


def test_status_counts_its_sessions(home: Path, hitch: Hitch) -> None:
    async def said() -> str:
        async with older_hub(home):
            return (await asyncio.to_thread(hitch, "status")).out

    assert asyncio.run(said()).endswith("Sessions:\n  1 failed\n")


def test_top_looks_for_itself(home: Path) -> None:
    async def told() -> tuple[str, list[str]]:
        async with older_hub(home):
            looks = source.sessions(str(home))
            told_by, known = await anext(looks)
            await looks.aclose()
            return told_by, [shown["section"] for shown in known.values()]

    session(home, runs.COMPLETED, name="dev")
    assert asyncio.run(told()) == ("no hub", ["finished"])
