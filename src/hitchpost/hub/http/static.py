"""The built page, from the package: its files, and nothing else that a path could name."""

from __future__ import annotations

import hashlib
import os
import re

from fastapi import FastAPI
from fastapi.responses import FileResponse, PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

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
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", re.ASCII)
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
            return _file(folder, name, {"Cache-Control": A_DAY} if name == WORKER else None)

        app.get(f"/{name}", include_in_schema=False)(answer)

    app.get("/", include_in_schema=False)(page)
    app.get("/assets/{name}", include_in_schema=False)(asset)
    for name in ("favicon.svg", "manifest.webmanifest", WORKER):
        beside(name)


def _file(folder: str, name: str, headers: dict[str, str] | None = None) -> Response:
    path = os.path.join(folder, name)
    kind = TYPES.get(os.path.splitext(name)[1])
    if kind is None or not NAME.fullmatch(name) or not os.path.isfile(path):
        raise HTTPException(404, "the page has no such file")
    return FileResponse(path, media_type=kind, headers=headers)
