"""Every error has one shape: ``{"error": {"code", "message", "hint", "field"?, "cli"?}}``."""

from __future__ import annotations

import json
from typing import Any

from hitchpost.errors import HitchpostError
from hitchpost.hub.client import EXIT_CODES
from hitchpost.hub.http.grants import Grant
from hitchpost.text import readable

Body = dict[str, dict[str, Any]]


def status_and_body(error: HitchpostError | OSError, grant: Grant) -> tuple[int, Body]:
    """Who may see some sessions only is not told the names of others."""
    if not isinstance(error, HitchpostError):
        return 503, as_dict("system", str(error))
    message, hint, cli_hint = error.message, error.hint, error.cli_hint
    if error.to_some and not grant.sees_all:
        message, hint, cli_hint = error.to_some, "", ""
    body = as_dict(error.code, message, hint, error.field)
    cli: dict[str, Any] = {"hint": readable(cli_hint)} if cli_hint else {}
    if error.exit_code != EXIT_CODES.get(error.http_status, 1):
        cli["exit_code"] = error.exit_code
    if cli:
        body["error"]["cli"] = cli
    return error.http_status, body


def code_and_text(error: HitchpostError | OSError, grant: Grant) -> tuple[str, str]:
    """For a message: the code, and all that there is to say."""
    body = status_and_body(error, grant)[1]["error"]
    return body["code"], "; ".join(filter(None, (body["message"], body["hint"])))


def as_dict(code: str, message: str, hint: str = "", field: str = "") -> Body:
    """``field`` is only there when the error is about one field of what was asked."""
    body = {"code": code, "message": readable(message), "hint": readable(hint)}
    return {"error": {**body, "field": readable(field)} if field else body}


def error_body(code: str, message: str, hint: str = "") -> bytes:
    return json.dumps(as_dict(code, message, hint)).encode()
