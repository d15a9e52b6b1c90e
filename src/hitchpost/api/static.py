"""The built page, from the package: its files, and nothing else that a path could name."""

from __future__ import annotations

import os
import re

from fastapi import FastAPI
from fastapi.responses import FileResponse, PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

import hitchpost

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
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", re.ASCII)
FOR_EVER = "public, max-age=31536000, immutable"
NOT_BUILT = (
    "The hub is up, but its page was not built.\n\n"
    "In a checkout, script/ui builds it (it needs Node 20). Without it, hitch ps lists\n"
    "sessions and hitch attach SESSION enters one.\n"
)


def serve_page(app: FastAPI, folder: str = FOLDER) -> None:
    """Answer ``/``, the files beside the page, and ``/assets/``, whose names change with their content."""

    def page() -> Response:
        if not os.path.isfile(os.path.join(folder, "index.html")):
            return PlainTextResponse(NOT_BUILT, 503)
        return _file(folder, "index.html")

    def asset(name: str) -> Response:
        return _file(os.path.join(folder, "assets"), name, {"Cache-Control": FOR_EVER})

    def beside(name: str) -> None:
        def answer() -> Response:
            return _file(folder, name)

        app.get(f"/{name}", include_in_schema=False)(answer)

    app.get("/", include_in_schema=False)(page)
    app.get("/assets/{name}", include_in_schema=False)(asset)
    for name in ("favicon.svg", "manifest.webmanifest", "sw.js"):
        beside(name)


def _file(folder: str, name: str, headers: dict[str, str] | None = None) -> Response:
    path = os.path.join(folder, name)
    kind = TYPES.get(os.path.splitext(name)[1])
    if kind is None or not NAME.fullmatch(name) or not os.path.isfile(path):
        raise HTTPException(404, "the page has no such file")
    return FileResponse(path, media_type=kind, headers=headers)
