"""Every error has one shape: ``{"error": {"code", "message", "hint"}}``."""

from __future__ import annotations

import json

from hitchpost.errors import (
    AmbiguousSession,
    AmbiguousWorkspace,
    BadSettings,
    GitFailed,
    HitchpostError,
    KeeperSilent,
    NameTaken,
    NoSuchRun,
    NoSuchSession,
    NoSuchWorkspace,
    Refused,
    RuntimeMissing,
    SetupFailed,
    StartFailed,
    UsageError,
    WorkspaceExists,
)
from hitchpost.model.run import InvalidTransition
from hitchpost.runtimes.engine import EngineFailed
from hitchpost.state import files

STATUS: tuple[tuple[type[Exception], int, str], ...] = (
    (NoSuchSession, 404, "not_found"),
    (NoSuchRun, 404, "not_found"),
    (AmbiguousSession, 404, "ambiguous"),
    (NoSuchWorkspace, 404, "not_found"),
    (AmbiguousWorkspace, 404, "ambiguous"),
    (WorkspaceExists, 409, "exists"),
    (NameTaken, 409, "name_taken"),
    (Refused, 409, "wrong_state"),
    (InvalidTransition, 409, "wrong_state"),
    (files.WrongRun, 409, "wrong_state"),
    (files.Removed, 404, "not_found"),
    (UsageError, 422, "bad_input"),
    (StartFailed, 422, "start_failed"),
    (RuntimeMissing, 422, "runtime_missing"),
    (SetupFailed, 409, "setup_failed"),
    (GitFailed, 409, "git_failed"),
    (EngineFailed, 502, "engine_failed"),
    (KeeperSilent, 503, "busy"),
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
