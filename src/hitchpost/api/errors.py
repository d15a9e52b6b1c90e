"""Every error has one shape: ``{"error": {"code", "message", "hint"}}``."""

from __future__ import annotations

import json

from hitchpost.errors import (
    AmbiguousSession,
    BadSettings,
    HitchpostError,
    NameTaken,
    NoSuchRun,
    NoSuchSession,
    Refused,
    UsageError,
)
from hitchpost.model.run import InvalidTransition
from hitchpost.state import files

STATUS: tuple[tuple[type[Exception], int, str], ...] = (
    (NoSuchSession, 404, "not_found"),
    (NoSuchRun, 404, "not_found"),
    (AmbiguousSession, 404, "ambiguous"),
    (NameTaken, 409, "name_taken"),
    (Refused, 409, "wrong_state"),
    (InvalidTransition, 409, "wrong_state"),
    (files.WrongRun, 409, "wrong_state"),
    (files.Removed, 404, "not_found"),
    (UsageError, 422, "bad_input"),
    (BadSettings, 500, "bad_settings"),
    (files.LockTimeout, 503, "busy"),
    (files.NewerSchema, 409, "newer_schema"),
    (files.Unreadable, 500, "unreadable"),
    (HitchpostError, 500, "failed"),
    (OSError, 503, "system"),
)


def status_of(error: Exception) -> tuple[int, str]:
    return next(((status, code) for kind, status, code in STATUS if isinstance(error, kind)), (500, "internal"))


def as_dict(code: str, message: str, hint: str = "") -> dict[str, dict[str, str]]:
    return {"error": {"code": code, "message": message, "hint": hint}}


def error_body(code: str, message: str, hint: str = "") -> bytes:
    return json.dumps(as_dict(code, message, hint)).encode()
