"""The built page, from the package: its files, read once, and nothing else that a path could name.

Anybody may ask for them, so an answer takes no thread, no look at the disk, and little memory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

import hitchpost
from hitchpost.store import files

FOLDER = os.path.join(os.path.dirname(hitchpost.__file__), "web")
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}
PAGE, ASSETS = "index.html", "assets"
PART_BYTES = 64 << 10
FOR_EVER = "public, max-age=31536000, immutable"
WORKER = "sw.js"
A_DAY = "private, max-age=86400"
"""For the worker, whose address has the page's version: a browser asks no sooner who else has another one."""
NOT_BUILT = (
    "The hub is up, but its page was not built.\n\n"
    "In a checkout, script/ui builds it (it needs Node 20). Without it, hitch ps lists\n"
    "sessions and hitch attach SESSION enters one.\n"
)


def version(folder: str = FOLDER) -> str:
    """Of the page: another one has another worker. Empty when it was not built."""
    try:
        return hashlib.sha256(files.read_bytes(os.path.join(folder, WORKER))).hexdigest()[:12]
    except OSError:
        return ""


class File(Response):
    """Sent in parts, each when the one before has gone: somebody who does not read holds little."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for at in range(0, len(self.body), PART_BYTES):
            part = bytes(self.body[at : at + PART_BYTES])
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def serve_page(app: FastAPI, folder: str = FOLDER) -> None:
    """Answer ``/``, the files beside the page, and ``/assets/``, whose names change with their content."""
    beside, assets = dict(_read(folder)), dict(_read(os.path.join(folder, ASSETS)))

    async def page() -> Response:
        return _answer(beside, PAGE) if PAGE in beside else PlainTextResponse(NOT_BUILT, 503)

    async def asset(name: str) -> Response:
        return _answer(assets, name, FOR_EVER)

    def serve_beside(name: str, cached: str = "") -> None:
        async def answer() -> Response:
            return _answer(beside, name, cached)

        app.get(f"/{name}", include_in_schema=False)(answer)

    app.get("/", include_in_schema=False)(page)
    app.get(f"/{ASSETS}/{{name}}", include_in_schema=False)(asset)
    serve_beside("favicon.svg")
    serve_beside("manifest.webmanifest")
    serve_beside(WORKER, A_DAY)


def _read(folder: str) -> Iterator[tuple[str, bytes]]:
    """The files that are the page's, by their types; none when it was not built."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if os.path.splitext(name)[1] in TYPES:
            yield name, files.read_bytes(os.path.join(folder, name), follow=True)


def _answer(kept: dict[str, bytes], name: str, cached: str = "") -> Response:
    if name not in kept:
        raise HTTPException(404, "the page has no such file")
    headers = {"Cache-Control": cached} if cached else None
    return File(kept[name], media_type=TYPES[os.path.splitext(name)[1]], headers=headers)
