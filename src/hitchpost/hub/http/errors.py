"""Every error has one shape: ``{"error": {"code", "message", "hint", "field"}}``."""

from __future__ import annotations

import json

from hitchpost.errors import HitchpostError
from hitchpost.text import readable


def status_and_body(error: HitchpostError | OSError) -> tuple[int, dict[str, dict[str, str]]]:
    if isinstance(error, HitchpostError):
        return error.http_status, as_dict(error.code, error.message, error.hint, error.field)
    return 503, as_dict("system", str(error))


def code_of(error: HitchpostError | OSError) -> str:
    return status_and_body(error)[1]["error"]["code"]


def as_dict(code: str, message: str, hint: str = "", field: str = "") -> dict[str, dict[str, str]]:
    """``field`` is only there when the error is about one field of what was asked."""
    body = {"code": code, "message": readable(message), "hint": readable(hint)}
    return {"error": {**body, "field": readable(field)} if field else body}


def error_body(code: str, message: str, hint: str = "") -> bytes:
    return json.dumps(as_dict(code, message, hint)).encode()
